# Datatypes that make no sense are refused, with the place of what is wrong.
weights w.safetensors
for rule in 'e9m3|e8m0_t32' '*.weight=e2m1fnuz|e8m0_t33' mxfp3 '*.weight=INT8_F' 'int5' 'e4m3fn|float32_t4n2m4_t4' missing.json\|e8m0_t32 \
    mxfp4,mode=min mxfp4,store=tight mxfp4,dialect=onnx mxfp4,rotate=hadamard3 mxfp4,virtual=maybe mxfp4,overflow=inf f32,mode=max \
    mxfp4,round=up mxfp4,virtual=yes,store=unpacked; do
    t convert w.safetensors o.zt --cast "$rule"
done
t convert w.safetensors o.zt --cast mxfp4 --scale-mode min
t convert w.safetensors o.zt --cast mxfp4 --rotate hadamard3
t convert w.safetensors o.zt --cast mxfp4 --dialect onnx
t convert w.safetensors o.zt --cast '*.weight=mxfp4' --round up
for option in --virtual '--scale-mode mse' '--rotate walsh32' '--dialect ggml'; do
    t convert w.safetensors o.zt --cast bf16 $option
done
t convert w.safetensors o.zt --cast mxfp4
t convert w.safetensors o.zt --cast step=mxfp4
t convert w.safetensors o.zt --cast 'a.weight=int8|float32_t0d2'
t convert w.safetensors o.zt --cast '*.weight=int4_b32' --rotate hadamard128
t convert w.safetensors o.zt --cast a.weight=nvfp4,dialect=ggml
t convert w.safetensors o.zt --cast a.weight=mxfp4,dialect=ggml,mode=mse
tenon convert -q w.safetensors codes.zt --cast '*.weight=mxfp4'
t convert -n codes.zt o.zt --cast '*.weight=nvfp4'
t convert -n codes.zt o.zt --cast '*.weight=i8'
t convert codes.zt o.btf --to btf --drop-names --only a.weight
safetensors nan.safetensors '{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}' '\x00\x00\x80\x3f\x00\x00\xc0\x7f'
t convert nan.safetensors o.zt --cast mxfp4
t convert -q nan.safetensors zero.zt --cast mxfp4 --nan zero
t convert -q nan.safetensors kept.zt --cast mxfp8
ls
echo '{"compute": "e2m3fnuz", "mappings": [[0.5, 1, 1.6]]}' >table.json
t convert w.safetensors o.zt --cast 'a.weight=table.json|e8m0_t32'
t convert w.safetensors o.zt --cast a.weight=table.json
t convert w.safetensors o.npy --only a.weight --drop-names --option npy.ocp-names=yes
