# A descriptor and the bytes beside it are a container: any dump can be described and converted.
printf '%s' '{"version": "WIA-AI-011-v1.0", "name": "dump", "shape": {"dimensions": [2, 3], "layout": "RC"},
  "dtype": {"base_type": "INT16", "byte_order": "big_endian"},
  "memory": {"strides": [1, 4], "offset_bytes": 64, "total_bytes": 84, "alignment": 64}}' >dump.json
{ head -c 64 /dev/zero; printf '\x00\x00\x00\x01\xff\xff\xff\xff\x00\x02\x00\x03\xff\xff\xff\xff\x00\x04\x00\x05'; } >dump.bin
t check dump.json
t ls -l dump.json
t ls --json dump.json
t show dump.json dump
t stats dump.json
t convert -q dump.json dump.zt
t show dump.zt dump
t diff dump.json dump.zt
sample s.safetensors
t convert s.safetensors s.json -q
ls
t ls -l s.json
t verify s.json
t diff s.safetensors s.json
t convert -q s.json again.safetensors
cmp s.safetensors again.safetensors || t diff s.safetensors again.safetensors
t convert -q s.safetensors s.json
head -c 30 dump.bin >short && mv short dump.bin
t ls dump.json
rm dump.bin
t ls dump.json
