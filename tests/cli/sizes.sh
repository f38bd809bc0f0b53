# Sizes: K, M, G and KiB, MiB, GiB are powers of 1024; KB, MB, GB are powers of 1000.
sample s.safetensors
for size in 64 64B 1K 1k 1KiB 1KIB; do
    tenon convert -q s.safetensors out.zt --force --align $size && tenon ls -l out.zt | grep a.bias
done
for size in 1KB 1kB 1Ki 1KK K 1.5K 1M1; do
    t convert -q s.safetensors out.zt --force --align $size
done
