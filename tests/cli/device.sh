# device says what the host asks of memory; what differs between machines is left out.
t device | sed 's/^\(  \(page\|huge page\|pinned memory\|memory\)  *\).*/\1N/'
tenon device --json | sed 's/\(page_size\|pinned_bytes\|memory_bytes\)": [^,]*/\1": N/g'
