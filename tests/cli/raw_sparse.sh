# Sparse tensors stand in the descriptor with all their numbers: no data beside it.
printf '%s' '[{"version": "WIA-AI-011-v1.0", "name": "m", "format": "COO", "shape": [3, 4], "nnz": 3,
  "indices": {"dtype": "INT32", "data": [[0, 1], [1, 0], [2, 3]]}, "values": {"dtype": "FLOAT16", "data": [1.5, -2, 0.1]}},
 {"version": "WIA-AI-011-v1.0", "name": "c", "format": "CSR", "shape": [2, 3], "dtype": {"base_type": "INT64"},
  "row_pointers": [0, 1, 3], "column_indices": [2, 0, 1], "values": [9223372036854775807, -2, 9007199254740993]}]' >s.json
t check s.json
t show s.json m
t show s.json c
t convert -q s.json s.zt
t convert -q s.zt t.json
ls
cat t.json
t diff s.json t.json
t convert -q s.json d.json --form dense
t show d.json c
t convert -q d.json e.json --form coo,index=int64
tenon show e.json c
t convert -q s.json u.zt --form coo,index=uint64
t convert -q u.zt u.json
t convert -q u.zt u.json --form coo,index=int64
ls
sed -i 's/"data": \[1.5/"data": [70000/' s.json
t ls s.json
