"""test_mtx.py TOOL: Tenon and SciPy read each other's MatrixMarket files.

Uses the tool only.  tests/interop/run makes the environment."""
import itertools

import ml_dtypes
import numpy as np
import scipy.io
import scipy.sparse as sp

import each
from tool import convert, random_array, tenon

CODES = ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
SHAPES = [(1, 1), (1, 7), (7, 1), (5, 8), (3, 0)]      # mmread() of SciPy 1.17 dies of an array without rows
RNG = np.random.default_rng(11)


def random_coo(dtype, shape, entries):
    """Entries in any order, some at the same place."""
    where = tuple(RNG.integers(0, n, entries) for n in shape)
    return sp.coo_array((random_array(dtype, (entries,), RNG), where), shape)


def bits(array):
    return np.ascontiguousarray(array).tobytes()


def plain(array):
    """What SciPy makes of an array's text: -0 is 0, a NaN has a sign and nothing else."""
    array = np.asarray(array)
    if array.dtype.kind == "c":
        return plain(array.view(array.real.dtype)).view(array.dtype)
    if array.dtype.kind != "f":
        return array
    quiet = np.where(np.signbit(array), np.array(-np.nan, array.dtype), np.array(np.nan, array.dtype))
    with np.errstate(invalid="ignore"):
        return np.where(np.isnan(array), quiet, array + array.dtype.type(0))


def same_values(a, b):
    """Unsigned integers that int64 holds are written as integers."""
    alike = a.dtype == b.dtype or (a.dtype == np.uint64 and b.dtype == np.int64)
    return a.shape == b.shape and alike and bits(plain(a)) == bits(plain(b))


def same_entries(a, b):
    return a.shape == b.shape and np.array_equal(a.row, b.row) and np.array_equal(a.col, b.col) and same_values(a.data, b.data)


# ---- SciPy reads ----

def every_array_is_read_by_scipy(folder):
    for code, shape in itertools.product(CODES, SHAPES):
        array = random_array(code, shape, RNG)
        np.save(folder / "a.npy", array)
        found = scipy.io.mmread(convert(folder / "a.npy", folder / "a.mtx"))
        assert found.shape == shape and bits(plain(found.astype(array.dtype))) == bits(plain(array)), (code, shape)


def every_array_comes_back_bit_for_bit(folder):
    for code, shape in itertools.product(CODES, SHAPES + [(0, 0), (0, 4)]):
        np.save(folder / "a.npy", random_array(code, shape, RNG))
        convert(folder / "a.npy", folder / "a.mtx")
        convert(folder / "a.mtx", folder / "b.npy", "--drop-names")
        assert (folder / "a.npy").read_bytes() == (folder / "b.npy").read_bytes(), (code, shape)


def doubles_of_every_size_are_read_by_scipy(folder):
    for scale in (0, 1, 10, 100, 300):
        array = RNG.normal(size=(100, 100)) * 10.0 ** RNG.integers(-scale, scale + 1, (100, 100))
        np.save(folder / "a.npy", np.where(RNG.random((100, 100)) < 0.3, np.round(array, 3), array))
        expected = np.load(folder / "a.npy")
        assert np.array_equal(scipy.io.mmread(convert(folder / "a.npy", folder / "a.mtx")), expected)
        with np.errstate(over="ignore"):
            single = expected.astype("f4")
        np.save(folder / "a.npy", single)
        assert np.array_equal(scipy.io.mmread(convert(folder / "a.npy", folder / "a.mtx")).astype("f4"), single)


def narrow_floats_are_read_by_scipy(folder):
    array = RNG.normal(size=(16, 16)).astype("f4")
    np.save(folder / "a.npy", array)
    for name in ["bfloat16", "float8_e4m3fn", "float8_e5m2"]:
        convert(folder / "a.npy", folder / "a.mtx", "--cast", name)
        expected = array.astype(getattr(ml_dtypes, name))
        found = scipy.io.mmread(folder / "a.mtx").astype("f4").astype(expected.dtype)
        assert bits(found.view("u1")) == bits(expected.view("u1")), name


# ---- SciPy writes ----

def every_kind_that_scipy_writes_is_read(folder):
    square = sp.random_array((20, 20), density=0.2, rng=RNG)
    turned = square + 1j * square.T
    matrices = {
        "general": square, "symmetric": square + square.T, "skew-symmetric": square - square.T, "hermitian": turned + turned.conj().T,
    }
    for symmetry, matrix in matrices.items():
        for form in (matrix.tocoo(), matrix.toarray()):
            scipy.io.mmwrite(folder / "a.mtx", form, symmetry=symmetry)
            found = np.load(convert(folder / "a.mtx", folder / "a.npy", "--form", "dense"))
            assert np.array_equal(found, matrix.toarray()), symmetry
    scipy.io.mmwrite(folder / "a.mtx", square, field="pattern")
    found = np.load(convert(folder / "a.mtx", folder / "a.npy", "--form", "dense"))
    assert found.dtype == bool and np.array_equal(found, square.toarray() != 0)


def every_type_that_scipy_writes_is_read(folder):
    for code in CODES:
        if code == "f2":                # which SciPy writes as integers
            continue
        for form in (random_array(code, (6, 5), RNG), random_coo(code, (40, 70), 200)):
            scipy.io.mmwrite(folder / "a.mtx", form, symmetry="general")
            expected = scipy.io.mmread(folder / "a.mtx")
            found = scipy.io.mmread(convert(folder / "a.mtx", folder / "b.mtx"))
            assert (same_entries if sp.issparse(expected) else same_values)(expected, found), code


def entries_keep_their_order_and_duplicates(folder):
    matrix = random_coo("f8", (10, 10), 500)
    scipy.io.mmwrite(folder / "a.mtx", matrix, symmetry="general")
    matrix = scipy.io.mmread(folder / "a.mtx")          # NaNs have lost their signs
    convert(folder / "a.mtx", folder / "b.zt")
    assert same_entries(matrix, scipy.io.mmread(convert(folder / "b.zt", folder / "b.mtx")))


def large_matrices_keep_64_bit_indices(folder):
    matrix = sp.coo_array(([1.5, -2.0], (np.array([3_000_000_000, 0]), np.array([1, 2_500_000_000]))), (3_000_000_001, 3_000_000_000))
    scipy.io.mmwrite(folder / "a.mtx", matrix, symmetry="general")
    assert same_entries(scipy.io.mmread(folder / "a.mtx"), scipy.io.mmread(convert(folder / "a.mtx", folder / "b.mtx")))


def comments_survive(folder):
    scipy.io.mmwrite(folder / "a.mtx", np.eye(2), comment=" größe\n\n%done")
    convert(folder / "a.mtx", folder / "b.zt")
    text = (convert(folder / "b.zt", folder / "c.mtx")).read_text()
    assert "\n% größe\n%\n%%done\n" in text and np.array_equal(scipy.io.mmread(folder / "c.mtx"), np.eye(2))


# ---- both ----

def symmetric_files_hold_one_triangle(folder):
    square = sp.random_array((30, 30), density=0.2, rng=RNG)
    matrix = (square + square.T).tocoo()
    for form in (matrix, matrix.toarray()):
        scipy.io.mmwrite(folder / "a.mtx", form, symmetry="general")
        convert(folder / "a.mtx", folder / "b.mtx", "--option", "mtx.symmetric=yes")
        assert scipy.io.mminfo(folder / "b.mtx")[5] == "symmetric"
        found = scipy.io.mmread(folder / "b.mtx")
        assert np.array_equal(found.toarray() if sp.issparse(found) else found, matrix.toarray())
    scipy.io.mmwrite(folder / "a.mtx", square, symmetry="general")
    assert "cannot be written as symmetric" in tenon("convert", folder / "a.mtx", folder / "c.mtx", "--option", "mtx.symmetric=yes", status=1)
    assert not (folder / "c.mtx").exists()


each.run([every_array_is_read_by_scipy, every_array_comes_back_bit_for_bit, doubles_of_every_size_are_read_by_scipy,
          narrow_floats_are_read_by_scipy, every_kind_that_scipy_writes_is_read, every_type_that_scipy_writes_is_read,
          entries_keep_their_order_and_duplicates, large_matrices_keep_64_bit_indices, comments_survive,
          symmetric_files_hold_one_triangle])
