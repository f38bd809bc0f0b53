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
