# Folders, standard input and output, and what an index does not name.
mkdir model empty several
sample model/model.safetensors
echo '{}' >model/config.json
t ls model
t convert -q model out.zt --drop-metadata
t ls empty
sample several/a.safetensors
sample several/b.safetensors
t ls several
t convert several/a.safetensors several/b.safetensors both.zt
t ls - <model/model.safetensors
cat model/model.safetensors | t ls -
cat model/model.safetensors | tenon convert -q - - --to npz --drop-metadata >piped.npz
t diff --ignore-metadata model piped.npz
cat model/model.safetensors | t convert - o.zt --max-bytes 100
t ls - </dev/null
t convert model -
t convert model - --to zt --json
t convert model - --to raw
t convert -n model - --to zt
t convert - model o.zt </dev/null
cat >model/model.safetensors.index.json <<'END'
{"weight_map": {"a.weight": "model.safetensors", "a.bias": "model.safetensors"}}
END
t ls model
t verify model
t verify --strict model
t convert --strict model o.zt
ls
t meta model --set a=b
rm model/model.safetensors.index.json
t meta model --set a=b
t meta - --set a=b <model/model.safetensors
ls model
