# --cast with per= makes integer codes with scales; a cast to a float type gives the values back.
sample s.safetensors
images i.safetensors
t convert -n s.safetensors codes.zt --only a.weight --cast i8,per=tensor
t convert -q s.safetensors codes.zt --only a.weight --cast i8,per=tensor
t ls codes.zt
t ls -l codes.zt
t ls --json codes.zt
t show codes.zt a.weight
t show --json codes.zt a.weight
t stats codes.zt
t verify codes.zt
t diff --ignore-metadata s.safetensors codes.zt
t convert -q codes.zt values.zt --cast f32
t diff --ignore-metadata s.safetensors values.zt
t convert -q i.safetensors channels.zt --cast images=u4,per=channel,axis=C --layout images=NHWC,from=NCHW
t ls -l channels.zt
t show channels.zt images
t convert -q -f channels.zt channels.zt --layout images=CHWN
t ls -l channels.zt
t convert -q channels.zt values.json --cast '*=f32' --layout images=NCHW
t show values.json images --slice 1
for rule in i8,per=tensor,zero=asymmetric i8,per=tensor,percentile=50 i8,per=tensor,scale=0.5 i8,per=tensor,scale=0.5,zero=3 \
    i2,per=channel,axis=-1; do
    tenon convert -q -f s.safetensors codes.zt --only a.weight --cast $rule
    echo "$rule:"
    tenon show codes.zt a.weight | sed 1,2d
done
tenon convert -q s.safetensors a.zt --only a.weight --cast i8,per=tensor
tenon convert -q s.safetensors b.zt --only a.weight --cast i8,per=tensor,scale=0.05
t diff a.zt b.zt
t show a.zt a.weight --slice 0
