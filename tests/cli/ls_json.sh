# ls --json gives one object a file, one a line.
golden good/mixed.zt good/empty.zt edge/sparse_coo_coincident.zt edge/sparsecoo_too_large.zt
t ls --json mixed.zt empty.zt sparse_coo_coincident.zt
t verify --json sparsecoo_too_large.zt
sample s.safetensors
t ls --json s.safetensors
tenon convert -q s.safetensors shards.safetensors --shard-size 24
t ls --json shards.safetensors.index.json
