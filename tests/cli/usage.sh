# A wrong command line is status 2 and a message that says what was expected.
t
t nonsense
t --nonsense
t help nonsense
t help ls ls
for command in ls show stats verify convert compare-types diff meta describe check serve attach; do
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
t attach one two three
t compliance one
t device one
t formats one
t types one
t datatypes one
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
t convert a b --layout
t convert a b --layout NN
t convert a b --layout 'x=NH WC'
t convert a b --layout NHWC,to=NCHW
t convert a b --pad C
t convert a b --pad C=0
t convert a b --pad value=1
t describe x --force
t check x --bind batch
t check x --bind =3
t check x --bind batch=-1
t check x --bind batch=99999999999999999999
t check x --level 4
t compliance --level 0
t compliance --level all
