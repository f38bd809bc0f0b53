# --only and --rename choose and name the tensors that are written.
sample s.safetensors
t convert -q s.safetensors a.zt --only 'a.*'
t ls a.zt
t convert -q s.safetensors two.zt --only 'b.*' --only '*.bias' --rename b.flag=flag
t ls two.zt
t convert -q s.safetensors new.zt --rename 'a.*=layer.0.*'
t ls new.zt
t convert -q s.safetensors bad.zt --only 'c.*'
t convert -q s.safetensors bad.zt --rename nothing=x
t convert -q s.safetensors bad.zt --rename 'a.*=x.*' --rename a.bias=y
t convert -q s.safetensors bad.zt --rename a.weight=a.bias
t convert -q s.safetensors bad.zt --rename 'a*b*=c'
ls
