# An edit that cannot be done changes nothing.
sample s.safetensors
cp s.safetensors before
golden edge/trunc_15.zt
t meta s.safetensors --unset nothing
t meta s.safetensors --set a=1 --unset nothing
t meta s.safetensors --tensor nothing --set a=1
t meta s.safetensors --tensor nothing
t meta trunc_15.zt --set a=1
cmp s.safetensors before && echo unchanged
ls -A
