# A tensor of a type that this build does not know: listed by its spelling, and refused by it, whatever is asked for.
safetensors u.safetensors '{"a":{"dtype":"F9_E5","shape":[4,8],"data_offsets":[0,32]},"b":{"dtype":"F32","shape":[2],"data_offsets":[32,40]}}' \
    "$(printf '\\x%02x' {1..40})"
golden edge/unknown_dtype.zt
t ls u.safetensors
for cast in f32 int8 int8,per=tensor int8,per=channel,axis=0 fx8 fx16,frac=auto sa8 mxfp4; do
    t convert u.safetensors out.zt --cast $cast
    t convert unknown_dtype.zt out.zt --cast $cast
done
t convert u.safetensors out.zt --sparse 2:4
t convert u.safetensors out.zt --form csr
t convert u.safetensors out.json --layout a=BA,from=AB --pad a=A=16
t convert u.safetensors out.zt
t convert u.safetensors out.zt --dry-run --cast sa8
t convert -q u.safetensors out.zt --cast int8,per=tensor --only b
t show u.safetensors a
t stats u.safetensors
t verify u.safetensors
t diff u.safetensors u.safetensors
t describe u.safetensors a
t compare-types u.safetensors --types mxfp4
t export-c u.safetensors --plan
t serve u.safetensors --socket s
