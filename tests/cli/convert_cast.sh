# --cast and --recipe make other elements of the tensors they match; the first rule counts.
sample s.safetensors
t convert -q s.safetensors out.zt --cast '*.weight=bf16' --cast 'a.*=f32'
t ls out.zt
t show out.zt a.weight
t diff --ignore-metadata s.safetensors out.zt
t convert -n s.safetensors out2.zt --cast '*.weight=f8e4m3fn' --cast i4,overflow=saturate
t convert -n s.safetensors out2.zt --cast i8 --json
printf '%s\n' '# first the weights' '' '  *.weight=i8,times=10   # tenths' '*=f16' >recipe
t convert -q s.safetensors out2.zt --recipe recipe
t show out2.zt a.weight
t show out2.zt a.bias
t convert -q s.safetensors out3.zt --cast a.weight=u8,times=-1 --overflow saturate
t show out3.zt a.weight
safetensors r.safetensors '{"r":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}' '\x00\x00\x20\x40\x00\x00\x20\xc0\x00\x00\x60\x40\x33\x33\x13\x40'
for round in even away zero half_up trunc up down; do
    tenon convert -q -f r.safetensors r.zt --cast i8 --round $round
    echo "$round: $(tenon show r.zt r)"
done
for jobs in 1 3; do
    tenon convert -q -f r.safetensors r.zt --cast i8 --round stochastic --seed 5 --jobs $jobs
    tenon show r.zt r
done
