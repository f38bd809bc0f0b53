rm model.safetensors
data=$(printf '\\x00\\x00\\x80\\x3f%.0s' $(seq 66))
safetensors model.safetensors '{"conv1.weight":{"dtype":"F32","shape":[4,3,2,2],"data_offsets":[0,192]},"fc1.weight":{"dtype":"F32","shape":[3,5],"data_offsets":[192,252]},"fc1.bias":{"dtype":"F32","shape":[3],"data_offsets":[252,264]}}' "$data"
