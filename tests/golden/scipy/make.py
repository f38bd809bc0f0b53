#!/usr/bin/env python3
"""make.py FOLDER: writes the files of this folder with SciPy, and matrices.tsv with what SciPy sees in them.

The same versions of NumPy and SciPy give the same bytes."""
import hashlib
import pathlib
import sys

import numpy as np
import scipy
import scipy.sparse as sp

FOLDER = pathlib.Path(sys.argv[1])
ROWS = []


def matrix(dtype, shape=(4, 5)):
    """A few entries, the last rows empty."""
    dense = np.zeros(shape, dtype)
    dense.flat[[1, 3, 6]] = np.array([1, 2, 3]).astype(dtype)
    return dense


def index_parts(m):
    """What Tenon calls indices and indptr."""
    if m.format == "csr":
        return [m.indices, m.indptr]
    return [np.stack(m.coords, axis=1)]


def note(name, m):
    parts = [m.data, *index_parts(m)]
    digest = hashlib.sha256(b"".join(p.tobytes() for p in parts)).hexdigest()
    ROWS.append((name, m.format, m.dtype.name, ",".join(map(str, m.shape)), parts[1].dtype.name, digest))


def save(name, m, compressed):
    sp.save_npz(FOLDER / name, m, compressed=compressed)
    if m.format in ("csr", "coo") and not (m.format == "csr" and m.ndim == 1):
        note(name, m)


def save_as_text(name, m):
    """As SciPy before 1.0 did, which wrote the format as str."""
    np.savez(FOLDER / name, indices=m.indices, indptr=m.indptr, format=m.format, shape=m.shape, data=m.data)
    note(name, m)


def save_big(name, m):
    """As NumPy does on a machine of the other byte order."""
    arrays = dict(row=m.row, col=m.col, shape=np.array(m.shape), data=m.data)
    np.savez(FOLDER / name, format=b"coo", **{key: a.astype(a.dtype.newbyteorder(">")) for key, a in arrays.items()})
    note(name, m)


def wide(m):
    m.coords = tuple(c.astype(np.int64) for c in m.coords)
    return m


save("csr.npz", sp.csr_matrix(matrix("float32")), True)
save("csr_stored.npz", sp.csr_array(matrix("float64")), False)
save("csr_none.npz", sp.csr_array((0, 5), dtype="int64"), True)
save("coo.npz", wide(sp.coo_matrix(matrix("complex64"))), True)
save("coo_stored.npz", sp.coo_array(matrix("bool")), False)
save("coo_rank3.npz", sp.coo_array(matrix("int8", (2, 3, 4))), False)
save("coo_rank3_deflated.npz", sp.coo_array(matrix("float32", (2, 3, 4))), True)
save("coo_rank1.npz", sp.coo_array(matrix("uint16", (9,))), False)
save_as_text("csr_text.npz", sp.csr_matrix(matrix("int16")))
save_big("coo_big.npz", sp.coo_matrix(matrix("float64")))
save("csr_rank1.npz", sp.csr_array(matrix("float32", (9,))), False)
save("csc.npz", sp.csc_matrix(matrix("float32")), True)
save("bsr.npz", sp.bsr_array(matrix("float32")), False)
save("dia.npz", sp.dia_array(matrix("float32")), False)

table = [f"# SciPy {scipy.__version__}, NumPy {np.__version__}", "# file, form, type, shape, index type, sha256 of all parts"]
(FOLDER / "matrices.tsv").write_text("\n".join(table + ["\t".join(row) for row in ROWS]) + "\n")
