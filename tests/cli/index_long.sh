# An index whose weight_map comes after much else is recognised by every command, whatever its name.
sample s.safetensors
tenon convert -q s.safetensors p.safetensors --shard-size 25B
long=$(printf '%05000d' 7)
map=$(sed 's/.*"weight_map"/"weight_map"/' p.safetensors.index.json)
printf '\n         {"metadata":{"total_size":29,"about":"\\u00e9%s"},"others":["%s",{"weight_map":{}},"WIA-AI-011"],%s' $long $long "$map" >p.json
cp p.json p.safetensors.index.json

t ls p.json
t ls p.safetensors.index.json --io pread
t show p.json a.bias
t stats p.json
t verify p.json
t meta p.json | cut -c -30
t convert -q p.json out.zt
t diff p.json s.safetensors | cut -c -40
t describe p.json b.flag | head -n 4
t compare-types p.json --types mxfp4

# What is damaged before it is said to be so, at its byte.
printf '{"about":"%s",,"weight_map":{}}' $long >bad.safetensors.index.json
t ls bad.safetensors.index.json
printf '{"about":"%s","weight_maps":{}}' $long >none.safetensors.index.json
t ls none.safetensors.index.json
printf '{"about":"%s"}' $long >none.json
t ls none.json
