# store=e4m3fn, store=e5m2: MXFP6 and MXFP4 as float8 numbers with their scales.
weights w.safetensors
t convert -q w.safetensors packed.zt --only '*.weight' --cast mxfp4
t convert -n w.safetensors f8.zt --only '*.weight' --cast mxfp4,store=e4m3fn
t convert -q w.safetensors f8.zt --only '*.weight' --cast mxfp4,store=e4m3fn
t ls f8.zt
t ls -l f8.zt
t ls --json f8.zt
t show f8.zt a.weight --slice 0,0:8
t show packed.zt a.weight --slice 0,0:8
t verify f8.zt
t diff packed.zt f8.zt
# Of the same codes: the same errors, and as many at the end of their scale.
tenon diff --ignore-metadata w.safetensors packed.zt | sed 's/[48].25 in B/N in B/' >a
tenon diff --ignore-metadata w.safetensors f8.zt | sed 's/[48].25 in B/N in B/' >b
cmp a b && cat b
t convert -q f8.zt values.zt --cast bf16
t convert -q w.safetensors virtual.zt --only '*.weight' --cast mxfp4 --virtual
t diff values.zt virtual.zt
for out in f8.safetensors f8.npz f8.json; do
    t convert -q w.safetensors $out --only '*.weight' --cast mxbf6,store=float8_e5m2
    t ls -l $out
done
t diff f8.safetensors f8.npz
t diff f8.safetensors f8.json
t stats f8.json
t convert w.safetensors x.zt --only '*.weight' --cast mxfp6,store=e5m2
t convert w.safetensors x.zt --only '*.weight' --cast mxint4,store=e4m3fn
t convert w.safetensors x.zt --only '*.weight' --cast icb44fi4_e32,store=e4m3fn
t convert w.safetensors x.zt --only '*.weight' --cast mxfp4,store=e3m4
t convert w.safetensors x.zt --only '*.weight' --cast mxfp4,store=e4m3fn,virtual=yes
