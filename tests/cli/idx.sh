# IDX: read where --from asks for it, called after the file, not written.
for file in digits-idx3-ubyte int16.idx float32.idx scalar.idx; do
    cat "$GOLDEN/idx/$file" >"$file"
done
t ls -l digits-idx3-ubyte
t ls -l --from idx digits-idx3-ubyte int16.idx
t show int16.idx int16 --from idx
t show scalar.idx scalar --from idx
t verify --from idx digits-idx3-ubyte
t convert -q digits-idx3-ubyte digits.npy --from idx
t show digits.npy digits --slice 0
t convert -q float32.idx f.zt --cast f64 --from idx
t show f.zt float32
head -c 39 digits-idx3-ubyte >cut-idx3-ubyte
{ cat int16.idx; echo; } >long.idx
printf '\0\0\12\1\0\0\0\1\7' >other.idx
t ls --from idx cut-idx3-ubyte
t ls --from idx long.idx
t ls --from idx other.idx
t convert f.zt f.idx
t convert f.zt f-idx3-ubyte
ls
