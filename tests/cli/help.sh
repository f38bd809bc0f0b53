# Every command explains itself on one screen (--help) and in full (help COMMAND); topics take a screen or two.
commands='ls show stats verify convert quantize dequantize export-c compare-types report diff meta describe check serve attach compliance device plan run finish abandon uploads formats types datatypes version help'
topics=$(tenon help --json | jq -r '.topics[].name')
t --help
for command in $commands; do
    t $command --help
done
for command in $commands; do
    tenon help $command | cmp -s - <(tenon $command --help) || t help $command
done
for topic in $topics; do
    t help $topic
done
t help nothing
tenon -h | cmp - <(tenon --help)
diff <(tenon help --json | jq -r '.commands[].name') <(printf '%s\n' $commands)

# fits LINES WORD...: what "tenon WORD..." prints.
fits() {
    local lines=$1
    shift
    tenon "$@" | awk -v page="$*" -v lines="$lines" 'length > 80 { wide++ }
        END { if (NR > lines || wide) print page ": " NR " lines, " wide + 0 " too wide" }'
}
fits 24 help
for command in $commands; do
    fits 24 $command --help
done
for command in $commands; do
    fits 72 help $command
done
for topic in $topics; do
    fits 48 help $topic
done

# No option is left out: completion lists them all.
for command in $commands; do
    page=$(tenon help $command)
    for option in $(tenon complete $command - | cut -f 1); do
        grep -qE "^ +(-., )?$option( |,|\$)" <<<"$page" || echo "help $command has no $option"
    done
done
