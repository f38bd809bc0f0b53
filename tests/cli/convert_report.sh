# --report says what datatypes did to each tensor.
weights w.safetensors
t convert -q w.safetensors o.zt --cast a.weight=mxfp4 --cast b.weight=int8_f --report
t convert -q -f w.safetensors o.zt --cast a.weight=mxfp4 --cast b.weight=int8_f --report --json >json
sed 's/"seconds": [^}]*/"seconds": S/' json
t convert -q -f w.safetensors o.zt --cast '*.weight=mxfp4,virtual=yes' --report
t convert -q -f w.safetensors o.zt --only a.weight --cast mxfp4 --scale-mode mse --report
t convert -q -f w.safetensors o.zt --only a.weight --cast bfloat16\|float32 --report
safetensors empty.safetensors '{"w":{"dtype":"F32","shape":[0,32],"data_offsets":[0,0]}}' ''
t convert -q -f empty.safetensors o.zt --cast mxfp4 --report
names= offsets=0 data=
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
    names+=${names:+,}$(printf '"w%d":{"dtype":"F32","shape":[2],"data_offsets":[%d,%d]}' $i $offsets $((offsets + 8)))
    offsets=$((offsets + 8))
    data+=$(printf '\\x00\\x00\\x80\\x3f\\x00\\x%02x\\x01\\x3f' $((i * 17 % 13 * 16)))
done
safetensors many.safetensors "{$names}" "$data"
t convert -q many.safetensors many.zt --cast mxfp8 --report
t diff many.safetensors many.zt
t convert -q -f w.safetensors o2.zt --only a.weight --cast int8,per=channel,axis=0 --report
t convert -q o2.zt o3.zt --cast fx8 --report
rm o2.zt o3.zt
t convert w.safetensors o2.zt --cast '*.weight=mxfp4' --report -n
t convert w.safetensors o2.zt --report
t convert w.safetensors o2.zt --cast '*.weight=f32' --report
safetensors nan.safetensors '{"v":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"w":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}' \
    '\x00\x00\x80\x3f\x00\x00\x80\x3f\x00\x00\x80\x3f\x00\x00\xc0\x7f'
t convert nan.safetensors o2.zt --cast mxfp4 --report
t convert nan.safetensors o2.zt --cast mxfp4 --report --json >json
sed 's/"seconds": [^}]*/"seconds": S/' json
ls
