# What cannot be written is said before anything is written.
sample s.safetensors
golden edge/crc_bad.zt edge/unknown_dtype.zt edge/trunc_15.zt
t convert -q s.safetensors out.unknown
t convert -q s.safetensors out
t convert -q s.safetensors out.zt --option safetensors.filler=yes
t convert -q s.safetensors out.zt --filler --align 64
t convert -q s.safetensors out.zt --btf-coo-code=1
t convert -q s.safetensors out.zt --mtx-symmetric
t convert -q s.safetensors out.zt --ocp-names
t convert -q s.safetensors out.zt --shard-size 1K
t convert -q s.safetensors out.zt --shard-size 1K
t convert -q s.safetensors out.safetensors --compress zstd
t convert -q s.safetensors out.safetensors --checksum crc32c
t convert -q crc_bad.zt out.zt
t convert -q unknown_dtype.zt out.safetensors
t convert -q trunc_15.zt out.zt
mkdir folder
mkfifo fifo
t convert -q s.safetensors folder --to ztensor
t convert -q s.safetensors folder --to ztensor --force
t convert -q s.safetensors fifo --to ztensor --force
t convert -q s.safetensors missing/out.zt
t convert -q s.safetensors s.safetensors/out.zt
ls -A
