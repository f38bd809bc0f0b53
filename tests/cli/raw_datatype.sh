# A tensor of a datatype is described by its codes, with all its parts in the data beside the descriptor.
weights w.safetensors
t convert -q w.safetensors codes.zt --only a.weight --cast nvfp4
t convert -q codes.zt codes.json
ls
cat codes.json
t check codes.json
t ls -l codes.json
t diff codes.zt codes.json
t convert -q codes.json back.zt
t diff codes.zt back.zt
t convert -q codes.json values.json --cast f32
t diff codes.zt values.json
t describe codes.zt a.weight
t convert -q codes.json names.json --option raw.ocp-names=yes
truncate -s 300 codes.bin
t ls codes.json
