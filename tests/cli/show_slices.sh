# show --slice takes indices and ranges as Python does; long arrays are summarised unless --full.
data=
for i in $(seq 0 999); do
    data+=$(printf '\\x%02x\\x%02x' $((i * 2 % 256)) $(((i * 2 + 1) % 256)))
done
safetensors u.safetensors '{"u":{"dtype":"U8","shape":[20,10,10],"data_offsets":[0,2000]}}' "$data"
t show u.safetensors u
t show u.safetensors u --slice 3,4,5
t show u.safetensors u --slice -1,::-3
t show u.safetensors u --slice 0:2,...,7:
t show u.safetensors u --slice ...,0
t show u.safetensors u --slice 5:5
t show u.safetensors u --slice 2,:,::5 --io pread
t show u.safetensors u --slice 100:,0
t show u.safetensors u --slice 1,2,:3 --json
tenon show u.safetensors u --full | wc -l
tenon show u.safetensors u --json | wc -c
