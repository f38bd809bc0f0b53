# device says what the host asks of memory; what differs between machines is left out.
t device | sed 's/^\(  \(page\|huge page\|pinned memory\|memory\|dma_buf_fd\|cuda_ipc\)  *\).*/\1N/; s/^\(  handles  *memfd\).*/\1/'
tenon device --json | sed 's/\(page_size\|pinned_bytes\|memory_bytes\)": [^,]*/\1": N/g; s/\("handles": \["memfd"\)[^]]*/\1/
                           s/\("type": "\(dma_buf_fd\|cuda_ipc\)", "available": \)[^}]*/\1N/g'
