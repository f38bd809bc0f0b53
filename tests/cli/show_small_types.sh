# show decodes types narrower than a byte and those of eight bits.
safetensors f.safetensors '{"f4":{"dtype":"F4","shape":[2,8],"data_offsets":[0,8]},"e4m3":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[8,12]},"c":{"dtype":"C64","shape":[2],"data_offsets":[12,28]}}' \
    '\x10\x32\x54\x76\x98\xba\xdc\xfe\x7e\x7f\x38\x80\x00\x00\x80\x3f\x00\x00\x00\xc0\x00\x00\xc0\x7f\x00\x00\x80\x3e'
for name in f4 e4m3 c; do
    t show f.safetensors $name
done
t show f.safetensors f4 --slice 1,1:
t show f.safetensors f4 --slice 1,1: --io pread
t show f.safetensors e4m3 --slice 0
t show f.safetensors c --json
t show f.safetensors e4m3 --json
