# GGUF files: listing, metadata with types, editing, conversions, splits.
for name in kv_nested align64 cpp_all; do
    cp "$GOLDEN/gguf/files/$name.gguf" .
done
cp "$GOLDEN"/gguf/files/split-0000* .
cp "$GOLDEN"/gguf/hostile/{ttype_43,off_unaligned,miss-00001-of-00002,name_64}.gguf .
chmod u+w ./*.gguf
t ls align64.gguf
t ls -l kv_nested.gguf
t meta cpp_all.gguf
t meta align64.gguf --json
t ls ttype_43.gguf
t verify ttype_43.gguf
t ls off_unaligned.gguf
t ls miss-00001-of-00002.gguf

# edits keep types, or say them
t meta -q cpp_all.gguf --set t.u16=7 --set t.str=8 --set a.u8=[1,2] --set new=9 --set typed:i8=-3
t meta cpp_all.gguf --set t.u16=many
t meta cpp_all.gguf --set t.u16:u16=70000
t meta cpp_all.gguf --set general.alignment:u32=64
echo '["a", "b", "c"]' >tokens.json
t meta -q cpp_all.gguf --set-file tokens:json=tokens.json --set-file text=tokens.json
t meta cpp_all.gguf --set-file tokens:json=missing.json
t meta cpp_all.gguf | grep -e t.u16 -e t.str -e a.u8 -e new -e typed -e tokens -e text
python3 -c 'import json; print(json.dumps([f"token {i}" for i in range(1000)]))' >many.json
t meta -q cpp_all.gguf --set-file tokens=many.json
t meta cpp_all.gguf | grep tokens

# there and back
t convert -q align64.gguf between.safetensors
t convert -q between.safetensors back.gguf
t diff align64.gguf back.gguf
t convert -q align64.gguf values.zt --cast f32
t ls values.zt
t convert name_64.gguf out.gguf
t convert -q values.zt out.gguf --cast bool
t convert -q values.zt out.gguf --cast mxfp4

# splits
t ls split-00001-of-00003.gguf
t ls split-00002-of-00003.gguf
t convert -q split-0000* merged.gguf
t diff merged.gguf split-00001-of-00003.gguf
t convert -q merged.gguf set.gguf --shard-size 1K
t ls set-00001-of-00004.gguf
t convert merged.gguf set.gguf --shard-size 1K --force
