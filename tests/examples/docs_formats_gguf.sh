tenon convert -q model.safetensors plain.safetensors --exclude model.causal_mask
mv plain.safetensors model.safetensors
