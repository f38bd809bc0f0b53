# diff is quiet about what is equal, exact about what is not, and its status says which.
sample a.safetensors
safetensors b.safetensors '{"__metadata__":{"format":"np","new":"1"},"a.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"a.bias":{"dtype":"I16","shape":[2,1],"data_offsets":[24,28]},"c":{"dtype":"U8","shape":[],"data_offsets":[28,29]}}' \
    '\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x40\x40\x00\x00\x90\x40\x00\x00\xa0\x40\x00\x00\xc0\x7f\x01\x00\xff\xff\x01'
t diff a.safetensors a.safetensors
t diff a.safetensors b.safetensors
t diff a.safetensors b.safetensors --ignore-metadata --jobs 1
t diff a.safetensors b.safetensors --json
t diff a.safetensors a.safetensors --json
golden good/raw_little.zt good/raw_big.zt good/zstd_crc.zt good/empty.zt edge/unknown_dtype.zt
t diff raw_little.zt raw_big.zt
t diff raw_little.zt zstd_crc.zt
t diff empty.zt empty.zt
t diff unknown_dtype.zt unknown_dtype.zt
safetensors f.safetensors '{"w":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}}' '\x00\x20\x80\x3f\x00\x00\x00\x40\x00\x00\x40\x40'
tenon convert -q f.safetensors h.zt --cast bf16
t diff f.safetensors h.zt
# Finite numbers further apart than a double can say are no special values, and the JSON stays JSON.
safetensors high.safetensors '{"w":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}' '\xff\xff\xff\xff\xff\xff\xef\x7f'
safetensors low.safetensors '{"w":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}' '\xff\xff\xff\xff\xff\xff\xef\xff'
t diff high.safetensors low.safetensors
t diff high.safetensors low.safetensors --json
