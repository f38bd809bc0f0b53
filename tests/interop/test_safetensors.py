"""test_safetensors.py TOOL: Tenon and the Python package `safetensors` read each other's files.

Uses the tool only.  tests/interop/run makes the environment."""
import json
import struct

import ml_dtypes
import numpy as np
import safetensors
import safetensors.numpy

import each
from tool import random_array, run, tenon

FILLER = "__tenon_filler_"
SMALL_FLOATS = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]
PLAIN = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8",
         "bool", "complex64"]


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name) if name in SMALL_FLOATS else name)


def content(path):
    """What Python sees: {name: (type, shape, bytes)}, and the metadata."""
    tensors = {name: (t["dtype"], tuple(t["shape"]), bytes(t["data"]))
               for name, t in safetensors.deserialize(path.read_bytes())}
    with safetensors.safe_open(path, framework="np") as file:
        return tensors, file.metadata() or {}


def header(path):
    raw = path.read_bytes()
    size, = struct.unpack("<Q", raw[:8])
    return json.loads(raw[8:8 + size]), 8 + size


def by_hand(path, text, data):
    path.write_bytes(struct.pack("<Q", len(text)) + text.encode() + data)


def there_and_back(path, *options):
    """safetensors -> zTensor -> safetensors: Python sees the same before and after."""
    zt, back = path.with_suffix(".zt"), path.with_name("back.safetensors")
    tenon("convert", "--force", "--quiet", *options, path, zt)
    tenon("verify", zt)
    tenon("convert", "--force", "--quiet", "--compress", "none", "--checksum", "none", zt, back)
    assert content(back) == content(path), f"{path.name} changed on its way through zTensor {options}"
    tenon("diff", path, zt)


def every_type():
    return {name: random_array(dtype_of(name), (5, 8), i) for i, name in enumerate(PLAIN + SMALL_FLOATS)}


def float4(path):
    packed = random_array("uint8", (6, 4))
    spec = safetensors.TensorSpec(dtype="float4_e2m1fn_x2", shape=list(packed.shape), data_ptr=packed.ctypes.data,
                                  data_len=packed.nbytes)
    safetensors.serialize_file({"f4": spec}, path, metadata=None)


# ---- files written by Python ----

def every_type_python_writes_survives(folder):
    path = folder / "types.safetensors"
    safetensors.numpy.save_file(every_type(), path)
    for options in [], ["--compress", "zstd"], ["--checksum", "crc32c"], ["--compress", "zstd:9", "--checksum", "sha256"]:
        there_and_back(path, *options)


def four_bit_floats_survive(folder):
    float4(folder / "f4.safetensors")
    there_and_back(folder / "f4.safetensors", "--compress", "zstd")


def six_bit_floats_survive(folder):
    path, out = folder / "f6.safetensors", folder / "out.safetensors"
    by_hand(path, '{"a":{"dtype":"F6_E2M3","shape":[4,3],"data_offsets":[0,9]},'
                  '"b":{"dtype":"F6_E3M2","shape":[8],"data_offsets":[9,15]}}', bytes(range(200, 215)))
    there_and_back(path)
    tenon("convert", path, out)
    assert content(out) == content(path)


def scalars_and_empty_tensors_survive(folder):
    path = folder / "shapes.safetensors"
    safetensors.numpy.save_file({"scalar": np.array(1.5, "float32"), "empty": np.zeros((0,), "int64"),
                                 "empty middle": np.zeros((3, 0, 2), "float16"), "one": np.ones((1,), "uint8"),
                                 "deep": random_array("int16", (1, 2, 1, 3, 1, 2, 1, 2))}, path)
    there_and_back(path)
    there_and_back(path, "--compress", "zstd", "--checksum", "crc32c")


def a_file_without_tensors_survives(folder):
    path = folder / "none.safetensors"
    safetensors.numpy.save_file({}, path)
    there_and_back(path)


def metadata_and_odd_names_survive(folder):
    path = folder / "meta.safetensors"
    names = ["spaces in it", 'quote " and \\', "tab\tand\nline", "ünïcode 名前 🙂", "a" * 500, "tenon", "x.scale"]
    safetensors.numpy.save_file({name: np.arange(3, dtype="int32") + i for i, name in enumerate(names)}, path,
                                metadata={"format": "pt", "": "empty key", "long": "m" * 3000, "line\n": "\x01 \u2028",
                                          "json": '{"a": [1, 2]}'})
    there_and_back(path)


def many_tensors_survive(folder):
    path = folder / "many.safetensors"
    safetensors.numpy.save_file({f"layers.{i}.weight": random_array("float16", (i % 7, 3), i) for i in range(3000)}, path)
    there_and_back(path)


def listing_agrees_with_numpy(folder):
    path, tensors = folder / "types.safetensors", every_type()
    safetensors.numpy.save_file(tensors, path)
    listed = {t["name"]: (t["type"], tuple(t["shape"]), t["nbytes"]) for t in json.loads(run("ls", "--json", path).stdout)["tensors"]}
    seen = {name: (t[0], t[1], len(t[2])) for name, t in content(path)[0].items()}
    assert listed == seen, f"{listed}\n{seen}"


def plain(value):
    """A NumPy value as `tenon show --json` writes it."""
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    return value


def values_agree_with_numpy(folder):
    path = folder / "values.safetensors"
    tensors = every_type()
    for name in SMALL_FLOATS[1:]:       # every code of the eight-bit floats
        tensors[name] = np.arange(256, dtype="uint8").view(dtype_of(name))
    tensors["bfloat16"] = np.arange(0, 65536, 7, dtype="uint16").view(ml_dtypes.bfloat16)
    tensors["float16"] = np.arange(0, 65536, 5, dtype="uint16").view("float16")
    safetensors.numpy.save_file(tensors, path)
    for name, array in tensors.items():
        shown = json.loads(run("show", "--json", path, name).stdout)["values"]
        with np.errstate(invalid="ignore"):     # signalling NaN
            array = array.astype("float64") if name in SMALL_FLOATS else array
        expected = [plain(v) for v in array.reshape(-1).tolist()]
        for _ in array.shape[1:]:
            shown = [v for row in shown for v in row]
        wrong = [(i, e, s) for i, (e, s) in enumerate(zip(expected, shown, strict=True)) if e != s]
        assert not wrong, f"{name}: {len(wrong)} of {len(expected)} values differ: (index, NumPy, tenon) {wrong[:4]}"


def sharded_set(folder, tensors):
    """The layout of the Hugging Face hub: three files and an index."""
    names, weight_map = list(tensors), {}
    for i in range(3):
        shard = f"model-{i + 1:05}-of-00003.safetensors"
        part = {name: tensors[name] for name in names[i::3]}
        safetensors.numpy.save_file(part, folder / shard, metadata={"format": "pt"})
        weight_map.update(dict.fromkeys(part, shard))
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": sum(t.nbytes for t in tensors.values())},
                                 "weight_map": weight_map}, indent=2))
    return index


def a_sharded_set_opens_as_one_file(folder):
    tensors = every_type()
    index, one = sharded_set(folder, tensors), folder / "one.safetensors"
    tenon("verify", index)
    tenon("convert", "--quiet", index, folder / "one.zt")
    tenon("convert", "--quiet", "--drop-metadata", folder / "one.zt", one)
    safetensors.numpy.save_file(tensors, folder / "expected.safetensors")
    assert content(one)[0] == content(folder / "expected.safetensors")[0]


def what_python_refuses_is_refused(folder):
    good = '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    bad = {"a hole": (good.replace("[0,8]", "[4,12]"), bytes(12)), "bytes at the end": (good, bytes(9)),
           "cut data": (good, bytes(7)), "a wrong size": (good.replace("[2]", "[3]"), bytes(8)),
           "an unknown type": (good.replace("F32", "F33"), bytes(8)), "no JSON": (good[:-1], bytes(8)),
           "a huge shape": (good.replace("[2]", "[4294967296,4294967296,2]"), bytes(8)),
           "overlap": (good[:-1] + ',"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}', bytes(12))}
    path = folder / "bad.safetensors"
    for what, (text, data) in bad.items():
        by_hand(path, text, data)
        try:
            safetensors.deserialize(path.read_bytes())
        except safetensors.SafetensorError:
            tenon("convert", path, folder / "out.zt", status=1)
        else:
            raise AssertionError(f"Python reads {what}")
    by_hand(path, good, bytes(8))
    tenon("convert", "--quiet", path, folder / "out.zt")


# ---- files written by Tenon ----

def written(folder, *options, out="out.safetensors"):
    """A file of every type through zTensor into safetensors: (expected, path)."""
    source = folder / "source.safetensors"
    safetensors.numpy.save_file(every_type() | {"odd": random_array("uint8", (13,)), "empty": np.zeros((0, 2), "int32"),
                                                "scalar": np.array(7, "int64")}, source, metadata={"format": "np"})
    tenon("convert", "--force", "--quiet", "--compress", "zstd", source, folder / "source.zt")
    tenon("convert", "--quiet", "--compress", "none", *options, folder / "source.zt", folder / out)
    return content(source), folder / out


def python_loads_a_plain_file(folder):
    expected, path = written(folder)
    assert content(path) == expected
    some = written(folder, "--only", "float32", "--only", "int*", out="some.safetensors")[1]
    arrays = safetensors.numpy.load_file(some)
    assert sorted(arrays) == ["float32", "int16", "int32", "int64", "int8"]
    assert all(array.tobytes() == every_type()[name].tobytes() for name, array in arrays.items())


def python_loads_an_aligned_file(folder):
    expected, path = written(folder, "--align", 4096)
    assert content(path) == expected
    tensors, begin = header(path)
    assert begin % 4096 == 0, f"the data section begins at {begin}"
    for name, t in tensors.items():
        width = 1 if name == "__metadata__" else len(expected[0][name][2]) // max(1, int(np.prod(t["shape"], dtype=int)))
        assert name == "__metadata__" or t["data_offsets"][0] % max(1, min(width, 8)) == 0, f"{name} is not naturally aligned"


def python_loads_a_file_with_fillers(folder):
    expected, path = written(folder, "--align", 256, "--option", "safetensors.filler=yes")
    tensors, metadata = content(path)
    assert all(t[0] == "U8" for name, t in tensors.items() if name.startswith(FILLER))
    assert {name: t for name, t in tensors.items() if not name.startswith(FILLER)} == expected[0]
    assert metadata["format"] == "np"
    listed, begin = header(path)
    for name, t in listed.items():
        if name != "__metadata__" and not name.startswith(FILLER) and t["data_offsets"][0] != t["data_offsets"][1]:
            assert (begin + t["data_offsets"][0]) % 256 == 0, f"{name} is not on 256 bytes"
    tenon("diff", folder / "source.zt", path)


def python_loads_a_sharded_set(folder):
    expected, path = written(folder, "--shard-size", 700, out="set.safetensors.index.json")
    index = json.loads(path.read_text())
    union = {}
    for shard in sorted(set(index["weight_map"].values())):
        tensors, metadata = content(folder / shard)
        assert {name for name, file in index["weight_map"].items() if file == shard} == set(tensors)
        assert sum(len(t[2]) for t in tensors.values()) <= 700
        assert metadata["format"] == "np"
        union |= tensors
    assert union == expected[0]
    assert len(set(index["weight_map"].values())) > 2
    assert index["metadata"]["total_size"] == sum(len(t[2]) for t in union.values())


# ---- codes with scales ----

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], "float32")


def e2m1_values(packed):
    """Two codes a byte, the first in its low bits."""
    codes = np.stack([packed & 15, packed >> 4], axis=-1).reshape(*packed.shape[:-1], -1)
    return np.where(codes & 8, -E2M1[codes & 7], E2M1[codes & 7])


def as_array(tensor, dtype):
    return np.frombuffer(tensor[2], dtype).reshape(tensor[1])


def quantized(folder, datatype, *options):
    """What Python sees of a tensor of this datatype, and the values that Tenon says it has."""
    source, path, back = (folder / name for name in ("x.safetensors", "q.safetensors", "back.safetensors"))
    x = np.random.default_rng(5).normal(size=(6, 64)).astype("float32")
    safetensors.numpy.save_file({"fc.weight": x}, source)
    tenon("convert", "--quiet", "--cast", datatype, *options, source, path)
    tenon("convert", "--quiet", "--cast", "f32", path, back)
    return content(path)[0], safetensors.numpy.load_file(back)["fc.weight"], x


def mxfp4_codes_are_what_ocp_says(folder):
    tensors, values, x = quantized(folder, "mxfp4", "--option", "safetensors.ocp-names=yes")
    assert set(tensors) == {"fc.weight", "fc.weight_scale"}
    assert [tensors[name][:2] for name in sorted(tensors)] == [("U8", (6, 32)), ("F8_E8M0", (6, 2))]
    scale = as_array(tensors["fc.weight_scale"], ml_dtypes.float8_e8m0fnu).astype("float32")
    expected = e2m1_values(as_array(tensors["fc.weight"], "uint8")) * scale.repeat(32, axis=1)
    assert (expected == values).all() and np.abs(values - x).max() < 0.6


def nvfp4_codes_are_what_modelopt_says(folder):
    tensors, values, x = quantized(folder, "nvfp4", "--option", "safetensors.ocp-names=yes")
    assert set(tensors) == {"fc.weight", "fc.weight_scale", "fc.weight_scale_2"}
    assert [tensors[name][:2] for name in sorted(tensors)] == [("U8", (6, 32)), ("F8_E4M3", (6, 4)), ("F32", ())]
    whole = as_array(tensors["fc.weight_scale_2"], "float32")
    scale = as_array(tensors["fc.weight_scale"], ml_dtypes.float8_e4m3fn).astype("float32") * whole
    assert whole == np.float32(np.abs(x).max()) / np.float32(6 * 448)
    expected = e2m1_values(as_array(tensors["fc.weight"], "uint8")) * scale.repeat(16, axis=1)
    assert (expected == values).all() and np.abs(values - x).max() < 0.6


def mxfp8_codes_are_those_of_the_type(folder):
    tensors, values, _ = quantized(folder, "mxfp8")
    assert set(tensors) == {"fc.weight", "fc.weight.scale"}
    codes = as_array(tensors["fc.weight"], ml_dtypes.float8_e4m3fn).astype("float32")
    scale = as_array(tensors["fc.weight.scale"], ml_dtypes.float8_e8m0fnu).astype("float32")
    assert (codes * scale.repeat(32, axis=1) == values).all()


each.run([every_type_python_writes_survives, four_bit_floats_survive, six_bit_floats_survive,
          scalars_and_empty_tensors_survive, a_file_without_tensors_survives, metadata_and_odd_names_survive,
          many_tensors_survive, listing_agrees_with_numpy, values_agree_with_numpy, a_sharded_set_opens_as_one_file,
          what_python_refuses_is_refused, python_loads_a_plain_file, python_loads_an_aligned_file,
          python_loads_a_file_with_fillers, python_loads_a_sharded_set, mxfp4_codes_are_what_ocp_says,
          nvfp4_codes_are_what_modelopt_says, mxfp8_codes_are_those_of_the_type])
