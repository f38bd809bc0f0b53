# A wrong command line is status 2 and a message that says what was expected.
t
t nonsense
t --nonsense
t help nonsense
t help ls ls
for command in ls show stats verify convert diff meta; do
    t $command
    t $command --nonsense x y
    t $command -z x y
done
t show one
t show one two three
t convert one
t convert one two three
t diff one two three
t meta one two
t formats one
t types one
t version one
t ls --json=yes x
t ls --from
t ls --from nonsense x
t ls --io nonsense x
t verify --jobs many x
t verify --jobs -1 x
t verify --jobs 5000 x
t convert a b --to nonsense
t convert a b --compress gzip
t convert a b --compress zstd:0
t convert a b --compress zstd:23
t convert a b --checksum md5
t convert a b --align 3
t convert a b --align 0
t convert a b --shard-size 1X
t convert a b --shard-size 99999999999G
t convert a b --rename nothing
t meta x --set nothing
t meta x --set =value
t meta x --unset a=b
