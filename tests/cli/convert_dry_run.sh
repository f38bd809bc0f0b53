# --dry-run says what would be written, checks as a real run does, and writes nothing.
sample s.safetensors
t convert --dry-run s.safetensors out.zt --only 'a.*' --rename a.bias=bias --checksum crc32c
t convert -n s.safetensors out.zt --compress zstd
t convert -n --json s.safetensors out.zt
t convert -n s.safetensors out.zt --only nothing
t convert -n s.safetensors out.unknown
ls
