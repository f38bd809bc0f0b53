# convert goes there and back, raw and compressed, and nothing differs.
sample s.safetensors
t convert -q s.safetensors raw.zt
t convert -q s.safetensors packed.zt --compress zstd:19 --checksum crc32c
t convert -q packed.zt back.safetensors
t convert -q packed.zt sha.zt --checksum sha256 --compress none --align 4K --jobs 2
t ls -l raw.zt packed.zt sha.zt
t ls -l back.safetensors
for file in raw.zt packed.zt sha.zt back.safetensors; do
    t diff s.safetensors $file
done
t convert -q s.safetensors copy.bin --to ztensor
cmp raw.zt copy.bin && echo same bytes
t convert s.safetensors said.zt 2>&1 | sed 's/in [0-9.]* s (.*)/in TIME (RATE)/'
t convert --json s.safetensors json.zt | sed 's/"seconds": [0-9.e-]*/"seconds": TIME/'
golden good/zstd_crc.zt good/raw_big.zt
t convert -q zstd_crc.zt kept.zt
t ls kept.zt
t convert -q raw_big.zt big.safetensors
t diff raw_big.zt big.safetensors
