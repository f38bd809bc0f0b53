# A cast that loses much says so once; --strict and the modes of casts refuse it.
safetensors w.safetensors '{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"b":{"dtype":"F32","shape":[2],"data_offsets":[16,24]}}' \
    '\x0a\xd7\xa3\x3c\x00\x00\x80\x3f\x00\x00\x00\x00\x00\x00\x96\x43\x0a\xd7\xa3\x3c\x0a\xd7\xa3\xbc'
t convert -q w.safetensors o.zt --cast int8
t show o.zt a
t convert -q --force w.safetensors o.zt --cast b=f32 --cast a=int8
t convert -q --force w.safetensors o.zt --cast b=f8_e4m3fn
t convert -q --force w.safetensors o.zt --cast bf16
t convert -q --json --force w.safetensors o.json.zt --cast a=i8 | sed 's/"seconds": [0-9.e-]*/"seconds": S/'
rm o.zt o.json.zt
t convert -q w.safetensors o.zt --cast int8 --strict
t convert -q w.safetensors o.zt --cast int8 --underflow error
t convert -q w.safetensors o.zt --cast a=int8 --overflow error --only a
t convert -q w.safetensors o.zt --cast a=mxfp4,underflow=error
t convert -q w.safetensors o.zt --cast 'a=int8,per=tensor' --underflow error
t convert -q w.safetensors o.zt --cast 'a=int8,per=tensor,scale=1' --overflow error
t convert w.safetensors o.zt --cast int8 --underflow maybe
ls
