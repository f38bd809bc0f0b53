rm model.safetensors
data=$(printf '\\x00\\x00\\x80\\x3f%.0s' $(seq 224))
safetensors model.safetensors '{"conv1.weight":{"dtype":"F32","shape":[8,3,3,3],"data_offsets":[0,864]},"conv1.bias":{"dtype":"F32","shape":[8],"data_offsets":[864,896]}}' "$data"
cp "$GOLDEN/idx/int16.idx" weights.idx
