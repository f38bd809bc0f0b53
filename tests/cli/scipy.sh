# Matrices that SciPy saved: all formats are read, and stay matrices of SciPy.
for file in csr csc_wide bsr_blocks dia_long; do
    cat "$GOLDEN/scipy/$file.npz" >$file.npz
done
t ls csr.npz csc_wide.npz bsr_blocks.npz dia_long.npz
t verify dia_long.npz
t show dia_long.npz dia_long
t convert -q dia_long.npz same.npz
t ls -l same.npz
t diff dia_long.npz same.npz
t convert -q csc_wide.npz csr.npz -f --form csr --cast f32
t ls csr.npz
t convert -q csc_wide.npz plain.npz --to npz
t ls --json plain.npz
t convert -q csc_wide.npz dense.npz --form dense
t ls dense.npz
t convert csc_wide.npz half.npz --cast f16
ls
