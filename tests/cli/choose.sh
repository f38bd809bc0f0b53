# Which tensors, in which order, under which names: ls, show, diff and convert.
weights w.safetensors
safetensors m.safetensors '{"model.layers.10.q.weight":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"model.layers.9.q.weight":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},"model.layers.9.k.weight":{"dtype":"F16","shape":[2],"data_offsets":[16,20]},"model.layers.9.k.bias":{"dtype":"F16","shape":[],"data_offsets":[20,22]},"lm_head":{"dtype":"U8","shape":[2,5],"data_offsets":[22,32]},"lm_head.bias":{"dtype":"U8","shape":[],"data_offsets":[32,33]}}' \
    '\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x3c\x00\x40\x00\x3c0123456789a'
for key in name size type shape; do
    t ls m.safetensors --sort $key
done
t ls m.safetensors --sort colour
t ls m.safetensors --tree
t ls m.safetensors --tree --json
t ls m.safetensors --only '*.q.*'
t ls m.safetensors --exclude '*.q.*' --exclude lm_head
t ls m.safetensors --only 're:layers\.[0-9]+\.(q|k)\.weight$' --exclude 're:\.10\.'
t ls m.safetensors --exclude nothing
t ls m.safetensors --exclude 're:(q'
t ls m.safetensors --exclude 're:(q|k)\1'
t ls m.safetensors --exclude 're:((a{99}){99}){99}'
t ls m.safetensors --only 'lm_*' --json | grep -o '"name": "[^"]*"'
t stats m.safetensors --exclude '*weight' | grep -o '^[a-z0-9._]*'
t convert -q m.safetensors c.zt --exclude 'model*' --exclude lm_head
t ls c.zt
t convert m.safetensors x.zt --exclude '*'
t convert -q m.safetensors r.zt --rename 're:^model\.layers\.([0-9]+)\.(.)=blk.\1.attn_\2' --cast 're:[kq]\.(weight|bias)$=bf16' --cast 're:^lm_head(\.bias){0,1}$=i16'
t ls r.zt --tree
t convert -q m.safetensors x.zt --rename 're:(q)=\2'
t diff m.safetensors r.zt --only '*layers*'
t diff m.safetensors r.zt --only '*layers*' --rename 're:^model\.layers\.([0-9]+)\.(.)=blk.\1.attn_\2' --tolerance 0
t diff m.safetensors r.zt --only '*layers*' --rename 're:^model\.layers\.([0-9]+)\.(.)=blk.\1.attn_\2' --tolerance 0.001
t diff m.safetensors r.zt --exclude 're:.' --rename lm_haed=x
t convert -q w.safetensors q.zt --cast '*.weight=int8,per=tensor'
t diff w.safetensors q.zt --tolerance 1
t diff w.safetensors q.zt --tolerance 0.01,0.1 --only a.weight
t diff w.safetensors q.zt --tolerance -1
t diff w.safetensors q.zt --tolerance 1,x
t convert -q w.safetensors sparse.zt --form '*.weight=csr'
for file in w.safetensors q.zt sparse.zt; do
    t show $file a.weight --slice 1:3,:4
    t show $file a.weight --slice 1:3,:4 --json
done
