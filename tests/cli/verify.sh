# verify says what was checked and what had no checksum.
golden good/raw_crc.zt good/zstd_crc.zt good/mixed.zt good/empty.zt edge/sha256_checksum.zt
t verify raw_crc.zt zstd_crc.zt mixed.zt empty.zt sha256_checksum.zt
golden good/raw_little.zt good/zstd.zt edge/crc_noprefix.zt edge/unknown_encoding.zt
t verify raw_little.zt zstd.zt
t verify crc_noprefix.zt unknown_encoding.zt --jobs 1
t verify crc_noprefix.zt unknown_encoding.zt --jobs 1 --allow-unchecked
t verify --json mixed.zt crc_noprefix.zt
