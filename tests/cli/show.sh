# show prints values as NumPy does: aligned, nested, by type.
golden good/raw_little.zt good/zstd.zt good/raw_big.zt good/mixed.zt good/zero_elem.zt good/scalar.zt
for type in float64 float32 float16 bfloat16 int64 int8 uint64 bool; do
    t show raw_little.zt $type
done
t show zstd.zt int16
t show raw_big.zt uint32
t show mixed.zt z
t show mixed.zt s
t show zero_elem.zt z34
t show scalar.zt float32
