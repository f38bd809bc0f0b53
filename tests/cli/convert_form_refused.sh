# Forms that cannot be made are refused before anything is written.
safetensors s.safetensors '{"w":{"dtype":"F32","shape":[3,4],"data_offsets":[0,48]},"b":{"dtype":"I16","shape":[2],"data_offsets":[48,52]}}' \
    '\x00\x00\x00\x00\x00\x00\x80\x3f\x00\x00\x00\x00\x00\x00\x00\xc0\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x3e\x00\x00\x00\x00\x00\x00\x00\x80\x00\x00\x00\x00\x01\x00\x00\x00'
t convert s.safetensors o.zt --form csc
t convert s.safetensors o.zt --form csr,threshold=-1
t convert s.safetensors o.zt --form csr,sum
t convert s.safetensors o.zt --form nobody=csr
t convert s.safetensors o.zt --form csr
t convert -n s.safetensors o.zt --form w=csr --layout w=BA,from=AB
t convert s.safetensors o.zt --form w=csr --max-bytes 20
t convert s.safetensors o.npy --only w --form csr
t convert s.safetensors o.btf --only w --form csr --drop-names
tenon convert -q s.safetensors csr.zt --form w=csr
t convert -q csr.zt o.npz
rm o.npz
t convert csr.zt o.mtx
t convert -n csr.zt o.mtx --only w
t convert csr.zt o.npz --to scipy-npz
printf '%%%%MatrixMarket matrix coordinate real general\n2147483648 2147483648 1\n1 1 5\n' >bomb.mtx
t ls bomb.mtx
t convert bomb.mtx o.zt --form dense
t convert bomb.mtx o.zt --form csr
printf '%%%%MatrixMarket matrix coordinate integer general\n2 2 3\n2 2 5\n1 1 6\n2 2 7\n' >twice.mtx
t verify twice.mtx
t convert twice.mtx o.zt --form csr
t convert -q twice.mtx o.zt --form csr,duplicates=sum
tenon ls o.zt | tail -n 1
ls
