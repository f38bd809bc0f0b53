# PyTorch checkpoints: what ls, verify, show, convert and diff do with them.
P=$GOLDEN/pytorch
for file in "$P/v2.15/checkpoint.pt" "$P/v2.15/views.pt" "$P/v2.15/quantized.pt" "$P/v2.15/sparse.pt" \
            "$P/v2.15/torchscript_constants.pt" "$P/v2.15/module_unknown.pt" "$P/v1.1/state_dict.pt" \
            "$P/v2.15/conj_neg.pt" "$P/edge/code_value.pt" "$P/edge/code_instead_of_tensor.pt" \
            "$P/edge/ok_big_endian.pt" "$P/edge/ok_deflated.pt" "$P/edge/expand_bomb.pt" "$P/edge/name_clash.pt" \
            "$P/edge/storage_missing.pt" "$P/edge/code_crc_wrong.pt"; do
    cat "$file" >"${file##*/}"
done

# Listing
t ls state_dict.pt
t ls -l views.pt --only 't*' --only 'e*'
t ls quantized.pt
t ls sparse.pt
t ls module_unknown.pt
t ls torchscript_constants.pt
t ls conj_neg.pt
t show conj_neg.pt conj

# What Python would run is named, and not run.
t ls code_value.pt
t ls code_instead_of_tensor.pt
t verify code_value.pt
t verify views.pt

# Metadata
t ls -l checkpoint.pt --only ema.shadow.0

# Converting
t convert -q state_dict.pt a.safetensors
t diff state_dict.pt a.safetensors
t convert -q checkpoint.pt c.zt
t convert -q checkpoint.pt c.zt --drop-metadata
t convert --dry-run torchscript_constants.pt s.safetensors
t convert -q quantized.pt q.zt
t diff quantized.pt q.zt
t show quantized.pt pt_qint8
t convert -q quantized.pt d.safetensors --cast f32
t convert -q sparse.pt p.zt
t convert -q views.pt v.safetensors
t diff views.pt v.safetensors
t convert -q ok_deflated.pt o.safetensors
t diff ok_deflated.pt o.safetensors
t diff ok_big_endian.pt o.safetensors
t convert -q a.safetensors new.pt

# Sets and folders
mkdir model
cp "$P"/v2.15/pytorch_model* model
chmod u+w model/*
t ls model/pytorch_model.bin.index.json --only '*bias'
t ls model --only '*bias'
t convert -q model m.safetensors
rm model/pytorch_model-00002-of-00002.bin
t ls model

# What is wrong with a file
t ls expand_bomb.pt
t ls name_clash.pt
t ls storage_missing.pt
t ls code_crc_wrong.pt
