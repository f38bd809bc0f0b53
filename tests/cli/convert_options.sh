# Every option of codes works with every spelling of them, and what it did comes back from the file.
weights w.safetensors
for type in int8,per=tensor int8,per=channel,axis=0 u8,per=tensor int8,per=tensor,zero=asymmetric fx8 fx16 sa8 \
    sa8,per=channel,axis=1,zero=asymmetric sa32 'int8|float32' 'int8|float32_t0' 'uint8|float32_int32' mxfp4 nvfp4; do
    for option in '' ,mode=mse ,percentile=75 ,rotate=hadamard4:7 ,round=stochastic,seed=3 ,virtual=yes \
        ,mode=mse,percentile=90,rotate=walsh4,virtual=yes; do
        echo "-- $type$option"
        t convert -q -f w.safetensors o.zt --only a.weight --cast "$type$option" --report
        t verify o.zt >/dev/null
        t convert -q -f o.zt back.safetensors --cast f32
        t diff --ignore-meta o.zt back.safetensors >/dev/null
    done
done
# The same by options for all rules, and in a container with a record of its own.
t convert -q -f w.safetensors o.json --only a.weight --cast int8,per=channel,axis=0 --rotate walsh4 --scale-mode mse --report
t ls o.json
t convert -q -f o.json back.safetensors --cast f32
t diff o.json back.safetensors
t compare-types w.safetensors --types int8,per=tensor,mxfp4,int8,per=channel,axis=0,fx8,'int8|float32_t0' --only a.weight
# What has no meaning.
for rule in int8,mode=mse int8,rotate=walsh4 int8,virtual=yes int8,per=tensor,mode=ceil fx8,mode=auto fx8,frac=3,percentile=9 \
    fx8,frac=auto,mode=mse int8,per=tensor,scale=1,mode=mse int8,per=tensor,percentile=101 mxfp4,percentile=0 \
    int8,per=tensor,store=packed int8,per=tensor,rotate=walsh3; do
    t convert w.safetensors o2.zt --cast "$rule"
done
t convert w.safetensors o2.zt --only a.weight --cast int8,per=tensor,rotate=walsh128
t convert -n w.safetensors o2.zt --only a.weight --cast int8,per=tensor,virtual=yes --layout AB,from=BA
# A default that no rule takes.
t convert w.safetensors o2.zt --only a.weight --cast int8,per=tensor --scale-mode ceil
t convert w.safetensors o2.zt --only a.weight --cast int8,per=tensor --dialect ggml
t compare-types w.safetensors --types int8,per=tensor,int8,per=tensor
t compare-types w.safetensors --types int8,per=rows
ls
