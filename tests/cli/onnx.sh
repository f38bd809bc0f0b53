# ONNX: listing, other formats, new weights for a graph, data in another file.
cp "$GOLDEN"/onnx/{plain,external_one,odd_shapes,sparse}.onnx "$GOLDEN/onnx/external_one.onnx.data" .
t ls -l plain.onnx
t ls sparse.onnx
t convert -q plain.onnx plain.safetensors
t meta plain.safetensors

# a graph gets the weights of another file, and all else stays
t convert -q plain.safetensors back.onnx --graph plain.onnx
t diff plain.onnx back.onnx
t convert -q plain.safetensors none.onnx
t convert -q plain.safetensors none.onnx --graph plain.onnx --cast f16
t convert -q plain.safetensors none.onnx --graph plain.onnx --exclude b
t convert -q plain.safetensors none.onnx --graph sparse.onnx
t convert -q plain.safetensors none.zt --graph plain.onnx

# data in another file
t convert -q external_one.onnx inside.onnx
t ls inside.onnx
t convert -q plain.onnx outside.onnx --external
t ls outside.onnx
t convert -n plain.onnx dry.onnx --external
rm external_one.onnx.data
t ls external_one.onnx
t convert -q external_one.onnx none.zt

# strings are listed and stay in the graph
t convert -q odd_shapes.onnx again.onnx
t convert -q odd_shapes.onnx again.onnx --exclude strings
t ls again.onnx
