"""torch tensors from files and into them; left out where torch is not installed."""

import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")

TYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float8_e4m3fn": torch.float8_e4m3fn,
    "float8_e5m2": torch.float8_e5m2,
    "int64": torch.int64,
    "int32": torch.int32,
    "int16": torch.int16,
    "int8": torch.int8,
    "uint8": torch.uint8,
    "bool": torch.bool,
    "complex64": torch.complex64,
}


def bits(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("suffix", [".safetensors", ".zt"])
def test_every_type_comes_back_bit_for_bit(name, suffix, tmp_path, random):
    codes = random.integers(0, 2 if name == "bool" else 256, 24 * TYPES[name].itemsize, "u1")
    made = torch.from_numpy(codes).view(TYPES[name]).reshape(2, 3, 4)
    path = tmp_path / ("x" + suffix)
    tenon.save(path, {"t": made, "turned": made.transpose(0, 2), "none": made[:, :0]})
    f = tenon.open(path)
    assert f["t"].dtype == name and f["t"].torch().dtype == TYPES[name]
    assert bits(f["t"].torch()) == bits(made)
    if not name.startswith("float8"):  # which torch 2.6 does not take from DLPack
        assert bits(torch.from_dlpack(f["t"])) == bits(made)
    assert bits(f["turned"].torch()) == bits(made.transpose(0, 2)) and f["turned"].shape == (4, 3, 2)
    assert f["none"].torch().shape == (2, 0, 4)
    assert bits(f["t"][1, 1:].torch()) == bits(made[1, 1:])


def test_views_share_memory_and_outlive_the_file(tmp_path):
    path = tmp_path / "x.safetensors"
    tenon.save(path, {"t": torch.arange(10, dtype=torch.float32)})
    f = tenon.open(path)
    one, other = f["t"].torch(), torch.from_dlpack(f["t"])
    assert one.data_ptr() == other.data_ptr()
    f.close()
    del f
    assert one.sum() == other.sum() == 45


def test_values_of_codes_and_entries(tmp_path):
    path = tmp_path / "x.zt"
    made = torch.arange(64, dtype=torch.float32).reshape(2, 32)
    tenon.save(path, {"t": made})
    tenon.convert(path, tmp_path / "mx.zt", cast="mxfp8")
    t = tenon.open(tmp_path / "mx.zt")["t"]
    assert np.array_equal(np.asarray(t.values("float32")), tenon.quantize(made, "mxfp8").values())
    assert t.cast("bfloat16").torch().dtype == torch.bfloat16


def tensors_of(value, path=""):
    """Names and tensors of what torch.load() gives, as docs/formats/pytorch.md names them."""
    if isinstance(value, torch.Tensor):
        yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else []
    for key, item in items:
        yield from tensors_of(item, f"{path}.{key}" if path else str(key))


@pytest.mark.parametrize("zipped", [True, False])
def test_a_checkpoint_is_what_torch_saved(zipped, tmp_path):
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Linear(4, 2))
    base = torch.arange(48.0).reshape(6, 8)
    saved = {"model": model.state_dict(), "step": 7, "views": [base, base.T, base[2:4], base[:, 3], base.expand(2, 6, 8)],
             "half": base.half(), "brain": base.bfloat16(), "eight": base.to(torch.float8_e4m3fn) if zipped else base,
             "empty": torch.empty(0, 3), "scalar": torch.tensor(5), "complex": torch.complex(base, -base)}
    path = tmp_path / "checkpoint.pt"
    torch.save(saved, path, _use_new_zipfile_serialization=zipped)
    f = tenon.open(path)
    expected = dict(tensors_of(saved))
    assert list(f) == list(expected)
    for name, tensor in expected.items():
        found = f[name]
        assert tuple(found.shape) == tuple(tensor.shape) and TYPES.get(found.dtype, tensor.dtype) == tensor.dtype
        assert bits(found.torch()) == bits(tensor), name
    out = tmp_path / "weights.safetensors"
    tenon.convert(f, out)
    again = tenon.open(out)
    assert all(bits(again[name].torch()) == bits(tensor) for name, tensor in expected.items())


def test_a_whole_module_is_its_state_dict(tmp_path):
    model = torch.nn.Sequential(torch.nn.Embedding(5, 3), torch.nn.LayerNorm(3))
    torch.save(model, tmp_path / "module.pt")
    f = tenon.open(tmp_path / "module.pt")
    assert list(f) == list(model.state_dict())
    assert all(bits(f[name].torch()) == bits(tensor) for name, tensor in model.state_dict().items())
    assert any("calls torch.nn.modules.container.Sequential" in warning for warning in f.warnings)
