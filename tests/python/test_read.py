"""Opening, listing and reading: every container and type, views, buffers, DLPack, slices."""

import io
import itertools
import pathlib
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import tenon
from tenon import _arrays, _core

CONTAINERS = {
    "ztensor": ".zt",
    "safetensors": ".safetensors",
    "npz": ".npz",
    "raw": ".json",
    "btf": ".btf",
    "npy": ".npy",
}
TYPES = [name for name in _arrays.TYPES if name in _arrays.PLAIN or _arrays.ml_type(name) is not None]


def bits(array):
    """The bits of an array: values that are equal may differ in them."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def some(name, shape, random):
    """An array with any codes of a type."""
    width, kind = _arrays.TYPES[name][:2]
    count = int(np.prod(shape))
    if width < 8:
        packed = random.integers(0, 256, (count * width + 7) // 8, dtype=np.uint8)
        return _arrays.unpacked(packed, name, shape)
    if name == "bool":
        return random.integers(0, 2, shape).astype(bool)
    raw = random.integers(0, 256, count * width // 8, dtype=np.uint8)
    return raw.view(_arrays.numpy_type(name)).reshape(shape)


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("name", [name for name in TYPES if name not in ("tf32", "fx8", "fx16")])
def test_every_type_comes_back_bit_for_bit_from_every_container(container, name, random, tmp_path):
    path = tmp_path / f"x{CONTAINERS[container]}"
    shape = (3, 8) if container != "btf" else (1, 2, 3, 4)
    array = some(name, shape, random)
    try:
        tenon.save(path, {"w": array}, to=container, drop_names=True)
    except (tenon.LossError, tenon.UnsupportedError) as refused:
        assert str(refused)  # a container that has no place for the type says so
        assert container in ("btf", "npy", "npz", "raw")
        return
    with tenon.open(path, format=container) as f:
        (t,) = f.values()
        assert (t.dtype, t.shape, f.format) == (name, shape, container)
        for got in (np.asarray(t), t.numpy(), t.numpy(copy=True), t.values(name)):
            assert got.dtype == array.dtype and got.shape == array.shape
            assert np.array_equal(bits(got), bits(array))


@pytest.mark.parametrize("compress", [None, "zstd"])
def test_every_oracle_reads_what_is_written_and_the_other_way_round(compress, random, tmp_path):
    import safetensors.numpy

    arrays = {
        name: some(name, (2, 5), random)
        for name in ("float64", "float32", "float16", "int64", "uint8", "bool")
    }
    tenon.save(tmp_path / "a.safetensors", arrays)
    for name, array in safetensors.numpy.load_file(tmp_path / "a.safetensors").items():
        assert np.array_equal(bits(array), bits(arrays[name]))
    safetensors.numpy.save_file(arrays, tmp_path / "b.safetensors")
    tenon.convert(tmp_path / "b.safetensors", tmp_path / "b.zt", compress=compress)
    with tenon.open(tmp_path / "b.zt") as f:
        for name, array in arrays.items():
            assert np.array_equal(bits(f[name]), bits(array))
            assert f[name].is_view == (compress is None)


def test_a_file_is_a_mapping(sample):
    from collections.abc import Mapping

    f = tenon.open(sample)
    assert isinstance(f, Mapping) and len(f) == 2 and list(f) == ["embed.weight", "norm.weight"]
    assert "norm.weight" in f and "x" not in f and 5 not in f and "a\0b" not in f and "\ud800" not in f
    assert [name for name, _ in f.items()] == list(f.keys())
    assert f.get("x") is None and f.metadata == {"made by": "a test"} and f.warnings == ()
    assert f.shards == (str(sample),) and f.nbytes == sample.stat().st_size
    with pytest.raises(KeyError, match="nothing"):
        f["nothing"]
    with pytest.raises(TypeError):
        _core.Tensor()


def test_views_are_views_and_copies_are_writable(sample, tmp_path):
    f = tenon.open(sample)
    t = f["embed.weight"]
    a, b = np.asarray(t), np.asarray(t)
    assert t.is_view and np.shares_memory(a, b) and not a.flags.writeable and a.base is not None
    with pytest.raises(ValueError):
        a[0, 0] = 1
    c = t.numpy(copy=True)
    c[0, 0] = 5
    assert a[0, 0] == 0 and not np.shares_memory(a, c)
    assert np.shares_memory(t.numpy(copy=False), a)
    tenon.convert(f, tmp_path / "x.zt", compress="zstd")
    g = tenon.open(tmp_path / "x.zt")["embed.weight"]
    assert not g.is_view and np.asarray(g).flags.writeable and memoryview(g).readonly is False
    with pytest.raises(ValueError, match="without a copy"):
        g.numpy(copy=False)
    with pytest.raises(BufferError, match="copy=False"):
        g.__dlpack__(copy=False)


def test_buffers_have_letters_or_say_what_to_use(random, tmp_path):
    arrays = {name: some(name, (2, 4), random) for name in TYPES if name not in ("tf32", "fx8", "fx16")}
    tenon.save(tmp_path / "x.zt", arrays)
    f = tenon.open(tmp_path / "x.zt")
    for name, array in arrays.items():
        if name in _arrays.PLAIN:
            view = memoryview(f[name])
            assert view.shape == (2, 4) and view.tobytes() == array.tobytes()
        else:
            with pytest.raises(BufferError, match="packed"):
                memoryview(f[name])
        raw = f[name].packed()
        assert raw.nbytes == (8 * _arrays.TYPES[name][0] + 7) // 8
        assert io.BytesIO().write(f[name]) == raw.nbytes  # a buffer without a format
    assert f["bfloat16"].packed().format == "H" and f["int4"].packed().shape == (4,)


def test_dlpack_goes_both_ways(sample, random):
    t = tenon.open(sample)["embed.weight"]
    a = np.from_dlpack(t)
    assert np.shares_memory(a, np.asarray(t)) and not a.flags.writeable and t.__dlpack_device__() == (1, 0)
    assert "dltensor_versioned" in repr(t.__dlpack__(max_version=(1, 0))) and '"dltensor"' in repr(
        t.__dlpack__()
    )
    with pytest.raises(BufferError):
        t.__dlpack__(dl_device=(2, 0))

    class Wrapped:
        def __init__(self, array, versioned):
            self.array, self.versioned = array, versioned

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options if self.versioned else {})

    for versioned, array in itertools.product(
        (False, True), (np.arange(6.0), np.arange(24).reshape(4, 6)[::2, ::-1])
    ):
        assert np.array_equal(tenon.tensor(Wrapped(array, versioned)).numpy(), array)
    del t
    assert a[1, 1] == 7


KEYS = [
    np.s_[1:3],
    np.s_[::2, 1:],
    np.s_[2],
    np.s_[-1, ...],
    np.s_[..., 1::3],
    np.s_[5:2],
    np.s_[1, 2],
    np.s_[...],
    np.s_[:, -2:],
    np.s_[3:, 0],
]


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"compress": "zstd"},
        {"cast": "bf16"},
        {"form": "csr"},
        {"cast": "mxfp4"},
        {"cast": "int4,per=channel,axis=0"},
    ],
    ids=str,
)
def test_slices_are_those_of_numpy(key, how, sample, tmp_path):
    tenon.convert(sample, tmp_path / "x.zt", only="embed.*", **how)
    t = tenon.open(tmp_path / "x.zt")["embed.weight"]
    whole = t.numpy()
    part = t[key]
    got = np.asarray(part)
    assert got.shape == whole[key].shape and np.array_equal(bits(got), bits(whole[key]))
    if how in ({}, {"cast": "bf16"}):
        assert part.is_view and (not got.size or np.shares_memory(got, whole))
    assert np.array_equal(part.values(), t.values()[key])


def test_slices_of_slices_and_wrong_ones(sample):
    t = tenon.open(sample)["embed.weight"]
    assert np.array_equal(t[1:][:, ::2][1].numpy(), t.numpy()[1:][:, ::2][1])
    assert len(t) == 4 and t[1:3].shape == (2, 6)
    for key, text in (
        (4, "out of range"),
        (-5, "out of range"),
        ((0, 0, 0), "too many"),
        ("a", "integers"),
        (slice(None, None, -1), "step below 1"),
        ([0, 1], "integers"),
        ((..., ...), "too many"),
    ):
        with pytest.raises(IndexError, match=text):
            t[key]


def test_sources_of_all_kinds(sample, tmp_path):
    data = sample.read_bytes()
    expected = tenon.open(sample)["embed.weight"].numpy()
    for source in (
        str(sample),
        sample,
        data,
        bytearray(data),
        memoryview(data),
        io.BytesIO(data),
        open(sample, "rb"),
        [sample],
    ):
        for how in ("auto", "pread"):
            with tenon.open(source, io=how) as f:
                assert np.array_equal(f["embed.weight"].numpy(), expected)
                assert tenon.stats(f).total.max == 23
    tenon.save(tmp_path / "more.zt", {"more": np.ones(3)})
    with tenon.open([sample, tmp_path / "more.zt"]) as f:
        assert list(f) == ["embed.weight", "norm.weight", "more"] and len(f.shards) == 2
    with pytest.raises(ValueError, match="io"):
        tenon.open(sample, io="fast")


def test_a_file_object_that_fails_says_so(sample, recwarn):
    class Broken(io.BytesIO):
        broken = False

        def read(self, size=-1):
            if self.broken:
                raise RuntimeError("gone")
            return super().read(size)

    source = Broken(sample.read_bytes())
    f = tenon.open(source)
    source.broken = True
    with pytest.raises(OSError, match="could not be read"):
        f["embed.weight"].numpy()

    class Short(io.BytesIO):
        def read(self, size=-1):
            return b""

    with pytest.raises(tenon.FormatError, match="file object"):
        tenon.open(Short(sample.read_bytes()))


def test_fsspec(sample):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    with memory.open("/x.safetensors", "wb") as out:
        out.write(sample.read_bytes())
    with memory.open("/x.safetensors", "rb") as source:
        with tenon.open(source) as f:
            assert f["norm.weight"].tolist() == [1, 0.5, 2]
            assert f["embed.weight"][2:, 1].tolist() == [13, 19]


def test_url(sample):
    """A URL is opened as a path is; what is asked for is fetched."""
    program = pathlib.Path(__file__).resolve().parents[1] / "remote/server.py"
    server = subprocess.Popen([sys.executable, "-B", program, sample.parent], stdout=subprocess.PIPE)
    try:
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/{sample.name}"
        with tenon.open(url) as f:
            assert f["norm.weight"].tolist() == [1, 0.5, 2]
            assert f["embed.weight"][2:, 1].tolist() == [13, 19]
        with pytest.raises(OSError, match="404"):
            tenon.open(url + ".missing")
    finally:
        server.kill()
        server.wait()


def test_parts_scaling_and_metadata(sample, tmp_path):
    tenon.convert(sample, tmp_path / "x.zt", cast="mxfp4")
    t = tenon.open(tmp_path / "x.zt")["embed.weight"]
    assert (
        t.form == "scaled"
        and list(t.parts) == ["data", "scale"]
        and t.scaling.datatype == "e2m1fnuz|e8m0_t32"
    )
    assert t.parts["scale"].numpy().dtype == ml_dtypes.float8_e8m0fnu and t.parts["data"].shape == (4, 3)
    assert t.values().shape == (4, 6) and t.values("float64").dtype == np.float64
    assert np.array_equal(tenon.dequantize(t), t.values())
    s = tenon.open(sample)["norm.weight"]
    assert s.stored.encoding == "raw" and s.stored.file == str(sample) and s.metadata == {} and s.tied is None
    assert s.ndim == 1 and s.size == 3 and s.nbytes == 12 and not s.is_lazy and s.layout is None


def test_text_and_pictures(sample, tmp_path):
    f = tenon.open(sample)
    assert repr(f) == f"File('{sample}', safetensors, 2 tensors)"
    assert repr(f["norm.weight"]) == "Tensor('norm.weight', float32, (3,))"
    assert "<td>norm.weight</td>" in f._repr_html_() and "0.5 to 2" in f["norm.weight"]._repr_html_()
    assert "magnitudes" not in f._repr_html_()
    tenon.stats(f)
    assert "magnitudes" in f._repr_html_() and "█" in f._repr_html_()
    tenon.save(tmp_path / "<b>.zt", {"<i>": np.ones(2)} | {str(i): np.ones(1) for i in range(60)})
    text = tenon.open(tmp_path / "<b>.zt")._repr_html_()
    assert "&lt;i&gt;" in text and "<i>" not in text and "<b>" not in text and "and 11 more" in text


def test_without_numpy_memoryviews_work(sample):
    import subprocess
    import sys

    code = (
        "import sys\nfor name in ('numpy', 'ml_dtypes', 'torch', 'tqdm'): sys.modules[name] = None\n"
        "import tenon\nt = tenon.open(sys.argv[1])['norm.weight']\n"
        "assert memoryview(t).tolist() == [1, 0.5, 2]\n"
        "assert memoryview(tenon.open(sys.argv[1])['embed.weight'][1]).tolist()[0] == 6\n"
        "try: t.numpy()\nexcept ImportError as missing: print(missing)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, sample], capture_output=True, text=True, check=True)
    assert "pip install numpy" in done.stdout
