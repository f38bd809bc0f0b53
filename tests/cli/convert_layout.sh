# --layout puts dimensions into another order, --pad adds elements around them; values stay what they are.
images i.safetensors
t convert -q i.safetensors nhwc.zt --layout images=NHWC,from=NCHW
t ls -l nhwc.zt
t show nhwc.zt images
t convert -q nhwc.zt nchw.safetensors --layout images=NCHW
t diff i.safetensors nchw.safetensors
t convert -n i.safetensors padded.zt --layout images=CHWN,from=NCHW --pad images=C=4,N=8
t convert -n --json i.safetensors padded.zt --layout images=CHWN,from=NCHW --pad images=C=4,N=8
t convert -q i.safetensors padded.zt --layout images=NHWC,from=NCHW --pad 'i*=C=4,value=7'
t ls -l padded.zt
t ls --json padded.zt
t show padded.zt images --slice 0
t convert -q padded.zt plain.safetensors --layout images=NCHW
t diff i.safetensors plain.safetensors
t convert -q i.safetensors wide.json --pad images=-1=4
od -An -tf4 -v -w16 wide.bin | head -n 4
t convert -q i.safetensors wide.safetensors --pad images=0=4
t ls -l wide.safetensors
t diff i.safetensors wide.safetensors
