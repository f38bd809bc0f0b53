tenon convert -q model.safetensors npu.json --only '*layers.0.mlp.down_proj.weight' --layout IO,from=OI --pad O=512 --cast 'int8,per=channel,axis=0'
cp "$GOLDEN/descriptor/good/dynamic.json" tokens.json
cp "$GOLDEN/descriptor/specification/padding.json" padding.json
