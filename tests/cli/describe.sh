# describe prints descriptors of tensors in any container, and can leave them beside the file.
sample s.safetensors
images i.safetensors
t describe s.safetensors a.bias
t describe s.safetensors a.bias b.flag | grep -c '"version"'
t describe s.safetensors | grep '"name"'
tenon convert -q i.safetensors n.zt --layout images=NHWC,from=NCHW --pad images=C=4 --cast images=i8,per=channel,axis=N
t describe n.zt images
t describe n.zt --sidecar
t describe n.zt --sidecar --quiet
t describe n.zt --sidecar --quiet --force
tenon describe n.zt | cmp - n.zt.wia.json
t check n.zt.wia.json
t describe n.zt nothing
t describe nothing.zt
rm n.zt.wia.json
mkdir n.zt.wia.json
t describe n.zt --sidecar --force
ls -A
