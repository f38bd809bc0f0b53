# Every command explains itself, with an example.
t --help
for command in ls show stats verify convert export-c compare-types diff meta describe check serve attach compliance device formats types datatypes version help; do
    t $command --help
    tenon help $command | cmp - <(tenon $command --help) || echo "help $command is something else"
done
tenon -h | cmp - <(tenon --help)
