rm model.safetensors
cp "$GOLDEN"/conventions/gptoss_mxfp4/* .
