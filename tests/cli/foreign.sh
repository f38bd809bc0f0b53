# Files of other programs are named.
for file in "$GOLDEN"/foreign/*; do
    cat "$file" >"${file##*/}"
done
rm foreign.tsv
for file in *; do
    t ls "$file"
done
t convert page.safetensors out.zt
