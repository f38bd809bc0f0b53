# --sparse N:M keeps the N largest of each M values.
weights w.safetensors
t convert -n w.safetensors sparse.zt --sparse '*.weight=2:4'
t convert -q w.safetensors sparse.zt --sparse '*.weight=2:4'
t ls -l sparse.zt
t convert -q w.safetensors virtual.zt --sparse '*.weight=2:4' --virtual
t ls virtual.zt
t diff sparse.zt virtual.zt
t stats virtual.zt
t convert -q -f w.safetensors virtual.zt --sparse '*.weight=2:4' --virtual --report
t convert -q w.safetensors first.zt --sparse a.weight=2:4 --cast '*.weight=mxfp8'
t ls first.zt
t convert -q w.safetensors inside.zt --only a.weight --cast 'e2m1fnuz|e8m0_t32n2m4' --report
t ls -l inside.zt
for rule in 4:4 2:3 x=y mxfp4 2:4,mode=max; do
    t convert w.safetensors o.zt --sparse $rule
done
t convert w.safetensors o.zt --sparse 2:4
t convert w.safetensors o.zt --cast '*.weight=2:4,mode=max'
ls
