# describe prints descriptors of tensors in any container, and can leave them beside the file.
sample s.safetensors
images i.safetensors
t describe s.safetensors a.bias
t describe s.safetensors a.bias b.flag | grep -c '"version"'
t describe s.safetensors | grep '"name"'
tenon convert -q i.safetensors n.zt --layout images=NHWC,from=NCHW --pad images=C=4 --cast images=i8,per=channel,axis=N
t describe n.zt images
t describe n.zt --sidecar
t describe n.zt --sidecar --quiet
t describe n.zt --sidecar --quiet --force
tenon describe n.zt | cmp - n.zt.wia.json
t check n.zt.wia.json
printf '%s' '{"version": "WIA-AI-011-v1.0", "name": "s", "format": "CSR", "shape": [2, 3], "row_pointers": [0, 1, 3],
  "column_indices": [2, 0, 1], "values": [1, -2, 0.1]}' >sparse.json
tenon convert -q sparse.json sparse.zt
t describe sparse.zt
tenon convert -q sparse.json sparse.btf --form coo,index=uint64 --drop-names
t describe sparse.btf --from btf
rm sparse.*
t describe n.zt nothing
t describe nothing.zt
rm n.zt.wia.json
mkdir n.zt.wia.json
t describe n.zt --sidecar --force
ls -A
