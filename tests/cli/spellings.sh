# Words for types: what a person means, what could be two things, and four bits.
weights w.safetensors
for word in fp8 FP8 e4m3fn f8e4m3fn float8_e4m3fn F8_E4M3; do
    t convert -qf w.safetensors $word.zt --cast "*.weight=$word"
    cmp fp8.zt $word.zt && echo the same
done
t ls fp8.zt
for word in e4m3 f8e4m3 E4M3; do
    t convert w.safetensors x.zt --cast "*.weight=$word"
done
t convert -q w.safetensors ieee.zt --cast '*.weight=float8_e4m3'
t ls ieee.zt
t convert -q w.safetensors tiles.zt --cast '*.weight=e4m3|float32_t32'
t ls tiles.zt
t compare-types w.safetensors --types fp8,e4m3 | cut -d ' ' -f 1
for suffix in zt safetensors npz; do
    t convert -q w.safetensors four.$suffix --only a.weight --cast int4 --drop-metadata
    t ls four.$suffix
    t show four.$suffix a.weight --slice 0,:4
done
