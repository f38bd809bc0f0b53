# The types of embARC MLI: fx8, fx16, sa8, sa32 from values and from codes, back, described, and read from dumps.
sample s.safetensors
images i.safetensors
t convert -n i.safetensors fx.zt --cast fx16,frac=auto --layout images=NHWC,from=NCHW
t convert -q i.safetensors fx.zt --cast fx16,frac=auto --layout images=NHWC,from=NCHW
t ls -l fx.zt
t show fx.zt bias
t diff i.safetensors fx.zt --ignore-metadata
t stats fx.zt --only bias
t convert -q fx.zt back.zt --cast f32 --layout images=NCHW
t diff i.safetensors back.zt --ignore-metadata
for rule in fx8 fx8,frac=least fx8,frac=-1 fx8,frac=9 fx8,frac=0,round=even fx8,frac=0,compat=mli sa8 sa8,zero=asymmetric sa8,scale=0.25,zero=-3 \
    sa32 sa32,compat=mli; do
    tenon convert -q -f i.safetensors codes.zt --only bias --cast $rule
    echo "$rule:"
    tenon show codes.zt bias | sed 1,2d
done
t convert -q s.safetensors sa.zt --only a.weight --cast sa8,per=channel,axis=1 --pad 1=4
t show sa.zt a.weight
for rule in fx8 fx16,frac=4 sa8,scale=0.5,zero=3 sa32,scale=0.0001220703125; do
    tenon convert -q -f sa.zt codes.zt --cast $rule
    echo "$rule of sa8:"
    tenon show codes.zt a.weight | sed 1,2d
done
t convert -q fx.zt fx.json --only bias
t show fx.json bias
sed -n '/quantization/,/}/p' fx.json
t check fx.json
t convert -q fx.json fx.npz
t convert -q fx.npz fx.safetensors
t diff fx.safetensors fx.zt --ignore-metadata
cat "$GOLDEN/idx/int16.idx" >int16.idx
t show int16.idx int16 --from idx
t convert -q int16.idx values.zt --from idx --cast f32,times=0.0078125
t convert -q values.zt idx.zt --cast fx16,frac=7
t show idx.zt int16
printf '\x40\x00\xff\xc0' >dump.bin
cat >dump.json <<'END'
{"version": "WIA-AI-011-v1.0", "name": "gain", "shape": {"dimensions": [2]},
 "dtype": {"base_type": "INT16", "byte_order": "big_endian", "quantization": {"scheme": "per_tensor_symmetric", "scale": 0.00006103515625}},
 "memory": {"strides": [1], "offset_bytes": 0, "total_bytes": 4, "alignment": 256}}
END
t convert -q dump.json gain.zt --cast f32
t show gain.zt gain
t convert -q dump.json gain8.zt --cast fx8,frac=6
t show gain8.zt gain
