tenon convert -q model.safetensors pruned.zt --only '*layers.0.mlp.*.weight' --form csr,threshold=0.04
tenon convert -q pruned.zt pruned.safetensors --form dense
rm pruned.zt
