# check validates descriptors: every finding with its path, then the level the document needs.
descriptors good/core.json good/per_channel_asymmetric.json good/several.json good/minimal.json good/type_of_tenon.json
descriptors good/coo.json good/nhwc.json
t check core.json
t check minimal.json nhwc.json per_channel_asymmetric.json several.json
t check type_of_tenon.json
t check --strict type_of_tenon.json
descriptors good/shared_by_a_file.json good/padded_with_a_value.json
t check --strict shared_by_a_file.json padded_with_a_value.json
t check --level 1 core.json coo.json
t check --level 3 core.json coo.json
t check --json core.json several.json
descriptors bad/several_faults.json bad/second_of_several.json bad/duplicate_key.json bad/strides_of_another_layout.json
t check several_faults.json
t check second_of_several.json
t check strides_of_another_layout.json
t check duplicate_key.json core.json
t check --json duplicate_key.json second_of_several.json
printf '[]' >none.json
t check none.json
printf '{' >cut.json
t check cut.json
: >empty.json
t check empty.json
t check nothing.json
t check .
