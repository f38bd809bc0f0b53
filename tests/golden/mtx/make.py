"""make.py: scipy/ and matrices.tsv, with SciPy 1.17.1 and NumPy 2.4.6.

The files of hand/ were written by hand, and HAND has what is in them."""
import hashlib
import pathlib

import numpy as np
import scipy.io
import scipy.sparse

HERE = pathlib.Path(__file__).parent
RNG = np.random.default_rng(5)
SPECIAL = np.array([[0.0, -0.0, np.inf], [-np.inf, np.nan, 5e-324], [1.7976931348623157e308, 2.2250738585072014e-308, 1 / 3]])
DENSE = np.round(RNG.normal(size=(4, 3)), 6)
SPARSE = scipy.sparse.random_array((40, 30), density=0.05, rng=RNG)
SQUARE = scipy.sparse.random_array((9, 9), density=0.2, rng=RNG)
SYMMETRIC = (SQUARE + SQUARE.T).tocoo()
SKEW = (SQUARE - SQUARE.T).tocoo()
TURN = SQUARE * 1j + SQUARE

WRITTEN = {                     # file: (matrix, further arguments of mmwrite)
    "array_real": (DENSE, {}),
    "array_special": (SPECIAL, {}),
    "array_float32": (DENSE.astype("f4"), {}),
    "array_integer": (np.array([[1, -2, 3], [-(2**63), 2**63 - 1, 0]]), {}),
    "array_unsigned": (np.array([[1, 2**64 - 1]], "u8"), {}),
    "array_complex": (DENSE + 1j * DENSE[::-1], {}),
    "array_symmetric": (SYMMETRIC.toarray(), {"symmetry": "symmetric"}),
    "array_skew": (SKEW.toarray(), {"symmetry": "skew-symmetric"}),
    "array_hermitian": ((TURN + TURN.conj().T).toarray(), {"symmetry": "hermitian"}),
    "array_no_columns": (np.zeros((3, 0)), {}),
    "coordinate_real": (SPARSE, {"comment": " two lines\n of text"}),
    "coordinate_rounded": (SPARSE, {"precision": 5}),
    "coordinate_integer": (scipy.sparse.coo_array(np.arange(-6, 6).reshape(3, 4)), {}),
    "coordinate_unsigned": (scipy.sparse.coo_array(np.arange(6, dtype="u4").reshape(2, 3)), {}),
    "coordinate_complex": (TURN, {"symmetry": "general"}),
    "coordinate_pattern": (SPARSE, {"field": "pattern"}),
    "coordinate_symmetric": (SYMMETRIC, {"symmetry": "symmetric"}),
    "coordinate_skew": (SKEW, {"symmetry": "skew-symmetric"}),
    "coordinate_hermitian": ((TURN + TURN.conj().T).tocoo(), {"symmetry": "hermitian"}),
    "coordinate_symmetric_pattern": (SYMMETRIC, {"symmetry": "symmetric", "field": "pattern"}),
    "coordinate_empty": (scipy.sparse.coo_array((7, 2)), {}),
}
NIST = [[1, 0, 0, 6, 0], [0, 10.5, 0, 0, 0], [0, 0, .015, 0, 0], [0, 250.5, 0, -280, 33.32], [0, 0, 0, 0, 12]]
HAND = {                        # file: (form, entries, dense matrix)
    "real": ("coo", 8, np.array(NIST)),
    "spelling": ("coo", 9, np.array([[1.5, 0.5, 5], [-0.0, 1e5, 1e-3], [120, 0.25, 1e22]])),
    "integer": ("coo", 2, np.array([[0, -7], [12, 0]])),
    "complex": ("coo", 2, np.array([[1 + 2j, 0], [0, complex(0, -1)]])),
    "pattern": ("coo", 3, np.array([[True, False], [True, True]])),
    "symmetric": ("coo", 5, np.array([[4.0, 1, 0], [1, 0, -2], [0, -2, 0]])),
    "skew": ("coo", 2, np.array([[0.0, -3], [3, 0]])),
    "hermitian": ("coo", 3, np.array([[2, 1 - 1j], [1 + 1j, 0]])),
    "pattern_symmetric": ("coo", 3, np.array([[True, True], [True, False]])),
    "array": ("dense", 6, np.array([[1.0, 3, 5], [2, 4, 6]])),
    "array_integer_symmetric": ("dense", 9, np.array([[1, 2, 3], [2, 4, 5], [3, 5, 6]])),
    "array_skew": ("dense", 9, np.array([[0, -1.0, -2], [1, 0, -3], [2, 3, 0]])),
    "array_complex_hermitian": ("dense", 4, np.array([[1, 2 - 3j], [2 + 3j, complex(4, -0.0)]])),
    "array_complex_symmetric": ("dense", 4, np.array([[1j, 2 + 3j], [2 + 3j, 4]])),
}


def row(path, form, entries, dense):
    name = {"f": "float64", "i": "int64", "u": "uint64", "c": "complex128", "b": "bool"}[dense.dtype.kind]
    data = np.ascontiguousarray(dense.astype(name)).tobytes()
    shape = ",".join(map(str, dense.shape))
    return "\t".join([path, form, name, shape, str(entries), hashlib.sha256(data).hexdigest()])


def write(name, matrix, options):
    path = HERE / "scipy" / f"{name}.mtx"
    scipy.io.mmwrite(path, matrix, **options)
    found = scipy.io.mmread(path)
    sparse = scipy.sparse.issparse(found)
    dense = found.toarray() if sparse else found
    if not sparse and dense.dtype.kind == "f":
        dense = np.copysign(dense, matrix)          # SciPy reads the -0 of an array as 0
    if options.get("field") == "pattern":
        dense = dense != 0
    return row(f"scipy/{name}.mtx", "coo" if sparse else "dense", found.nnz if sparse else found.size, dense)


rows = [write(name, *how) for name, how in WRITTEN.items()] + [row(f"hand/{name}.mtx", *what) for name, what in HAND.items()]
head = "# file, form, type, shape, entries or elements, SHA-256 of all elements in rows, little-endian"
(HERE / "matrices.tsv").write_text("\n".join([head, *rows]) + "\n")
