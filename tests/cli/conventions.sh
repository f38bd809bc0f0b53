# Another tool's packed codes are listed and copied, and never cast as numbers.
model() {
    rm -rf model
    mkdir model
    for file in "$GOLDEN/conventions/$1"/*; do
        cat "$file" >"model/${file##*/}"
    done
}
model gptoss_mxfp4
t ls model/model.safetensors
t convert model/model.safetensors out.safetensors --cast bf16
t convert -q model/model.safetensors copy.zt
t diff model/model.safetensors copy.zt
t convert copy.zt out.zt --cast bf16
t convert -q copy.zt out.zt --cast '*_bias=f32'
t convert copy.zt part.zt --only '*_blocks'
t convert -q copy.zt part.zt --only '*down_proj*'
t convert -q copy.zt raw.zt --raw --cast '*_blocks=f32'
t show copy.zt "$(tenon ls --json copy.zt | grep -o '"name": "[^"]*_scales"' | head -n 1 | cut -d'"' -f4)" --json | head -c 100
echo
tenon stats copy.zt --only '*_bias' >/dev/null
tenon stats copy.zt --only '*_scales' >/dev/null
t export-c copy.zt --plan --only '*_blocks'
for case in modelopt_nvfp4 ct_int4_g64_asym fp8_block128 gptq_int4_desc_act awq_gemm_g128 bnb_nf4 mlx_4bit_g64 \
            refuse_orphan refuse_unknown; do
    model $case
    t convert model/model.safetensors out.npz --cast f32
done
t ls -l model/model.safetensors
echo 'a configuration that is broken'
echo '{"quantization_config": {' >model/config.json
t ls model/model.safetensors
t convert model/model.safetensors out.npz --cast f32
echo 'plain numbers'
model decoy_plain
t convert -q model/model.safetensors plain.safetensors --cast f32
t ls plain.safetensors
