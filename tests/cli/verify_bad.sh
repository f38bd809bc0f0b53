# verify finds a flipped byte, wrong checksums and bad structure, goes on, and ends with the worst status.
golden good/raw_crc.zt good/zstd_crc.zt edge/crc_bad.zt edge/crc_nothex.zt edge/trunc_15.zt
printf '\xff' | dd of=raw_crc.zt bs=1 seek=70 conv=notrunc status=none
printf '\xff' | dd of=zstd_crc.zt bs=1 seek=70 conv=notrunc status=none
t verify raw_crc.zt zstd_crc.zt crc_bad.zt crc_nothex.zt trunc_15.zt
t verify --json raw_crc.zt trunc_15.zt
t verify crc_bad.zt missing.zt
