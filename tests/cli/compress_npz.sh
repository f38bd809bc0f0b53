# --compress deflate for .npz, and who else compresses with what.
sample s.safetensors
t convert -q s.safetensors d.npz --compress deflate --drop-metadata
t ls d.npz
t verify d.npz
t diff --ignore-metadata s.safetensors d.npz
t convert -n s.safetensors e.npz --compress deflate:9
t convert -q d.npz plain.npz
t ls plain.npz
t convert -q d.npz kept.zt
t ls kept.zt
t convert s.safetensors e.npz --compress zstd
t convert s.safetensors e.npz --compress deflate:10
t convert s.safetensors e.zt --compress deflate
t convert s.safetensors e.safetensors --compress deflate
cat "$GOLDEN/scipy/csr.npz" >csr.npz
t convert -q csr.npz small.npz --compress deflate
t ls small.npz
t convert csr.npz coo.npz --compress deflate --form coo
ls
