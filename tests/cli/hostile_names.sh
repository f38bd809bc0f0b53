# A file cannot send control characters to the terminal, whatever prints its names.
header='{"__metadata__":{"k\u001b[2J":"v\u0007\u2028\u009b31m"},'
header+='"\u001b[31mred\u001b[0m":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
header+='"new\nline\ttab":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},'
header+='"\u202egnp.exe":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},'
header+='"\u007fdel \u0085 \\ \" é 名":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}}'
safetensors h.safetensors "$header" '\x01\x02\x03\x04'
t ls h.safetensors
t ls -l h.safetensors
t ls --json h.safetensors
t show h.safetensors $'\e[31mred\e[0m'
t show h.safetensors $'no\esuch' --full
t meta h.safetensors
t meta --json h.safetensors
t verify h.safetensors
t convert -n h.safetensors out.zt
cp h.safetensors $'odd\e[1mname.safetensors'
t verify $'odd\e[1mname.safetensors'
t ls $'missing\e[1m'
t $'\e[1m'
t ls $'--\e[1m'
