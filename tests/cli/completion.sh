# Bash completion: what is offered behind some beginnings of a line.
. "$GOLDEN/../../cli/completion/tenon.bash"

# The words that completion offers for the last of the words given.
complete_line() {
    COMP_WORDS=(tenon "$@")
    COMP_CWORD=$#
    COMPREPLY=()
    _tenon
    echo "tenon $*:" $(printf '%s\n' "${COMPREPLY[@]}" | sort)
}

mkdir folder
touch file
complete_line ver
complete_line help d
complete_line export-c --o
complete_line attach --o
complete_line export-c -o f
complete_line export-c --out f
complete_line attach -o f
complete_line attach --out f
complete_line export-c --align ''
complete_line convert --align ''
complete_line convert --align = 4
complete_line convert --option ''
complete_line convert --to ''
complete_line convert --form ''
complete_line convert --form = c
complete_line convert --only f
complete_line convert --recipe f
