# Another tool's packed codes are one tensor with values, or copied and never cast as numbers.
model() {
    rm -rf model
    mkdir model
    for file in "$GOLDEN/conventions/$1"/*; do
        cat "$file" >"model/${file##*/}"
    done
}
model gptoss_mxfp4
t ls -l model/model.safetensors
t convert -q model/model.safetensors out.safetensors --cast bf16
t ls out.safetensors
t diff model/model.safetensors out.safetensors
t convert -q model/model.safetensors copy.safetensors
cp model/config.json .
t diff model/model.safetensors copy.safetensors
rm config.json
t convert -q model/model.safetensors copy.zt
t ls copy.zt
t diff model/model.safetensors copy.zt
t convert -q model/model.safetensors raw.zt --raw --cast '*_blocks=f32'
model gptq_int4_g64_asym
t ls -l model/model.safetensors
t stats model/model.safetensors --only 'model.layers.*'
t compare-types model/model.safetensors --types mxfp4
t convert -q model/model.safetensors part.safetensors --only '*gate_proj*'
model refuse_gptq_noconfig
t ls model/model.safetensors
t convert model/model.safetensors out.zt --cast f32
t show model/model.safetensors model.layers.0.mlp.gate_proj.qzeros
for case in modelopt_nvfp4 ct_int4_g64_asym fp8_block128 awq_gemm_g128 mlx_4bit_g64 gptq_int4_desc_act bnb_nf4 hqq_int4_g64; do
    model $case
    t convert -q model/model.safetensors out.npz --force --cast f32
done
for case in refuse_orphan refuse_unknown; do
    model $case
    t convert model/model.safetensors out.zt --cast f32
done
model refuse_orphan
t convert model/model.safetensors part.zt --only '*.weight_scale'
t export-c model/model.safetensors --plan --only '*.weight_scale'
tenon stats model/model.safetensors --only '*.weight_scale' >/dev/null
model modelopt_int4_awq
t convert -q model/model.safetensors awq.safetensors --cast f32
t ls awq.safetensors
model bnb_nf4
t ls model/model.safetensors
t convert -q model/model.safetensors nf4.zt
t ls nf4.zt
t diff model/model.safetensors nf4.zt
t convert model/model.safetensors nf4.npz --cast bnb:nf4_t64
model refuse_unknown
t ls -l model/model.safetensors
echo 'a configuration that is broken'
echo '{"quantization_config": {' >model/config.json
t ls model/model.safetensors
t convert model/model.safetensors out.npz --cast f32
echo 'plain numbers'
model decoy_plain
t convert -q model/model.safetensors plain.safetensors --cast f32
t ls plain.safetensors
