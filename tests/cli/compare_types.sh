# compare-types says what datatypes would do, and writes nothing.
weights w.safetensors
t compare-types w.safetensors --types mxfp4,nvfp4,int4_b32,mxfp8,float16
t compare-types w.safetensors --types mxfp4,nvfp4 --json
t compare-types w.safetensors --types 'e2m1fnuz|e8m0_t32,mxfp4t16s' --only a.weight --jobs 1
t compare-types w.safetensors --types mxfp4,int4_b32 --scale-mode mse
t compare-types w.safetensors --types mxfp4,int4_b32 --rotate hadamard32
t compare-types w.safetensors --types mxfp4 --rotate walsh64
t compare-types w.safetensors --types mxfp4 --only step
safetensors v.safetensors '{"m":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"v":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}' \
    '\x00\x00\x80\x3f\x00\x00\x41\x3f\x00\x00\x80\x3f\x00\x00\x41\x3f'
t compare-types v.safetensors --types mxfp4,mxfp4s
t compare-types v.safetensors --types mxfp4,mxfp4s --json
t compare-types w.safetensors
t compare-types w.safetensors --types ''
t compare-types w.safetensors --types mxfp4,
t compare-types w.safetensors --types mxfp4,nvfp4,mxfp4e2
t compare-types w.safetensors --types 'mxfp4,e2m1fnuz|e8m0_t33'
t compare-types w.safetensors --types mxfp4 --only x
t compare-types missing.zt --types mxfp4
t compare-types missing.zt --types mxfp4 --json
t compare-types w.safetensors w.safetensors --types mxfp4
safetensors nan.safetensors '{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}' '\x00\x00\x80\x3f\x00\x00\xc0\x7f'
t compare-types nan.safetensors --types mxfp8,mxfp4
t compare-types nan.safetensors --types mxfp8,mxfp4 --json
t compare-types nan.safetensors --types mxfp8,mxfp4 --nan zero
ls
