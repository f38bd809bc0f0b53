# Arrays that are never read: Python objects and records in a .npz.
cat "$GOLDEN/numpy/objects.npz" >objects.npz
t ls objects.npz
t verify objects.npz
t verify objects.npz --allow-unchecked
t verify --json objects.npz
t show objects.npz notes
t convert objects.npz o.npz
t convert -q objects.npz o.npz --only x
t verify o.npz
