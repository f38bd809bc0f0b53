# Recipes: rules in a file, and what is no such file.
sample s.safetensors
printf '%s\n' '# rules' '' 'a.weight=f16   # halves' '  *.bias=i8' >recipe
t convert -q s.safetensors o.zt --recipe recipe
t ls o.zt
printf '%s' 'a.weight=f16' >no_newline
t convert -q --force s.safetensors o.zt --recipe no_newline
# A rule of any length is a rule, up to a limit that nothing real reaches.
{ echo 'a.weight=f16'; printf '%65536s\n' '*.bias=i8'; } >long
t convert -q --force s.safetensors o.zt --recipe long
{ echo 'a.weight=f16'; printf '%65537s\n' '*.bias=i8'; } >longer
t convert -q --force s.safetensors o.zt --recipe longer
# A line without end in sight is not read to its end.
{ echo 'a.weight=f16'; head -c 100000000 /dev/zero; } 2>/dev/null | t convert -q --force s.safetensors o.zt --recipe /dev/stdin
t convert -q --force s.safetensors o.zt --recipe .
ls
