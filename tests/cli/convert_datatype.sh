# --cast with a datatype makes small codes with scales; a cast to a float type gives the values back.
weights w.safetensors
t convert -n w.safetensors codes.zt --cast '*.weight=mxfp4'
t convert -q w.safetensors codes.zt --cast '*.weight=mxfp4'
t ls codes.zt
t ls -l codes.zt
t ls --json codes.zt
t verify codes.zt
t diff w.safetensors codes.zt
t diff --json w.safetensors codes.zt
t convert -q w.safetensors virtual.zt --cast 'e2m1fnuz|e8m0_t32' --only '*.weight' --virtual --round even --scale-mode max
t ls virtual.zt
t convert -q codes.zt values.zt --only '*.weight' --cast bf16
t diff values.zt virtual.zt
t convert -q w.safetensors unpacked.zt --only a.weight --cast mxfp4,store=unpacked
t ls -l unpacked.zt
t diff --ignore-metadata codes.zt unpacked.zt
t convert -q w.safetensors rotated.zt --only a.weight --cast int4_b32 --rotate hadamard32:7
t ls -l rotated.zt
t ls --json rotated.zt
t convert -q w.safetensors two.zt --cast a.weight=nvfp4 --cast 'b.weight=cb41fi_e2m2fnuz|e8m0_t32s4,mode=mse'
t ls -l two.zt
t convert -q w.safetensors two.safetensors --cast a.weight=nvfp4 --option safetensors.ocp-names=yes
t ls -l two.safetensors
LC_ALL=C grep -ao '"a.weight[^"]*":' two.safetensors
t diff two.zt two.safetensors
echo '{"compute": "e2m3fnuz", "mappings": [[0.5, 1, 1.5, 2, 3, 4, 6], [1, 2, 3, 4, 5, 6, 7]]}' >table.json
t convert -q w.safetensors table.zt --only a.weight --cast 'table.json|e8m0_t32s8' --report
rm table.json
t ls -l table.zt
t convert -q table.zt values.zt --cast f32 -f
t diff table.zt values.zt
t convert -q w.safetensors ggml.zt --only a.weight --cast mxfp4 --dialect ggml
t diff codes.zt ggml.zt
