# What is no regular file, or is not there, is refused by every command with status 3.
mkdir folder
mkfifo fifo
golden good/empty.zt
for command in ls verify meta; do
    t $command missing.zt
    t $command folder
    t $command fifo
done
t show missing.zt x
t show fifo x
t convert fifo out.zt
t convert missing.zt out.zt
t diff missing.zt empty.zt
t diff fifo folder
t meta missing.zt --set a=b
t meta folder --set a=b
ls
