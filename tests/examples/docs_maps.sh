mkdir model
tenon convert -q model.safetensors model/model.safetensors --exclude model.causal_mask --exclude model.position_ids
rm model.safetensors
echo '{"num_attention_heads": 8, "num_key_value_heads": 2}' >model/config.json
tenon convert -q model/model.safetensors other.gguf --only model.norm.weight
tenon meta -q other.gguf --set general.architecture=llama --set llama.attention.head_count:u32=8 \
    --set llama.attention.head_count_kv:u32=2 --set tokenizer.ggml.tokens:json='["<unk>", "a", "b"]'
