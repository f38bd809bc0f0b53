# show, stats, diff and verify of a tensor of a datatype: by its values.
images i.safetensors
t convert -q i.safetensors q.zt --cast 'images=e2m1fnuz|e8m0_t4'
t convert -q i.safetensors z.zt --cast 'images=e2m1fnuz|e8m0_t4' --compress zstd --checksum crc32c
t show q.zt images
t show z.zt images --slice 1,0
t show --json q.zt images --slice 0,:,1,1
t show --json q.zt images | cut -c 1-200
t show q.zt images --slice 3
t stats --only images q.zt
t diff q.zt z.zt
t diff i.safetensors z.zt
t verify z.zt
