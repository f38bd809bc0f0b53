# --form makes sparse tensors of dense ones, dense ones of sparse ones, and puts entries in order.
safetensors s.safetensors '{"w":{"dtype":"F32","shape":[3,4],"data_offsets":[0,48]},"b":{"dtype":"I16","shape":[2],"data_offsets":[48,52]}}' \
    '\x00\x00\x00\x00\x00\x00\x80\x3f\x00\x00\x00\x00\x00\x00\x00\xc0\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x3e\x00\x00\x00\x00\x00\x00\x00\x80\x00\x00\x00\x00\x01\x00\x00\x00'
t stats s.safetensors
t convert -n s.safetensors csr.zt --form w=csr
t convert -q s.safetensors csr.zt --form w=csr
t ls csr.zt
t ls -l csr.zt
t ls --json csr.zt
t show csr.zt w
t stats csr.zt
t verify csr.zt
t diff s.safetensors csr.zt
t convert -q csr.zt dense.safetensors --form dense
t diff s.safetensors dense.safetensors
t convert -q s.safetensors coo.zt --form '*=coo,threshold=0.5,index=uint64'
t ls coo.zt
t show coo.zt w
t diff csr.zt coo.zt
t convert -q csr.zt small.zt --cast w=bf16
t ls small.zt
t convert -q csr.zt w.mtx --only w
cat w.mtx
t ls -l w.mtx
t convert -q w.mtx w.npz --to scipy-npz --form csr
t ls w.npz
t convert -q csr.zt w.json --only w
t convert -q w.json again.zt
t ls again.zt
t convert -q csr.zt w.btf --only w --form coo --drop-names
t ls --from btf -l w.btf
