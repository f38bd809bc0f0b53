# Helpers that every case has.

# Runs tenon; the command and a status other than 0 become part of the transcript.
t() {
    local word status
    printf '$ tenon'
    for word; do
        case $word in
        '' | *[!A-Za-z0-9_.,:=*/-]*) printf ' %q' "$word" ;;
        *) printf ' %s' "$word" ;;
        esac
    done
    echo
    tenon "$@"
    status=$?
    [ $status -eq 0 ] || echo "[exit $status]"
    return $status
}

# Copies golden files into the case's folder: golden good/mixed.zt
golden() {
    local file
    for file; do
        cat "$GOLDEN/ztensor/$file" >"${file##*/}"
    done
}

# Copies golden descriptors: descriptors good/dynamic.json
descriptors() {
    local file
    for file; do
        cat "$GOLDEN/descriptor/$file" >"${file##*/}"
    done
}

# Makes a safetensors file: safetensors FILE HEADER DATA, DATA with printf's escapes.
safetensors() {
    local LC_ALL=C size byte
    size=$(printf '%016x' ${#2})
    {
        for byte in 14 12 10 8 6 4 2 0; do
            printf "\\x${size:$byte:2}"
        done
        printf %s "$2"
        printf "$3"
    } >"$1"
}

# A small file of several types with metadata.
sample() {
    safetensors "$1" '{"__metadata__":{"format":"pt","note":"two\nlines"},"a.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"a.bias":{"dtype":"I16","shape":[2],"data_offsets":[24,28]},"b.flag":{"dtype":"BOOL","shape":[],"data_offsets":[28,29]}}' \
        '\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x40\x40\x00\x00\x80\x40\x00\x00\xa0\x40\x00\x00\xc0\x40\x01\x00\xff\xff\x01'
}

# Two images of three channels, 2x2, in the order NCHW, with the numbers 0 to 23; and two numbers.
images() {
    local data= hex
    for hex in 0000 3f80 4000 4040 4080 40a0 40c0 40e0 4100 4110 4120 4130 4140 4150 4160 4170 4180 4188 4190 4198 41a0 41a8 \
        41b0 41b8 3f00 bf00; do
        data+="\\x00\\x00\\x${hex:2:2}\\x${hex:0:2}"
    done
    safetensors "$1" '{"images":{"dtype":"F32","shape":[2,3,2,2],"data_offsets":[0,96]},"bias":{"dtype":"F32","shape":[2],"data_offsets":[96,104]}}' \
        "$data"
}

# bfloat16 weights from 1/128 to 4, both signs, an outlier among them; and what no datatype is for.
weights() {
    local data= i bits
    for ((i = 0; i < 448; i++)); do
        bits=$((15360 + i * 89 % 1152 + (i * 5 / 3 % 2) * 32768))
        [ $i -eq 300 ] && bits=17096
        data+=$(printf '\\x%02x\\x%02x' $((bits % 256)) $((bits / 256)))
    done
    safetensors "$1" '{"a.weight":{"dtype":"BF16","shape":[4,64],"data_offsets":[0,512]},"b.weight":{"dtype":"BF16","shape":[2,96],"data_offsets":[512,896]},"step":{"dtype":"I32","shape":[],"data_offsets":[896,900]}}' \
        "$data"'\x07\x00\x00\x00'
}
