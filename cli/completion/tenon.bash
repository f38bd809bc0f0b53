# Bash completion for tenon(1).  The tool itself says what could follow: "tenon complete WORD...".

_tenon() {
    local -a words=('')
    local word line current joined=
    # Bash breaks the line at "=" and ":" too: --compress=zstd:3 is five words.
    for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
        if [[ -n $joined || ${#words[@]} -gt 1 && $word =~ ^[=:]$ ]]; then
            words[-1]+=$word
        else
            words+=("$word")
        fi
        joined=
        [[ $word =~ ^[=:]$ ]] && joined=yes
    done
    current=${words[-1]}
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
        :files)
            compopt -o filenames 2>/dev/null
            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "${current##*[=:]}")
            ;;
        :folders)
            compopt -o dirnames 2>/dev/null
            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -- "${current##*[=:]}")
            ;;
        *)
            line=${line%%$'\t'*}
            COMPREPLY+=("${line#"${current%"${current##*[=:]}"}"}")     # only what is behind the last break
            ;;
        esac
    done < <(tenon complete "${words[@]:1}" 2>/dev/null)
}

complete -F _tenon tenon
