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


def as_coo(m):
    """The entries in the order of the file, as SciPy gives those of csc and bsr.  Those of dia it sorts, without stored zeros."""
    if m.format != "dia":
        return m.tocoo()
    places = [(d, column - offset, column) for d, offset in enumerate(m.offsets.tolist()) for column in range(m.data.shape[1])
              if 0 <= column - offset < m.shape[0] and column < m.shape[1]]
    row, column = [p[1] for p in places], [p[2] for p in places]
    assert np.array_equal(m.toarray()[row, column], [m.data[p[0], p[2]] for p in places])
    return sp.coo_array((m.toarray()[row, column], (row, column)), m.shape)


def index_parts(m):
    """What Tenon calls indices and indptr."""
    if m.format == "csr":
        return [m.indices, m.indptr]
    return [np.stack(m.coords, axis=1)]


def note(name, m):
    if m.format not in ("csr", "coo"):
        m = as_coo(m)
        m.coords = tuple(c.astype(np.int32) for c in m.coords)
    parts = [m.data, *index_parts(m)]
    digest = hashlib.sha256(b"".join(p.tobytes() for p in parts)).hexdigest()
    ROWS.append((name, m.format, m.dtype.name, ",".join(map(str, m.shape)), parts[1].dtype.name, digest))


def save(name, m, compressed):
    sp.save_npz(FOLDER / name, m, compressed=compressed)
    if not (m.format == "csr" and m.ndim == 1):
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


def large_index(m):
    m.indices, m.indptr = m.indices.astype(np.int64), m.indptr.astype(np.int64)
    return m


RNG = np.random.default_rng(7)
FULL = RNG.integers(-9, 9, (6, 8))
save("csc_wide.npz", large_index(sp.csc_array(FULL.astype("int16"))), False)
save("csc_none.npz", sp.csc_array((5, 0), dtype="float64"), False)
save("bsr_blocks.npz", sp.bsr_array(FULL.astype("float64"), blocksize=(3, 2)), True)
save("bsr_columns.npz", sp.bsr_array(FULL[:3, :4].astype("int32"), blocksize=(3, 4)).transpose(), False)  # data in Fortran's order
save("dia_long.npz", sp.dia_array((RNG.integers(-9, 9, (5, 11)).astype("int8"), [-5, 0, 7, -1, 12]), (6, 8)), True)
save("dia_short.npz", sp.dia_array((np.asfortranarray(FULL[:3, :4].astype("complex64")), [1, -2, 0]), (9, 5)), False)

table = [f"# SciPy {scipy.__version__}, NumPy {np.__version__}", "# file, form, type, shape, index type, sha256 of all parts"]
(FOLDER / "matrices.tsv").write_text("\n".join(table + ["\t".join(row) for row in ROWS]) + "\n")
