# report shows a file in the terminal, as JSON and as a page.
weights w.safetensors
tenon convert -q w.safetensors mx.zt --cast '*.weight=mxfp4'
t report w.safetensors
t report w.safetensors --types mxfp4,int8,per=tensor --against mx.zt
t report w.safetensors -o w.html --types mxfp4
t report w.safetensors -o w.html
t report w.safetensors -f -o w.html
head -c 15 w.html; echo
t report w.safetensors --only 'a.*' --json | cut -c 1-200
# twenty layers: one has NaN, one is 256 times as large
data= header=
for ((i = 0; i < 20; i++)); do
    header+="\"layers.$i.w\":{\"dtype\":\"BF16\",\"shape\":[4,8],\"data_offsets\":[$((64 * i)),$((64 * i + 64))]},"
    for ((k = 0; k < 32; k++)); do
        bits=$((15360 + (i * 7 + k * 13) % 64 + k % 2 * 32768))
        [ $i -eq 7 ] && [ $k -eq 3 ] && bits=32704
        [ $i -eq 12 ] && bits=$((bits + 1024))
        data+=$(printf '\\x%02x\\x%02x' $((bits % 256)) $((bits / 256)))
    done
done
safetensors l.safetensors "{${header%,}}" "$data"
t report l.safetensors
t report l.safetensors --types mxfp8
t report
t report w.safetensors --types mxpf4
t report missing.zt
t report w.safetensors --against missing.zt
t report w.safetensors --only x
t report w.safetensors -o nowhere/w.html
t report w.safetensors l.safetensors
ls
