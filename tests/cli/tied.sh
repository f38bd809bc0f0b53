# Two names for one range of bytes: ls -l says so, the totals count the bytes once, and zTensor keeps them shared.
entry() { # NAME, one letter
    printf '\xa6\x64name\x61%s\x66offset\x18\x40\x64size\x04\x65dtype\x65uint8\x65shape\x81\x04\x68encoding\x63raw' "$1"
}
{
    printf 'ZTEN0001'
    head -c 56 /dev/zero
    printf '\x01\x02\x03\x04\x82'
    entry a
    entry b
    printf '\x71\0\0\0\0\0\0\0'
} >tied.zt
t ls -l tied.zt
t convert -q tied.zt copy.zt
t ls -l copy.zt
t convert -q tied.zt apart.safetensors
t ls -l apart.safetensors
t convert -q apart.safetensors again.zt
t ls -l again.zt
t diff tied.zt again.zt
