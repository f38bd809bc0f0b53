cat "$GOLDEN/pytorch/v2.15/checkpoint.pt" >checkpoint.pt
cat "$GOLDEN/pytorch/edge/code_value.pt" >harmful.pt
