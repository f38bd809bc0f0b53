# What a person types first: a file alone, other names of commands, words that are nearly right.
sample s.safetensors
weights w.safetensors
t s.safetensors
t ./s.safetensors w.safetensors
t --json s.safetensors | cut -c 1-60
t -l s.safetensors
t list s.safetensors
t info s.safetensors
t cat s.safetensors a.bias
t cp -q s.safetensors copy.zt
t list copy.zt
t quantize w.safetensors q.zt
t quantize -q w.safetensors q.zt --cast '*.weight=mxfp4'
t ls q.zt
t dequantize -q q.zt values.zt
t ls values.zt
t dequantize -q q.zt half.zt --cast '*.weight=f16'
t ls half.zt
t convert -q q.zt dense.zt --form dense
cmp values.zt dense.zt && echo the same
for name in list info cat cp; do
    t help $name | head -n 4
done
for word in lss sohw convret Verify quantise compare_types; do
    t $word s.safetensors
done
t missing.zt
t missing
t help covnert
t help rule
t help casts | head -n 2
t help forms | head -n 2
t ls --cast f16 s.safetensors
t convert --compres zstd s.safetensors x.zt -q
t convert --cats f16 s.safetensors x.zt
t convert s.safetensors x.zt --cast flaot32
t convert s.safetensors x.zt --cast mxpf4
t convert s.safetensors x --to safetensor
t convert -q s.safetensors x --to zt
t ls x | tail -n 1
t ls s.safetensors --from zt
t show s.safetensors a.wieght
t show s.safetensors bias
t show s.safetensors nothing
t describe s.safetensors a.biass
t meta s.safetensors --tensor b.flg
t convert s.safetensors y.zt --only a.weihgt
t convert s.safetensors y.zt --rename a.wegiht=b
t convert s.safetensors y.zt --cast a.wegiht=f16
