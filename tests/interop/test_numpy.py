"""test_numpy.py TOOL: Tenon and NumPy read each other's .npy and .npz files.

Uses the tool only.  tests/interop/run makes the environment."""
import io
import itertools
import unittest.mock
import zipfile

import ml_dtypes
import numpy as np

import each
from tool import convert, random_array, tenon

CODES = ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
SHAPES = [(), (1,), (7,), (0,), (3, 5), (5, 1), (3, 0, 2), (2, 3, 4), (2, 1, 3, 2)]


def same(a, b):
    """The same values and shape, whatever the order of bytes and elements."""
    a, b = np.asarray(a), np.asarray(b)
    little = a.dtype.newbyteorder("<")
    return a.shape == b.shape and little == b.dtype and \
        np.ascontiguousarray(a.astype(little) if a.dtype.kind not in "fc" else swapped(a)).tobytes() == \
        np.ascontiguousarray(b).tobytes()


def swapped(a):
    """Little-endian without a conversion, which might touch NaNs."""
    big = a.dtype.byteorder == ">"
    return np.ascontiguousarray(a).byteswap().view(a.dtype.newbyteorder("<")) if big else a


def arrays():
    for code, order, shape in itertools.product(CODES, "<>", SHAPES):
        yield random_array(order + code, shape)


# ---- .npy ----

def every_array_numpy_saves_comes_back(folder):
    for array, fortran in itertools.product(arrays(), (False, True)):
        array = np.asfortranarray(array) if fortran and array.ndim else array
        np.save(folder / "a.npy", array)
        convert(folder / "a.npy", folder / "b.npy")
        assert same(array, np.load(folder / "b.npy")), (array.dtype, array.shape, fortran)


def what_is_written_is_what_numpy_saves(folder):
    for array in arrays():
        if array.dtype.byteorder == ">":
            continue
        np.save(folder / "a.npy", array)
        convert(folder / "a.npy", folder / "b.npy", "--drop-names")
        assert (folder / "a.npy").read_bytes() == (folder / "b.npy").read_bytes(), (array.dtype, array.shape)


def every_version_is_read(folder):
    array = random_array("<f4", (3, 5))
    for version in [(1, 0), (2, 0), (3, 0)]:
        with open(folder / "a.npy", "wb") as file:
            np.lib.format.write_array(file, array, version)
        assert same(array, np.load(convert(folder / "a.npy", folder / "b.npy"))), version


def types_of_ml_dtypes_keep_their_bits(folder):
    array = random_array(np.uint16, (3, 5)).view(ml_dtypes.bfloat16)
    np.save(folder / "a.npy", array)
    convert(folder / "a.npy", folder / "b.npy", "--drop-names")
    assert "bfloat16" in tenon("ls", folder / "a.npy")
    assert (folder / "a.npy").read_bytes() == (folder / "b.npy").read_bytes()
    assert same(array, np.load(folder / "b.npy").view(ml_dtypes.bfloat16))
    np.save(folder / "a.npy", array.astype(ml_dtypes.float8_e5m2))     # which NumPy itself cannot load again
    assert "NumPy has no type float8_e5m2" in tenon("convert", folder / "a.npy", folder / "b.npy", "--force", status=1)
    convert(folder / "a.npy", folder / "b.npz")
    assert same(array.astype(ml_dtypes.float8_e5m2), np.load(folder / "b.npz")["a"].view(ml_dtypes.float8_e5m2))


def narrow_floats_are_read_again_and_loaded_as_bytes(folder):
    array = random_array("<f4", (64,), seed=3)
    np.save(folder / "a.npy", array)
    for name in ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e8m0fnu"]:
        ours = name.removesuffix("fnu") if "e8m0" in name else name
        convert(folder / "a.npy", folder / "b.npz", "--cast", f"{ours},overflow=saturate")
        assert ours in tenon("ls", folder / "b.npz")
        assert np.load(folder / "b.npz")["a"].dtype == np.uint8
        values = np.load(folder / "b.npz")["a"].view(getattr(ml_dtypes, name)).astype(np.float32)
        convert(folder / "b.npz", folder / "c.npy", "--cast", "float32", "--drop-names")
        assert np.array_equal(values, np.load(folder / "c.npy"), equal_nan=True), name


def what_numpy_cannot_say_is_listed_or_refused(folder):
    np.save(folder / "a.npy", np.array(["text", "more"]))
    assert "U4" in tenon("ls", folder / "a.npy")
    tenon("convert", folder / "a.npy", folder / "b.npy", status=1)
    np.save(folder / "a.npy", np.zeros(3, [("x", "<f4"), ("y", "<i2")]))
    assert "structured" in tenon("ls", folder / "a.npy", status=1)
    np.save(folder / "a.npy", np.array([{}, None]), allow_pickle=True)
    assert "pickle" in tenon("ls", folder / "a.npy", status=1)


def the_first_of_two_arrays_is_read_with_a_warning(folder):
    with open(folder / "a.npy", "wb") as file:
        np.save(file, np.zeros(3))
        np.save(file, np.zeros(4))
    assert "160 bytes follow the array" in tenon("ls", folder / "a.npy")
    assert "--drop-metadata" in tenon("convert", folder / "a.npy", folder / "b.npy", status=1)
    assert np.load(convert(folder / "a.npy", folder / "b.npy", "--drop-metadata")).shape == (3,)


def numpy_maps_what_is_written(folder):
    array = random_array("<f4", (100, 7))
    np.save(folder / "a.npy", array)
    convert(folder / "a.npy", folder / "b.npy", "--align", 4096)
    mapped = np.load(folder / "b.npy", mmap_mode="r")
    assert same(array, mapped) and mapped.offset == 4096


# ---- .npz ----

def what_is_written_has_the_headers_that_numpy_writes(folder):
    """No comment behind the dictionary, whatever the type; other readers refuse one."""
    np.save(folder / "a.npy", random_array("<f4", (64,), seed=3))
    for cast in ["float8_e4m3fn,overflow=saturate", "int4,overflow=saturate", "bfloat16", "mxfp4", "float16"]:
        convert(folder / "a.npy", folder / "b.npz", "--cast", cast)
        with zipfile.ZipFile(folder / "b.npz") as archive:
            assert archive.testzip() is None
            for name in archive.namelist():
                plain = io.BytesIO()
                with archive.open(name) as file:
                    array = np.lib.format.read_array(file)
                np.lib.format.write_array(plain, array.view("<V2") if array.dtype == "V2" else array)
                header = plain.getvalue()[10:].split(b"\n")[0].rstrip().replace(b"|V2", b"<V2")
                assert archive.read(name)[10:].split(b"\n")[0].rstrip() == header, (cast, name)


class Pipe(io.RawIOBase):
    """A file that cannot go back: sizes then stand behind the data."""
    def __init__(self, path):
        self.file = open(path, "wb")

    def writable(self):
        return True

    def write(self, data):
        return self.file.write(data)

    def close(self):
        self.file.close()
        super().close()


def named_arrays():
    both = [np.asfortranarray(a) if i % 3 == 2 and a.ndim else a for i, a in enumerate(arrays())]
    return {f"layer/{i}.ü {a.dtype.str[1:]}": a for i, a in enumerate(both)}


def check_archive(path, expected):
    """NumPy sees these arrays, and Python's zip module nothing wrong."""
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
    with np.load(path) as found:
        assert found.files == list(expected)
        for name, array in expected.items():
            assert same(array, found[name]), (name, array.dtype, array.shape)


def every_archive_numpy_saves_comes_back(folder):
    expected = named_arrays()
    for save in (np.savez, np.savez_compressed):
        save(folder / "a.npz", **expected)
        convert(folder / "a.npz", folder / "b.npz")
        check_archive(folder / "b.npz", expected)
        tenon("diff", folder / "a.npz", folder / "b.npz")
        assert f"{len(expected)} crc32 checked" in tenon("verify", folder / "b.npz")
        convert(folder / "a.npz", folder / "c.zt")
        convert(folder / "c.zt", folder / "d.npz")
        check_archive(folder / "d.npz", expected)


def large_archives_survive_both_ways(folder):
    expected = {"zeros": np.zeros((1000, 1000), ">f8"), "columns": np.asfortranarray(random_array("<i4", (500, 700)))}
    np.savez_compressed(folder / "a.npz", **expected)
    convert(folder / "a.npz", folder / "b.npz")
    check_archive(folder / "b.npz", expected)
    assert "2 crc32 checked" in tenon("verify", folder / "a.npz")


def archives_written_to_a_pipe_are_read(folder):
    expected = {"a": random_array("<f4", (3, 5)), "b": random_array("<i2", (7,))}
    for save in (np.savez, np.savez_compressed):
        with Pipe(folder / "a.npz") as pipe:
            save(pipe, **expected)
        check_archive(convert(folder / "a.npz", folder / "b.npz"), expected)


def zip64_is_read(folder):
    expected = {"a": random_array("<f4", (3, 5)), "b": random_array("<i2", (7,))}
    with unittest.mock.patch.multiple(zipfile, ZIP64_LIMIT=10, ZIP_FILECOUNT_LIMIT=1):
        for save in (np.savez, np.savez_compressed):
            save(folder / "a.npz", **expected)
            assert b"PK\6\7" in (folder / "a.npz").read_bytes()[-50:]
            check_archive(convert(folder / "a.npz", folder / "b.npz"), expected)


def more_members_than_16_bits_count_survive(folder):
    with io.BytesIO() as file:
        np.save(file, np.arange(3, dtype=np.uint8))
        member = file.getvalue()
    with zipfile.ZipFile(folder / "a.npz", "w") as archive:
        for i in range(65600):
            archive.writestr(f"{i}.npy", member)
    convert(folder / "a.npz", folder / "b.npz")
    with zipfile.ZipFile(folder / "b.npz") as archive:
        assert len(archive.namelist()) == 65600 and archive.read("65599.npy")[-3:] == b"\0\1\2"


def elements_in_an_archive_are_aligned(folder):
    expected = named_arrays()
    np.savez(folder / "a.npz", **expected)
    for align in (64, 4096):
        convert(folder / "a.npz", folder / "b.npz", "--align", align)
        check_archive(folder / "b.npz", expected)
        raw = (folder / "b.npz").read_bytes()
        with zipfile.ZipFile(folder / "b.npz") as archive:
            for info, array in zip(archive.infolist(), expected.values()):
                data = info.header_offset + 30 + len(info.filename.encode()) + info.file_size - array.nbytes
                assert data % align == 0 and raw[data:data + array.nbytes] == \
                    np.ascontiguousarray(swapped(array)).tobytes()


def damage_is_seen(folder):
    np.savez(folder / "a.npz", a=np.arange(100.0))
    raw = bytearray((folder / "a.npz").read_bytes())
    raw[500] ^= 1
    (folder / "a.npz").write_bytes(raw)
    assert "BAD" in tenon("verify", folder / "a.npz", status=1)
    tenon("convert", folder / "a.npz", folder / "b.npz", status=1)
    assert not (folder / "b.npz").exists()


def metadata_and_narrow_types_survive_in_archives(folder):
    array = np.random.default_rng(5).normal(size=(6, 64)).astype("<f4")
    np.savez(folder / "a.npz", a=array, b=array[0])
    convert(folder / "a.npz", folder / "b.zt", "--cast", "a=int8,per=channel,axis=0", "--cast", "b=int4,per=tensor")
    convert(folder / "b.zt", folder / "c.npz")
    tenon("diff", folder / "b.zt", folder / "c.npz")
    with np.load(folder / "c.npz") as found:
        assert found.files[0] == "a" and "a.scale" in found.files and found["b"].dtype == np.uint8


def archives_can_be_compressed(folder):
    rng = np.random.default_rng(0)
    arrays = dict(small=np.arange(12.0).reshape(3, 4), large=rng.integers(0, 4, 5_000_000).astype("int16"), none=np.zeros((0, 3)),
                  scalar=np.float32(1.5), columns=np.asfortranarray(np.arange(6).reshape(2, 3)))
    np.savez(folder / "a.npz", **arrays)
    for level in ("deflate", "deflate:1", "deflate:9"):
        convert(folder / "a.npz", folder / "b.npz", "--compress", level)
        with zipfile.ZipFile(folder / "b.npz") as archive:
            assert archive.testzip() is None and {i.compress_type for i in archive.infolist()} == {zipfile.ZIP_DEFLATED}
        with np.load(folder / "b.npz") as found:
            assert found.files == list(arrays)
            for name, array in arrays.items():
                assert found[name].dtype == array.dtype and np.array_equal(found[name], array)
        tenon("verify", folder / "b.npz")
    assert (folder / "b.npz").stat().st_size < (folder / "a.npz").stat().st_size / 4


each.run([archives_can_be_compressed, every_array_numpy_saves_comes_back, what_is_written_is_what_numpy_saves, every_version_is_read,
          types_of_ml_dtypes_keep_their_bits, narrow_floats_are_read_again_and_loaded_as_bytes,
          what_numpy_cannot_say_is_listed_or_refused, the_first_of_two_arrays_is_read_with_a_warning, numpy_maps_what_is_written,
          every_archive_numpy_saves_comes_back, large_archives_survive_both_ways, archives_written_to_a_pipe_are_read,
          zip64_is_read, more_members_than_16_bits_count_survive, elements_in_an_archive_are_aligned, damage_is_seen,
          metadata_and_narrow_types_survive_in_archives])
