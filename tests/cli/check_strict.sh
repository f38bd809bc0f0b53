# Layouts and schemes that the specification does not name pass, but not with --strict.
document() {
    printf '{"version": "WIA-AI-011-v1.0", "name": "w", "shape": {"dimensions": [2, 3, 1, 1]%s},
 "dtype": {"base_type": "INT8", "quantization": %s}}' "$2" "$3" >"$1"
}
for layout in NCHW NHWC CHWN WXYZ; do document $layout.json ", \"layout\": \"$layout\"" null; done
document none.json '' null
t check --strict NCHW.json NHWC.json CHWN.json none.json
t check WXYZ.json
t check --strict WXYZ.json
layout=', "layout": "NCHW"'
document ts.json "$layout" '{"scheme": "per_tensor_symmetric", "scale": 0.5, "zero_point": 0}'
document ta.json "$layout" '{"scheme": "per_tensor_asymmetric", "scale": 0.5, "zero_point": 3}'
document cs.json "$layout" '{"scheme": "per_channel_symmetric", "scales": [0.5, 1], "channel_axis": 0}'
document ca.json "$layout" '{"scheme": "per_channel_asymmetric", "scales": [0.5, 1], "zero_points": [1, 2], "channel_axis": 0}'
document planet.json "$layout" '{"moons": 3, "scheme": "per_planet"}'
document own.json "$layout" '{"scheme": "tenon:scaled"}'
t check --strict ts.json ta.json cs.json ca.json
t check planet.json own.json
t check --strict planet.json own.json
printf '{"scheme": "per_planet", "scale": 1}' >alone.json
t check alone.json
t check --strict alone.json
