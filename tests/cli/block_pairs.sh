# Block types and datatypes of the same codes: bits move between GGUF and other formats, and come back.
to_codes=(--cast w.mxfp4=mxfp4 --cast 'w.q8_0=int8|float16_t32' --cast 'w.q4_0=int4|float16_t32'
    --cast 'w.q4_1=uint4|float16_float16_t32' --cast 'w.q5_0=int5|float16_t32' --cast 'w.q5_1=uint5|float16_float16_t32')
to_blocks=(--cast w.mxfp4=ggml:mxfp4 --cast w.q8_0=q8_0 --cast w.q4_0=q4_0 --cast w.q4_1=q4_1
    --cast w.q5_0=q5_0 --cast w.q5_1=q5_1)
all=(w.q4_0 w.q4_1 w.q5_0 w.q5_1 w.q8_0 w.mxfp4 w.nvfp4 w.f16)
only=()
for name in "${all[@]}"; do only+=(--only "$name"); done

# blocks to codes and back; every byte of the file is the same, metadata and order included
tenon convert -q "$GOLDEN/gguf/files/all_types.gguf" blocks.gguf "${only[@]}" && t ls blocks.gguf
tenon convert -q blocks.gguf values.npz --cast f32
for to in safetensors zt npz; do
    tenon convert -q blocks.gguf "codes.$to" "${to_codes[@]}" --cast w.nvfp4=nvfp4 && t ls "codes.$to"
    tenon convert -q "codes.$to" "values-$to.npz" --cast f32
    t diff values.npz "values-$to.npz"
    tenon convert -q "codes.$to" "back-$to.gguf" "${to_blocks[@]}" --cast w.nvfp4=ggml:nvfp4 && cmp blocks.gguf "back-$to.gguf" && echo "the same bytes from $to"
done

# codes to blocks and back; nvfp4 has a scale of the tensor, which blocks have not
tenon convert -q values.npz made.safetensors "${to_codes[@]}" --exclude w.nvfp4
tenon convert -q made.safetensors made.gguf "${to_blocks[@]}" && t ls made.gguf
tenon convert -q made.gguf again.safetensors "${to_codes[@]}" && cmp made.safetensors again.safetensors && echo 'the same bytes'
