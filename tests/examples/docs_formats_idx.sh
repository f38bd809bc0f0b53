cp "$GOLDEN/idx/digits-idx3-ubyte" train-images-idx3-ubyte
