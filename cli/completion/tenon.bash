# Bash completion for tenon(1).

# The names after "name" in `tenon formats`; asked, so that it is never out of date.
_tenon_formats() {
    tenon formats 2>/dev/null | sed -n '2,/^$/s/ .*//p'
}

# The options of one format, FORMAT.KEY=VALUE: below the table of `tenon formats`.
_tenon_format_options() {
    local key values value
    tenon formats 2>/dev/null | sed -n 's/^  \([a-z-]*\.[a-z-]*\)=\([^ ]*\).*/\1 \2/p' |
        while read -r key values; do
            for value in ${values//|/ }; do echo "$key=$value"; done
        done
}

# The layouts with a name.
_tenon_layouts() {
    tenon device --json 2>/dev/null | sed -n 's/.*"layouts": \[\([^]]*\)\].*/\1/p' | tr -d '",'
}

# The short names of `tenon types`.
_tenon_types() {
    tenon types --json 2>/dev/null | sed -n 's/.*"short": "\([^"]*\)".*/\1/p'
}

# The names of `tenon datatypes`.
_tenon_datatypes() {
    tenon datatypes 2>/dev/null | sed -n '2,$s/ .*//p'
}

_tenon_options() {
    local input='--from --io' common='--json --help'
    case $1 in
    ls | list | info) echo "-l --only --exclude --sort --tree $input $common" ;;
    show | cat) echo "--slice --full --memory --max-bytes $input $common" ;;
    stats) echo "--only --exclude --jobs --memory --max-bytes $input $common" ;;
    verify) echo "--jobs --memory $input $common" ;;
    convert | quantize | dequantize | cp)
        echo "--to --only --exclude --rename --cast --recipe --round --overflow --nan --seed --complex --sparse --virtual --scale-mode --rotate --dialect --report" \
            "--slice --transpose --reshape --concat --split --layout --pad --form --compress --checksum --align --shard-size --drop-metadata --drop-names --raw --option" \
            "--dry-run --force --jobs --memory --max-bytes --quiet $input $common"
        ;;
    export-c) echo "-o --out --mli --section --align --name --binary --plan --only --exclude --force --memory --max-bytes --quiet $input $common" ;;
    compare-types) echo "--types --only --exclude --nan --scale-mode --rotate --jobs --memory --max-bytes $input $common" ;;
    diff) echo "--only --exclude --rename --tolerance --ignore-metadata --jobs --memory --max-bytes $input $common" ;;
    meta) echo "--tensor --set --unset --quiet $common" ;;
    describe) echo "--sidecar --max-bytes --force --quiet $input --help" ;;
    check) echo "--strict --bind --level $common" ;;
    serve) echo "--socket --allow-uid --allow-gid --writable --in-place --memory --max-bytes --quiet $input --help" ;;
    attach)
        echo "-l --slice --full --verify -o --out --to --only --exclude --compress --checksum --drop-metadata --drop-names --force --in-place --allow-uid" \
            "--jobs --memory --max-bytes --quiet $common"
        ;;
    compliance) echo "--level $common" ;;
    device | formats | types | datatypes | version) echo "$common" ;;
    help) echo --help ;;
    esac
}

# _tenon_values OPTION COMMAND - words for its value.
_tenon_values() {
    case $1 in
    --to | --from) _tenon_formats ;;
    --compress) echo zstd zstd:1 zstd:3 zstd:9 zstd:19 none ;;
    --checksum) echo crc32c sha256 none ;;
    --io) echo mmap pread ;;
    --cast) _tenon_types; echo "sa8 sa32"; _tenon_datatypes ;;
    --types) _tenon_datatypes ;;
    --sparse) echo 1:2 2:4 4:8 8:16 ;;
    --scale-mode) echo max floor auto midmax topbinade option3 ceil mse ;;
    --rotate) echo none hadamard16 hadamard32 hadamard64 hadamard128 walsh16 walsh32 walsh64 walsh128 ;;
    --dialect) echo ocp ggml ;;
    --round) echo even away zero half_up trunc up down stochastic ;;
    --overflow) echo default saturate inf nan error ;;
    --nan) echo keep zero error ;;
    --complex) echo real ;;
    --layout) _tenon_layouts ;;
    --form) echo dense coo csr ;;
    --option) _tenon_format_options ;;
    --level) echo 1 2 3 ;;
    --sort) echo name size type shape ;;
    --mli) echo 1.0 1.1 2.0 ;;
    --align) if [ "$2" = export-c ]; then echo 4 8 64 4K; else echo 64 4K 2M; fi ;;
    --shard-size) echo 1G 5G ;;
    esac
}

_tenon() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}
    local commands='ls list info show cat stats verify convert cp quantize dequantize export-c compare-types diff meta describe check serve attach compliance device formats types datatypes version help'
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "$commands --help --version" -- "$current")
        return
    fi
    # Bash breaks the line at "=" too: --compress=zstd is three words.
    if [ "$previous" = = ]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    elif [ "$current" = = ]; then
        current=
    fi
    case $previous in
    --to | --from | --compress | --checksum | --io | --align | --shard-size | --cast | --round | --overflow | --nan | \
        --complex | --sparse | --types | --scale-mode | --rotate | --dialect | --layout | --form | --option | --level | --mli | --sort)
        mapfile -t COMPREPLY < <(compgen -W "$(_tenon_values "$previous" "$command")" -- "$current")
        return
        ;;
    --slice | --transpose | --reshape | --concat | --split | --only | --exclude | --tolerance | --rename | --seed | --pad | --max-bytes | --bind | --allow-uid | --allow-gid | --tensor | --set | --unset | --section | --name | --jobs | --memory | -j)
        return
        ;;
    esac
    if [[ $command = export-c && $previous =~ ^(-o|--out)$ ]]; then
        compopt -o dirnames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -d -- "$current")
    elif [[ $current = -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_tenon_options "$command")" -- "$current")
    elif [ "$command" = help ]; then
        mapfile -t COMPREPLY < <(compgen -W "$commands rules cast fixed-point shapes layouts sparse exit output input" -- "$current")
    else
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
    fi
}

complete -F _tenon tenon
