# Every example of the specification passes check as it stands, and what check accepts ls lists.
cp "$GOLDEN"/descriptor/specification/*.json .
t check --strict *.json
t check --json padding.json coo.json
t check dynamic_shapes.json --bind batch=4 --bind sequence_length=16
t ls *.json
t ls -l --json dynamic_shapes.json core.json
t show padding.json x
t convert padding.json out.zt
t stats shared_buffer_handle.json
printf '%s' '[{"shape": [2]}, {"version": "WIA-AI-011-v1.0", "name": "w", "shape": [2], "dtype": {"base_type": "FLOAT32"}}, {"mapping":
 {"device_address": "0x100", "access_mode": "cpu_device"}}]' >mixed.json
t check mixed.json
t ls mixed.json
printf '%s' '{"scheme": "per_channel_asymmetric", "scales": [1, 0], "zero_points": [1, 2, 3], "range": [4, -4]}' >wrong.json
t check wrong.json
t ls wrong.json
printf '%s' '{"scheme": "per_planet", "scale": 1}' >beyond.json
t check beyond.json
t check --strict beyond.json
t ls beyond.json
printf '%s' '{"name": "w", "scheme": "per_tensor_symmetric", "scale": 1}' >named.json
t check named.json
printf '%s' '{"shape": ["n"], "memory": {"device": {"type": "abacus"}}}' >device.json
t check device.json
