# ls --json gives one object a file, one a line.
golden good/mixed.zt good/empty.zt
t ls --json mixed.zt empty.zt
sample s.safetensors
t ls --json s.safetensors
tenon convert -q s.safetensors shards.safetensors --shard-size 24
t ls --json shards.safetensors.index.json
