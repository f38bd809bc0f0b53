# stats gives one line and one picture a tensor, then the total; the same for any threads and levels.
sample s.safetensors
t stats s.safetensors
t stats s.safetensors --only 'a.*' --jobs 1
LC_ALL=C t stats s.safetensors --only a.weight
t stats s.safetensors --only b.flag --json
t stats s.safetensors --only nothing
safetensors x.safetensors '{"e":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"n":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"x":{"dtype":"F16","shape":[5],"data_offsets":[8,18]}}' \
    '\x00\x00\xc0\x7f\x00\x00\x80\xff\x00\x3c\x01\x00\x00\x80\x00\x7c\xff\x7b'
t stats x.safetensors
golden good/raw_little.zt good/raw_big.zt edge/unknown_dtype.zt good/mixed.zt
t stats raw_little.zt
for level in scalar avx2 avx512; do
    TENON_CPU=$level tenon stats raw_big.zt --jobs 3 | cmp - <(tenon stats raw_little.zt) || echo "$level says something else"
done
t stats unknown_dtype.zt mixed.zt
t stats unknown_dtype.zt --json
t stats missing.zt --json
