# A rule that cannot be read or honoured is an error that says where, and nothing is written.
sample s.safetensors
t convert s.safetensors o.zt --cast bf17
t convert s.safetensors o.zt --cast '*.bias=bf17'
t convert s.safetensors o.zt --cast f32,round=nearest
t convert s.safetensors o.zt --cast f32,times=0
t convert s.safetensors o.zt --cast f32,scale=2
t convert s.safetensors o.zt --cast nothing=f32
t convert s.safetensors o.zt --round up
t convert s.safetensors o.zt --cast f32 --round nearest
t convert s.safetensors o.zt --cast f32 --seed x
t convert s.safetensors o.zt --cast f32 --complex imaginary
printf '%s\n' '# rules' 'a.weight=f16' 'a.bias=f17' >recipe
t convert s.safetensors o.zt --recipe recipe
printf '# nothing\n' >empty
t convert s.safetensors o.zt --recipe empty
printf 'f16\n\0' >nul
t convert s.safetensors o.zt --recipe nul
t convert s.safetensors o.zt --recipe missing
t convert s.safetensors o.zt --cast a.bias=u8,overflow=error
safetensors c.safetensors '{"c":{"dtype":"C64","shape":[1],"data_offsets":[0,8]},"n":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}}' \
    '\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\xc0\x7f'
t convert c.safetensors o.zt --cast c=f32
t convert -q c.safetensors real.zt --cast c=f32 --complex real
t show real.zt c
t convert c.safetensors o.zt --cast n=i8
t convert -q c.safetensors zero.zt --cast n=i8 --nan zero
t show zero.zt n
ls
