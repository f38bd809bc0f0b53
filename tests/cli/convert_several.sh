# Several inputs become one file.
sample s.safetensors
t convert -q s.safetensors a.zt --rename '*=first.*'
t convert -q s.safetensors b.npz --rename '*=second.*' --drop-metadata
t convert -q a.zt b.npz all.zt
t ls all.zt
t diff a.zt all.zt
t convert a.zt s.safetensors again.zt --dry-run
echo 'twice'
t convert a.zt b.npz a.zt out.zt
echo 'missing'
t convert a.zt none.zt out.zt
echo 'one of the inputs'
t convert -q a.zt b.npz a.zt
t convert -q a.zt b.npz a.zt --force
t ls a.zt
t meta -q a.zt --set k=1
t meta -q all.zt --set k=2
t convert -q s.safetensors one.zt --drop-metadata
t meta -q one.zt --set k=2
t convert -q a.zt one.zt two.zt
t convert -q a.zt one.zt two.zt --drop-metadata
