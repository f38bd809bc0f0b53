# A layout or padding that does not fit a tensor is an error, and nothing is written.
images i.safetensors
t convert i.safetensors o.zt --layout NHWC
t convert i.safetensors o.zt --layout images=NHWX,from=NCHW
t convert i.safetensors o.zt --layout images=NHW,from=NCHW
t convert i.safetensors o.zt --layout nothing=NHWC,from=NCHW
t convert i.safetensors o.zt --pad images=C=4
t convert i.safetensors o.zt --pad images=4=4
t convert i.safetensors o.zt --pad nothing=0=4
tenon convert -q i.safetensors nhwc.zt --layout images=NHWC,from=NCHW
t convert nhwc.zt o.zt --layout images=CHWN,from=NCHW
t convert nhwc.zt o.zt --pad images=C=4,value=7 --cast images=i8,per=tensor
t convert nhwc.zt o.zt --pad images=C=16,-1=5
t convert i.safetensors o.zt --layout NHWC,from=NCHW
t convert nhwc.zt o.zt --pad images=D=4
ls
