python3 - <<'PY'
import json, struct
name, columns = "model.layers.0.self_attn.q_proj.weight", 384
header = {f"{name}.in_sum2": {"dtype": "F32", "shape": [1, columns], "data_offsets": [0, 4 * columns]},
          f"{name}.counts": {"dtype": "F32", "shape": [1, 1], "data_offsets": [4 * columns, 4 * columns + 4]}}
text = json.dumps(header).encode()
with open("imatrix.safetensors", "wb") as f:
    f.write(struct.pack("<Q", len(text)) + text + struct.pack(f"<{columns}f", *range(1, columns + 1)) + struct.pack("<f", 2))
PY
