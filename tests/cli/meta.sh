# meta shows and edits metadata; the data stays what it was.
sample s.safetensors
golden good/mixed.zt
t meta s.safetensors
t meta --json s.safetensors
t meta mixed.zt
for file in s.safetensors mixed.zt; do
    cp $file before
    t meta $file --set licence=MIT --set 'empty=' --set 'a=b=c' 2>&1 | sed 's/, [^,]* shared with the old file/, SHARED/; s/, data copied/, SHARED/'
    t meta $file
    name=$([ $file = mixed.zt ] && echo z || echo a.bias)
    t meta -q $file --tensor $name --set unit=metre
    t meta $file --tensor $name
    t meta $file --json --tensor $name
    t meta -q $file --set licence=ISC --unset empty
    t meta -q $file --tensor $name --unset unit
    t meta $file
    t diff --ignore-metadata before $file
done
