# --bind gives symbols values; several documents must agree on them.
descriptors good/dynamic.json good/dynamic_without_maximum.json good/several.json
t check dynamic.json
t check dynamic_without_maximum.json
t check dynamic.json --bind batch=32 --bind sequence_length=128
t check dynamic.json --bind batch=32 --bind sequence_length=128 --json
t check dynamic.json --bind batch=32
t check dynamic.json --bind batch=257 --bind sequence_length=8
t check dynamic.json --bind batch=32 --bind sequence_length=13
t check dynamic.json --bind batch=32 --bind batch=33 --bind sequence_length=8
t check dynamic.json --bind batch=32 --bind sequence_length=8 --bind depth=3
t check several.json --bind batch=32
other() {
    printf '{"version": "WIA-AI-011-v1.0", "name": "%s", "shape": {"dimensions": ["batch", 10], "symbolic": true, "constraints": {"batch": %s}}, "dtype": {"base_type": "FLOAT16"}}' \
        "$1" "$2" >"$1.json"
}
other labels '{"min": 4, "max": 64}'
other even '{"multiple_of": 2}'
other odd '{"min": 300}'
t check dynamic.json labels.json even.json
t check dynamic.json labels.json --bind batch=32 --bind sequence_length=128
t check --json dynamic.json labels.json even.json
t check dynamic.json odd.json
t check --json dynamic.json odd.json
# What is remarked once is not remarked again when symbols have values, and what is new is.
printf '{"version": "WIA-AI-011-v1.0", "name": "rows", "shape": {"dimensions": ["n", 4], "symbolic": true, "constraints": {"n": {"max": 64}}}, "dtype": {"base_type": "tenon:bool"}, "memory": {"strides": [0, 1], "alignment": 64}}' >rows.json
t check rows.json --bind n=8
t check rows.json --bind n=8 --json
printf '{"version": "WIA-AI-011-v1.0", "name": "pitch", "shape": {"dimensions": [3, 4], "symbolic": true, "constraints": {"pitch": {"min": 1, "max": 64}}}, "dtype": {"base_type": "FLOAT32"}, "memory": {"strides": ["pitch", 1]}}' >pitch.json
t check pitch.json
t check pitch.json --bind pitch=2
t check pitch.json --bind pitch=4
# A value for no symbol is a mistake in JSON too.
t check dynamic.json --bind batch=32 --bind sequence_length=8 --bind depth=3 --json
