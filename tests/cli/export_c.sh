# Tensors for firmware: the plan, C source, an image, what is refused.
images in.safetensors
tenon convert in.safetensors fixed.zt --quiet --cast fx16,frac=auto --layout images=NHWC,from=NCHW
tenon convert in.safetensors scaled.zt --quiet --cast images=sa8,per=channel,axis=1 --cast bias=sa32
t export-c fixed.zt --plan
t export-c fixed.zt -o out --section .mli_data --align 8
cat out/fixed.h out/fixed.c
echo old >out/fixed.h
t export-c fixed.zt -o out
t export-c fixed.zt -o out --force --only 'b*' --json
t export-c fixed.zt -o out --binary --mli 1.1 --plan --name image
ls -A out
cat out/image.h
t export-c scaled.zt --plan --mli 2.0 --section .fast
t export-c scaled.zt --plan --mli 1.1 --json

t export-c scaled.zt -o no
t export-c in.safetensors -o no
t export-c in.safetensors -o no --json
t export-c fixed.zt
t export-c fixed.zt -o no --mli 3.0
t export-c fixed.zt -o no --align 3
t export-c fixed.zt -o no --align 2
t export-c fixed.zt -o no --name 'my-model'
t export-c fixed.zt -o no --section 'a b'
t export-c fixed.zt -o no --name net_
t export-c fixed.zt -o no --align 8K
t export-c fixed.zt -o ''
t export-c fixed.zt -o no --section .x --binary
t export-c fixed.zt -o no --only 'c*'
t export-c fixed.zt -o in.safetensors
t export-c missing.zt -o no
t export-c fixed.zt -o no/such/folder
ls -A
