# BTF: it has no magic and no names, warnings go to stderr, and the entries of COO tensors are looked at by verify.
for file in edge/coo_f32 edge/coo_index_eq_dim edge/coo_unsorted edge/offset_misaligned_ok edge/trunc_data_1 ref_written/padding_0_to_7; do
    cat "$GOLDEN/btf/$file.btf" >"${file##*/}.btf"
done
t ls padding_0_to_7.btf
t ls -l --from btf coo_f32.btf
t ls --from btf offset_misaligned_ok.btf trunc_data_1.btf
t verify --from btf coo_f32.btf coo_index_eq_dim.btf coo_unsorted.btf
t verify --from btf --json coo_index_eq_dim.btf coo_unsorted.btf
t convert -q --from btf padding_0_to_7.btf again.btf
cmp padding_0_to_7.btf again.btf
t convert -q --from btf coo_f32.btf coo.zt
t verify coo.zt
sample a.safetensors
t convert a.safetensors a.btf
t convert --drop-metadata --only a.bias a.safetensors a.btf
ls
