# What a server offers can be listed, shown, checked and saved by others, as long as it runs.
sample sample.safetensors
images images.safetensors

# LeakSanitizer needs what a confined process has given up.
export ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0"

# serve OPTION... - in the background, until it is ready.
serve() {
    echo "$ tenon serve $* &"
    rm -f log                   # that of the server before is not to be taken for this one's
    tenon serve "$@" 2>log &
    server=$!
    for _ in $(seq 600); do
        [ -e log ] && grep -q "offered to" log && check_confined && return
        sleep 0.05
    done
    echo "the server is not ready"
}

# A process that says it is confined by seccomp is.
check_confined() {
    ! grep -q "; seccomp: " log || grep -q "^Seccomp:.*2" "/proc/$server/status" || echo "the server is not confined"
}

# Stops it; what it said becomes part of the transcript.  How far a process can be confined is the system's affair.
stop() {
    kill "$server"
    wait "$server"
    echo "serve: exit $?"
    sed -E 's/process [0-9]+/process N/; s/user [0-9]+/user N/; s/; (seccomp: .*|not confined)$/; CONFINED/; /: not confined:/d' log
    [ -e s ] && echo "the socket is still there"
}

echo "== Files"
serve sample.safetensors images.safetensors --socket s
t attach s
t attach s -l sample.safetensors
t attach s images --slice 0,1
t attach s sample.safetensors:a.bias
t attach s b.flag --json
t attach s --verify
t attach s --verify images.safetensors --json
t attach s -o both.zt
t attach s images.safetensors -o images.zt --quiet
t diff images.safetensors images.zt
t attach s sample.safetensors -o weight.npz --only '*.weight' --drop-metadata --quiet
t ls weight.npz
t attach s a.bias -o bias.zt --quiet
t attach s a.bias -o bias.zt
t ls bias.zt
t attach s a.bias -o other.zt --only b.flag
t attach s nothing
t attach s sample.safetensors:images
t attach s images.safetensors --slice 0
t attach s a.bias --verify
stop
t attach s

echo "== The same name in two files, compressed data, codes with scales"
weights weights.safetensors
tenon convert weights.safetensors packed.zt --cast '*.weight=mxfp4' --compress zstd --quiet
serve weights.safetensors packed.zt --socket s
t attach s packed.zt
t attach s a.weight
t attach s packed.zt:a.weight --slice 0,:4
stop

echo "== Tensors that others may write"
serve sample.safetensors packed.zt --socket s --writable
t attach s
t attach s sample.safetensors:a.weight
t attach s --json | sed -E 's/"handle": [0-9]+/"handle": N/; s/0x[0-9a-f]+/0xN/g'
t attach s -o loose.zt
t attach s -o loose.zt
t attach s -o bias.zt --only '*bias' --force --quiet
t attach s -o bias.zt --only nothing
t ls loose.zt bias.zt
t attach s --verify
stop

echo "== Files as they lie on the disk"
serve images.safetensors --socket s --in-place
t attach s
t attach s --in-place
t attach s --in-place --verify
stop

echo "== One socket"
serve sample.safetensors --socket s
t serve images.safetensors --socket s
disown "$server"
kill -9 "$server"
while kill -0 "$server" 2>/dev/null; do sleep 0.05; done
t attach s
serve images.safetensors --socket s --allow-uid 0 --allow-gid 4294967294
stop
t serve images.safetensors --socket images.safetensors
t serve images.safetensors --socket "$(printf %0200d 0)"
t serve images.safetensors --socket nowhere/s
mkdir folder
cp sample.safetensors folder
t serve sample.safetensors folder/sample.safetensors --socket s
t serve nothing.zt --socket s
t attach images.safetensors
tenon convert sample.safetensors folder/bad.zt --checksum crc32c --quiet
printf '\377' | dd of=folder/bad.zt bs=1 seek=70 conv=notrunc status=none
t serve folder/bad.zt --socket s
tenon convert packed.zt codes.zt --only '*.weight' --quiet
t serve codes.zt --socket s --writable
[ -e s ] && echo "the socket is still there"

echo "== Command lines"
t serve images.safetensors
t serve images.safetensors --socket s --in-place --writable
t serve images.safetensors --socket s --allow-uid root
t attach s --allow-uid 4294967295
t attach s --only 'a*'
t attach s --force
t attach s --compress zstd
t attach s --full
t attach s --slice 0
t attach s --verify -o x.zt
