# ls shows one line a tensor and the totals; several files are listed one after another.
golden good/mixed.zt good/zero_elem.zt good/empty.zt edge/sparse_coo_coincident.zt
t ls mixed.zt
t ls zero_elem.zt empty.zt sparse_coo_coincident.zt
sample s.safetensors
t ls s.safetensors --io pread
t ls s.safetensors --io mmap --from safetensors
