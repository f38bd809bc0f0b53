# An existing file is replaced only with --force; input and output may be the same file.
sample s.safetensors
cp s.safetensors old.safetensors
echo precious >out.zt
t convert -q s.safetensors out.zt
cat out.zt
t convert -q s.safetensors out.zt --force
t ls out.zt
t convert -q s.safetensors s.safetensors
t convert -q s.safetensors s.safetensors --force --align 512
t diff old.safetensors s.safetensors
t convert -q out.zt out.zt -f --compress zstd --checksum crc32c
t ls out.zt
t diff old.safetensors out.zt
ls -A
