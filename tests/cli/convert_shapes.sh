# --slice, --transpose, --reshape, --concat and --split: other indices, orders and shapes, in one pass with a cast.
images i.safetensors
t convert -n i.safetensors out.zt --slice images=0,1:,::2,-1
t convert -q i.safetensors slice.zt --slice images=0,1:,::2,-1
t show slice.zt images
t convert -q i.safetensors parts.zt --split 'images=channel.*,unstack=1' --cast 'channel.1=int8,per=tensor'
t ls parts.zt
t convert -n parts.zt whole.zt --concat 'images=channel.*,stack=1' --cast f32
t convert -qf i.safetensors parts.zt --split 'images=channel.*,unstack=1'
t convert -q parts.zt whole.safetensors --concat 'images=channel.*,stack=1'
t diff i.safetensors whole.safetensors
t convert -q i.safetensors matrix.zt --transpose images=1,0,2,3 --reshape images=3,-1
t ls matrix.zt
t convert -n parts.zt out.zt --concat 'all=channel.*,axis=1' --rename 'all=every' --pad every=0=4
t convert -n parts.zt out.zt --concat 'all=channel.*,axis=1' --rename 'all=every' --pad all=0=4
t convert -q i.safetensors many.zt --reshape images=24 --split 'images=e.*,unstack=0'
t convert -n many.zt out.zt --concat 'experts=e.*,stack=0'
t convert -n --json many.zt out.zt --only 'e.2*' --concat 'experts=e.*,stack=0'
t convert -qf parts.zt mixed.zt --cast channel.1=f16
t convert mixed.zt out.zt --concat 'images=channel.*,stack=1'
t convert -q mixed.zt same.zt --concat 'images=channel.*,stack=1' --cast f32
t ls same.zt
t convert parts.zt out.zt --slice channel.0=9
t convert parts.zt out.zt --slice channel.0=1:2:0
t convert parts.zt out.zt --transpose 0,0
t convert parts.zt out.zt --concat 'all=channel.*,along=1'
t convert parts.zt out.zt --split 'channel.0=a+b+c+d'
t convert parts.zt out.zt --concat 'all=none.*'
t help shapes
