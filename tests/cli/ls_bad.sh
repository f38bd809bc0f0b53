# A bad file gets a message with file, byte, thing, expected and found, and status 1; the others are listed all the same.
golden good/empty.zt edge/trunc_15.zt edge/wrong_magic.zt edge/missing_size.zt edge/offset_past_eof.zt edge/shape_neg.zt
t ls empty.zt trunc_15.zt wrong_magic.zt missing_size.zt offset_past_eof.zt shape_neg.zt empty.zt
golden edge/duplicate_names.zt edge/unknown_dtype.zt edge/unknown_encoding.zt edge/crc_noprefix.zt
t ls duplicate_names.zt
t ls -l unknown_dtype.zt unknown_encoding.zt crc_noprefix.zt
safetensors short.safetensors '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}' '\x01'
t ls short.safetensors
t ls --from ztensor short.safetensors
