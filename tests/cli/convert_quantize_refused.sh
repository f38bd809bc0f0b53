# Codes with scales that make no sense are refused before anything is written.
sample s.safetensors
t convert s.safetensors o.zt --cast a.weight=i8,per=row
t convert s.safetensors o.zt --cast a.weight=i8,per=channel
t convert s.safetensors o.zt --cast a.weight=i8,axis=0
t convert s.safetensors o.zt --cast a.weight=i8,scale=2
t convert s.safetensors o.zt --cast a.weight=i8,per=channel,axis=2
t convert s.safetensors o.zt --cast a.weight=i8,per=channel,axis=C
t convert s.safetensors o.zt --cast a.weight=u8,per=tensor,zero=symmetric
t convert s.safetensors o.zt --cast a.weight=f16,per=tensor
t convert s.safetensors o.zt --cast a.weight=i8,per=tensor,zero=3
t convert s.safetensors o.zt --cast a.weight=i8,per=tensor,percentile=101
t convert s.safetensors o.zt --cast a.bias=i8,per=tensor
tenon convert -q s.safetensors codes.zt --only a.weight --cast i8,per=tensor
t convert -n codes.zt o.zt --cast i8,per=tensor
t convert -n codes.zt o.zt --cast i16
t convert s.safetensors o.zt --cast a.weight=i8,per=tensor,scale=0.1 --overflow inf
t convert s.safetensors o.zt --cast a.weight=fx8,frac=7 --overflow inf
t convert s.safetensors o.zt --cast a.weight=fx8,frac=7 --cast a.bias=u8 --overflow inf
t convert s.safetensors o.zt --cast a.weight=fx8,frac=7 --cast a.bias=u8,overflow=error
t convert s.safetensors o.zt --cast a.weight=mxfp4 --overflow inf --scale-mode mse
t convert -n s.safetensors o.zt --cast a.weight=fx8,frac=7 --overflow saturate
ls
