# Codes of firmware that cannot be made are refused before anything is written.
sample s.safetensors
weights w.safetensors
t convert s.safetensors o.zt --cast a.weight=fx16,frac=127
t convert s.safetensors o.zt --cast a.weight=fx16,per=tensor
t convert s.safetensors o.zt --cast a.weight=sa8,frac=3
t convert s.safetensors o.zt --cast a.weight=sa8,scale=0.1
t convert s.safetensors o.zt --cast a.weight=sa8,scale=1,zero=32768
t convert s.safetensors o.zt --cast a.weight=sa8,scale=1,zero=asymmetric
t convert s.safetensors o.zt --cast a.weight=sa32,zero=asymmetric
t convert s.safetensors o.zt --cast a.weight=i8,compat=mli
t convert s.safetensors o.zt --cast a.weight=fx8,compat=mli,round=up
t convert s.safetensors o.zt --cast a.weight=fx8,compat=mli --round up
t convert s.safetensors o.zt --cast a.bias=fx8
t convert s.safetensors o.zt --pad a.weight=1=4,compat=mli,value=1
t convert s.safetensors o.zt --layout a.weight=1A,from=A1
tenon convert -q s.safetensors fx.zt --only a.weight --cast fx8
t convert -n fx.zt o.zt --cast fx8,frac=least
t convert -n fx.zt o.zt --cast sa8
t convert -n fx.zt o.zt --cast sa32
t convert -n fx.zt o.zt --cast i8,per=tensor
tenon convert -q w.safetensors mx.zt --only a.weight --cast mxfp4
t convert -n mx.zt o.zt --cast fx8
ls
