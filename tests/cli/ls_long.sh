# ls -l adds offsets, alignment, metadata, tied names and, of a sharded set, the files.
golden good/raw_big.zt
t ls -l raw_big.zt
sample s.safetensors
t ls -l s.safetensors
tenon convert -q s.safetensors shards.safetensors --shard-size 24
t ls -l shards.safetensors.index.json
t ls shards.safetensors.index.json
tenon meta -q s.safetensors --tensor a.bias --set unit=metre
t ls -l s.safetensors
