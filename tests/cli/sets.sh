# Several files replace others at one stroke: under names with an id, and what they replace is removed.
sample s.safetensors
t convert -q s.safetensors p.safetensors --shard-size 24
ls p*
t convert -q s.safetensors p.safetensors --shard-size 24
t convert -q s.safetensors p.safetensors --shard-size 24 --force
ls p*
t convert -q p.safetensors.index.json p.safetensors --shard-size 25 --force
ls p*
t diff s.safetensors p.safetensors.index.json
t verify p.safetensors.index.json

# What a crash can leave is told, and not touched.
cp s.safetensors p-00001-of-00002.safetensors
cp s.safetensors p-01234567-00002-of-00002.safetensors
t verify p.safetensors.index.json
t convert -q s.safetensors p.safetensors --shard-size 24 --force
t verify --json p.safetensors.index.json
rm p-00001-of-00002.safetensors p-01234567-00002-of-00002.safetensors
t convert -q s.safetensors p.safetensors
cp s.safetensors p.safetensors
t verify p.safetensors p.safetensors.index.json

# A single file takes the place of the set.
t convert -q s.safetensors p.safetensors --force
ls p*
t convert -q s.safetensors p.safetensors --shard-size 24
t convert -q s.safetensors p.safetensors --shard-size 24 --force
ls p*

# Descriptors and their data.
t convert -q s.safetensors r.json
t convert -q s.safetensors r.json --force
ls r*
grep '"data":' r.json
t diff s.safetensors r.json
echo old >r.bin
t verify r.json
