# safetensors: --align moves the data section, the option filler every tensor; --shard-size splits.
sample s.safetensors
t convert -q s.safetensors a.safetensors --align 256
t ls -l a.safetensors
t convert -q s.safetensors f.safetensors --align 256 --option safetensors.filler=yes
t ls -l f.safetensors
t diff s.safetensors f.safetensors
t convert -q s.safetensors p.safetensors --shard-size 25B
ls p*
t ls p.safetensors.index.json
t diff s.safetensors p.safetensors.index.json
