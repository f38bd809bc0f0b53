# Every command and topic explains itself on one screen, with an example.
commands='ls show stats verify convert quantize dequantize export-c compare-types diff meta describe check serve attach compliance device formats types datatypes version help'
topics='rules cast fixed-point shapes layouts sparse exit output input'
t --help
for command in $commands; do
    t $command --help
    tenon help $command | cmp - <(tenon $command --help) || echo "help $command is something else"
done
for topic in $topics; do
    t help $topic
done
t help nothing
tenon -h | cmp - <(tenon --help)
for page in '' $commands $topics; do
    tenon help $page | awk -v page="$page" 'length > 80 { wide++ } END { if (NR > 24 || wide) print "help " page ": " NR " lines, " wide + 0 " too wide" }'
done

# No option is left out: completion lists them all.
shared=$(for topic in $topics quantize; do tenon help $topic; done)
for command in $commands; do
    page=$(tenon help $command)
    for option in $(tenon complete $command - | cut -f 1); do
        grep -qE "^ +(-., )?$option( |,|\$)" <<<"$page $shared" || echo "help has no $option of $command"
    done
done
