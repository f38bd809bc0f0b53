# show refuses what cannot be shown, before printing anything.
golden good/mixed.zt edge/unknown_dtype.zt edge/unknown_encoding.zt edge/layout_sparse.zt
t show mixed.zt nothing
t show mixed.zt b --slice 2
t show mixed.zt b --slice 0,-4
t show mixed.zt b --slice 0,0,0
t show mixed.zt b --slice x
t show mixed.zt b --slice ::0
t show mixed.zt b --slice 1:2:3:4
t show mixed.zt b --slice ...,...
t show mixed.zt b --slice 99999999999999999999
t show mixed.zt b --slice ''
t show mixed.zt b --slice 0,
t show unknown_dtype.zt t
t show unknown_encoding.zt t
t show unknown_encoding.zt t --json
t show layout_sparse.zt t
