# --option FORMAT.KEY=VALUE: zTensor in the other byte order, and what is refused.
sample s.safetensors
t convert -q s.safetensors big.zt --option ztensor.byte-order=big --checksum crc32c
t ls -l big.zt
t verify big.zt
t diff s.safetensors big.zt
t show big.zt a.weight
t convert -q s.safetensors packed.zt --option ztensor.byte-order=big --compress zstd
t ls -l packed.zt
t diff big.zt packed.zt
t convert s.safetensors x.zt --option ztensor.byte-order=middle
t convert s.safetensors x.zt --option ztensor.order=big
t convert s.safetensors x.zt --option zt.byte-order=big
t convert s.safetensors x.npz --option npz.byte-order=big
t convert s.safetensors x.npz --option ztensor.byte-order=big
t convert s.safetensors x.zt --option ztensor.byte-order=big --option ztensor.byte-order=little
t convert s.safetensors x.zt --option byte-order=big
t convert s.safetensors x.zt --option ztensor.byte-order
t convert s.safetensors x.zt --option ztensor.=big
t convert s.safetensors x.zt --option .byte-order=big
t convert s.safetensors x.zt --option
ls
