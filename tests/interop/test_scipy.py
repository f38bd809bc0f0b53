"""test_scipy.py TOOL: Tenon and SciPy read each other's sparse matrices.

Uses the tool only.  tests/interop/run makes the environment."""
import itertools
import json
import zipfile

import numpy as np
import scipy.sparse as sp

import each
from tool import convert, run, tenon

TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64",
         "complex128"]
SHAPES = [(0, 0), (0, 5), (5, 0), (1, 1), (3, 7), (40, 30), (300, 1)]


def random_matrix(form, dtype, shape, density=0.2, index="int32", seed=0):
    """Any values at all, negative zeros and stored zeros among them; entries in any order, none twice."""
    rng = np.random.default_rng(seed)
    places = rng.permutation(shape[0] * shape[1])[:int(np.ceil(shape[0] * shape[1] * density))]
    values = (rng.normal(size=len(places)) * 100).astype(dtype)
    values[::5] = 0
    if np.dtype(dtype).kind == "f":
        values[::10] = -0.0
    matrix = sp.coo_array((values, np.unravel_index(places, shape)), shape)
    matrix.coords = tuple(c.astype(index) for c in matrix.coords)
    if form == "coo":
        return matrix
    matrix = matrix.tocsr()
    for begin, end in zip(matrix.indptr, matrix.indptr[1:]):            # SciPy has sorted the columns of each row
        matrix.data[begin:end], matrix.indices[begin:end] = matrix.data[begin:end][::-1].copy(), matrix.indices[begin:end][::-1].copy()
    matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
    return matrix


def to_scipy(source, target):
    return convert(source, target, "--to", "scipy-npz")


def listing(path):
    return json.loads(run("ls", "--json", path).stdout)


def arrays_of(path):
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
    with np.load(path) as loaded:
        return {name: loaded[name] for name in loaded.files if name != "_is_array"}


def check_same(path, again):
    """The same arrays, bit for bit; and SciPy loads what was written."""
    before, after = arrays_of(path), arrays_of(again)
    assert before.keys() == after.keys()
    for name, array in before.items():
        assert array.dtype == after[name].dtype and array.shape == after[name].shape, name
        assert array.tobytes() == after[name].tobytes(), name
    expected, found = sp.load_npz(path), sp.load_npz(again)
    assert isinstance(found, sp.sparray) and found.format == expected.format
    assert found.dtype == expected.dtype and found.shape == expected.shape
    assert found.toarray().tobytes() == expected.toarray().tobytes()


# ---- both ways ----

def every_matrix_scipy_saves_comes_back(folder):
    for form, dtype, shape in itertools.product(("csr", "coo"), TYPES, SHAPES):
        index, compressed = ("int32", "int64")[len(dtype) % 2], shape[1] % 2 == 1
        sp.save_npz(folder / "a.npz", random_matrix(form, dtype, shape, index=index), compressed=compressed)
        check_same(folder / "a.npz", to_scipy(folder / "a.npz", folder / "b.npz"))


def every_kind_of_archive_is_read(folder):
    for form, index, compressed in itertools.product(("csr", "coo"), ("int32", "int64"), (False, True)):
        matrix = random_matrix(form, "float32", (40, 30), index=index)
        for save in (matrix, {"csr": sp.csr_matrix, "coo": sp.coo_matrix}[form](matrix)):
            sp.save_npz(folder / "a.npz", save, compressed=compressed)
            tenon("verify", folder / "a.npz")
            found = listing(folder / "a.npz")
            tensor = found["tensors"][0]
            assert found["format"] == "scipy-npz" and len(found["tensors"]) == 1 and not found["warnings"]
            assert tensor["name"] == "a" and tensor["form"] == form and tensor["dtype"] == "float32"
            assert tensor["shape"] == [40, 30] and tensor["parts"][0]["shape"] == [matrix.nnz]
            assert tensor["parts"][1]["dtype"] == arrays_of(folder / "a.npz")["indices" if form == "csr" else "row"].dtype.name


def matrices_survive_other_containers(folder):
    for form, compressed in itertools.product(("csr", "coo"), (False, True)):
        sp.save_npz(folder / "a.npz", random_matrix(form, "float64", (40, 30)), compressed=compressed)
        for other in ("b.zt", "b.safetensors", "b.npz"):
            convert(folder / "a.npz", folder / other)
            check_same(folder / "a.npz", to_scipy(folder / other, folder / "c.npz"))
            tenon("verify", folder / other)


def large_matrices_survive(folder):
    """More than a window of each array."""
    for form, compressed in itertools.product(("csr", "coo"), (False, True)):
        sp.save_npz(folder / "a.npz", random_matrix(form, "float64", (1000, 1000), index="int64"), compressed=compressed)
        check_same(folder / "a.npz", to_scipy(folder / "a.npz", folder / "b.npz"))
        convert(folder / "a.npz", folder / "c.zt")
        check_same(folder / "a.npz", to_scipy(folder / "c.zt", folder / "d.npz"))


def what_is_written_is_always_the_same(folder):
    sp.save_npz(folder / "a.npz", random_matrix("coo", "float64", (300, 300)))
    first = to_scipy(folder / "a.npz", folder / "b.npz").read_bytes()
    for jobs in (1, 2):
        convert(folder / "a.npz", folder / "c.npz", "--to", "scipy-npz", "--jobs", jobs)
        assert (folder / "c.npz").read_bytes() == first
    assert to_scipy(folder / "b.npz", folder / "d.npz").read_bytes() == first


def names_and_metadata_survive(folder):
    """They stand in a comment, which NumPy skips."""
    sp.save_npz(folder / "weights.npz", random_matrix("csr", "float32", (40, 30)))
    convert(folder / "weights.npz", folder / "b.zt", "--rename", "weights=Grüße/0")
    tenon("meta", folder / "b.zt", "--set", "made=today")
    found = listing(to_scipy(folder / "b.zt", folder / "c.npz"))
    assert found["tensors"][0]["name"] == "Grüße/0" and found["metadata"] == {"made": "today"}
    check_same(folder / "weights.npz", folder / "c.npz")
    convert(folder / "b.zt", folder / "d.npz", "--to", "scipy-npz", "--drop-names")
    assert listing(folder / "d.npz")["tensors"][0]["name"] == "d"


def arrays_of_other_ranks_are_read(folder):
    for shape, compressed in itertools.product([(50,), (3, 4, 5), (2, 3, 4, 5)], (False, True)):
        dense = random_matrix("coo", "float32", (1, int(np.prod(shape)))).toarray().reshape(shape)
        array = sp.coo_array(dense)
        sp.save_npz(folder / "a.npz", array, compressed=compressed)
        tenon("verify", folder / "a.npz")
        tensor = listing(folder / "a.npz")["tensors"][0]
        assert tensor["form"] == "coo" and tensor["shape"] == list(shape)
        with np.load(convert(folder / "a.npz", folder / "b.npz")) as parts:
            assert np.array_equal(parts["a"], array.data) and np.array_equal(parts["a.indices"], np.stack(array.coords, axis=1))
        assert "2 dimensions" in tenon("convert", "--force", folder / "a.npz", folder / "c.npz", "--to", "scipy-npz", status=1)


def other_formats_become_coo(folder):
    for form, dtype, shape, compressed in itertools.product(("csc", "bsr", "dia"), ("float32", "int64", "complex128"), SHAPES,
                                                            (False, True)):
        matrix = random_matrix("csr", dtype, shape).asformat(form)
        if 0 in matrix.shape and form == "bsr":
            continue                        # SciPy cannot load it either
        sp.save_npz(folder / "a.npz", matrix, compressed=compressed)
        tenon("verify", folder / "a.npz")
        found = sp.load_npz(convert(folder / "a.npz", folder / "b.npz"))
        assert found.format == "coo" and found.dtype == matrix.dtype and found.shape == matrix.shape
        if form != "dia":                   # of which SciPy drops stored zeros
            expected = matrix.tocoo()
            assert all(np.array_equal(a, b) for a, b in zip(found.coords, expected.coords))
            assert found.data.tobytes() == expected.data.tobytes()
        assert np.array_equal(found.toarray(), matrix.toarray())


def blocks_of_every_size_become_coo(folder):
    matrix = random_matrix("csr", "float64", (60, 48), density=0.05)
    for rows, columns in itertools.product((1, 2, 5, 60), (1, 3, 48)):
        blocks = matrix.tobsr((rows, columns))
        for each_way in (blocks, blocks.transpose()):
            sp.save_npz(folder / "a.npz", each_way)
            found, expected = sp.load_npz(convert(folder / "a.npz", folder / "b.npz")), each_way.tocoo()
            assert all(np.array_equal(a, b) for a, b in zip(found.coords, expected.coords))
            assert found.data.tobytes() == np.ascontiguousarray(expected.data).tobytes()


def a_matrix_stays_one(folder):
    """Without --to, unless it becomes dense."""
    for form in ("csr", "coo"):
        sp.save_npz(folder / "a.npz", random_matrix(form, "float32", (6, 8)))
        check_same(folder / "a.npz", convert(folder / "a.npz", folder / "b.npz"))
        assert sp.load_npz(convert(folder / "a.npz", folder / "c.npz", "--cast", "f64")).dtype == "float64"
        with np.load(convert(folder / "a.npz", folder / "d.npz", "--form", "dense")) as dense:
            assert np.array_equal(dense["a"], sp.load_npz(folder / "a.npz").toarray())
        with np.load(convert(folder / "a.npz", folder / "e.npz", "--to", "npz")) as plain:
            assert "a.indices" in plain.files


# ---- what is not one ----


def plain_archives_stay_plain(folder):
    np.savez(folder / "a.npz", format=np.arange(3), shape=np.arange(2), data=np.arange(3.0))
    found = listing(folder / "a.npz")
    assert [t["name"] for t in found["tensors"]] == ["format", "shape", "data"] and not found["warnings"]


def contradictions_are_refused(folder):
    matrix = random_matrix("csr", "float32", (6, 8))
    good = dict(format=b"csr", shape=matrix.shape, data=matrix.data, indices=matrix.indices, indptr=matrix.indptr)
    for name, wrong in dict(indptr=matrix.indptr[:-1], indices=matrix.indices[1:], shape=(7, 8), data=matrix.data[1:]).items():
        np.savez(folder / "a.npz", **{**good, name: wrong})
        assert "expected" in tenon("ls", folder / "a.npz", status=1)
    np.savez(folder / "a.npz", **{**good, "indptr": matrix.indptr.astype("int64")})
    assert '"indptr.npy": expected 7 elements of type int32' in tenon("ls", folder / "a.npz", status=1)


def what_scipy_has_no_word_for_is_refused(folder):
    np.savez(folder / "a.npz", x=np.arange(6.0), y=np.arange(3.0))
    assert "--only" in tenon("convert", folder / "a.npz", folder / "b.npz", "--to", "scipy-npz", status=2)
    np.save(folder / "a.npy", np.arange(6.0))
    assert "--form csr" in tenon("convert", folder / "a.npy", folder / "b.npz", "--to", "scipy-npz", status=1)
    matrix = random_matrix("csr", "float32", (6, 8))
    np.savez(folder / "a.npz", format=b"csr", shape=matrix.shape, data=matrix.data.astype("float16"), indices=matrix.indices,
             indptr=matrix.indptr)
    assert "--cast f32" in tenon("convert", folder / "a.npz", folder / "b.npz", "--to", "scipy-npz", status=1)
    np.savez(folder / "a.npz", format=b"csr", shape=matrix.shape, data=matrix.data, indices=matrix.indices.astype("uint32"),
             indptr=matrix.indptr.astype("uint32"))
    assert "--form csr,index=int64" in tenon("convert", folder / "a.npz", folder / "b.npz", "--to", "scipy-npz", status=1)
    sp.save_npz(folder / "a.npz", matrix)
    assert "use scipy-npz" in tenon("convert", folder / "a.npz", folder / "b.npy", status=2)
    assert not (folder / "b.npz").exists() and not (folder / "b.npy").exists()


def damage_is_seen(folder):
    sp.save_npz(folder / "a.npz", random_matrix("coo", "float32", (40, 30)), compressed=False)
    raw = bytearray((folder / "a.npz").read_bytes())
    raw[300] ^= 1                           # in the first array, the rows
    (folder / "a.npz").write_bytes(raw)
    assert "BAD" in tenon("verify", folder / "a.npz", status=1)
    tenon("convert", folder / "a.npz", folder / "b.npz", "--to", "scipy-npz", status=1)
    assert not (folder / "b.npz").exists()


each.run([every_matrix_scipy_saves_comes_back, every_kind_of_archive_is_read, matrices_survive_other_containers,
          large_matrices_survive, what_is_written_is_always_the_same, names_and_metadata_survive, arrays_of_other_ranks_are_read,
          other_formats_become_coo, blocks_of_every_size_become_coo, a_matrix_stays_one, plain_archives_stay_plain, contradictions_are_refused,
          what_scipy_has_no_word_for_is_refused, damage_is_seen])
