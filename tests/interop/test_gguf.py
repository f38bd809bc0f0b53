"""test_gguf.py TOOL: GGUF files against gguf-py, in both directions."""
import json
from pathlib import Path

import gguf
import numpy as np
import safetensors.numpy

import each
from tool import random_array, run, tenon

PLAIN = {np.float32: "F32", np.float16: "F16", np.float64: "F64", np.int8: "I8", np.int16: "I16", np.int32: "I32",
         np.int64: "I64"}
# what gguf-py can encode
BLOCKS = [gguf.GGMLQuantizationType[name] for name in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "TQ1_0", "TQ2_0", "MXFP4", "BF16")]


def metadata(path):
    return json.loads(run("meta", path, "--json").stdout)["metadata"]


def tensors(path):
    return [json.loads(line) for line in run("ls", path, "--json").stdout.splitlines()][0]["tensors"]


def write_all(path, endianess=gguf.GGUFEndian.LITTLE, blocks=True):
    """A file of every kind of value, and of tensors that gguf-py can make; returns the values."""
    random = np.random.default_rng(7)
    writer = gguf.GGUFWriter(path, "tenon", endianess=endianess)
    writer.add_uint8("u8", 200)
    writer.add_int8("i8", -100)
    writer.add_uint16("u16", 60000)
    writer.add_int16("i16", -30000)
    writer.add_uint32("u32", 7)
    writer.add_int32("i32", 7)
    writer.add_uint64("u64", 7)
    writer.add_int64("i64", -(1 << 63))
    writer.add_float32("f32", 0.25)
    writer.add_float64("f64", 0.1)
    writer.add_bool("bool", True)
    writer.add_string("str", "Grüße, 世界")
    writer.add_array("ints", [1, -2, 3])
    writer.add_array("floats", [0.5, -1.0])
    writer.add_array("tokens", ["a", "ß", ""])
    writer.add_array("bools", [True, False])
    made = {}
    for i, dtype in enumerate(PLAIN):
        name = f"plain.{np.dtype(dtype).name}"
        made[name] = random.integers(-100, 100, (3, i + 1, 5)).astype(dtype)
        writer.add_tensor(name, made[name])
    for kind in BLOCKS if blocks else []:
        name = f"blocks.{kind.name}"
        x = random.normal(0, 1, (4, 512)).astype(np.float32)
        data = gguf.quants.quantize(x, kind)
        made[name] = gguf.quants.dequantize(data, kind)
        writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return made


def check_values(path, made, folder):
    values = folder / "values.safetensors"
    tenon("convert", "-q", "--force", path, values, "--cast", "blocks.*=f32", "--drop-metadata") if any(
        name.startswith("blocks.") for name in made) else tenon("convert", "-q", "--force", path, values)
    arrays = safetensors.numpy.load_file(values)
    for name, array in made.items():
        assert arrays[name].shape == array.shape, name
        assert np.array_equal(arrays[name], array), name


def what_gguf_py_writes_is_read(folder):
    made = write_all(folder / "m.gguf")
    check_values(folder / "m.gguf", made, folder)
    found = metadata(folder / "m.gguf")
    assert found == {"general.architecture": "tenon", "u8": 200, "i8": -100, "u16": 60000, "i16": -30000, "u32": 7, "i32": 7,
                     "u64": 7, "i64": -(1 << 63), "f32": 0.25, "f64": 0.1, "bool": True, "str": "Grüße, 世界",
                     "ints": [1, -2, 3], "floats": [0.5, -1.0], "tokens": ["a", "ß", ""], "bools": [True, False]}, found


def big_endian_files_of_gguf_py_are_read(folder):
    made = write_all(folder / "big.gguf", gguf.GGUFEndian.BIG, blocks=False)    # it does not swap inside blocks
    check_values(folder / "big.gguf", made, folder)


def fields(reader):
    """Everything gguf-py sees of the metadata: types and bytes."""
    return {name: ([str(t) for t in field.types], [bytes(part.tobytes()) for part in field.parts])
            for name, field in reader.fields.items() if not name.startswith("GGUF.")}


def check_same(a, b):
    x, y = gguf.GGUFReader(a), gguf.GGUFReader(b)
    assert fields(x) == fields(y) and list(fields(x)) == list(fields(y))
    assert [(t.name, t.tensor_type, list(t.shape)) for t in x.tensors] == [(t.name, t.tensor_type, list(t.shape))
                                                                           for t in y.tensors]
    for s, t in zip(x.tensors, y.tensors):
        assert s.data.tobytes() == t.data.tobytes(), s.name


def what_is_written_again_is_the_same_to_gguf_py(folder):
    write_all(folder / "m.gguf")
    tenon("convert", "-q", folder / "m.gguf", folder / "again.gguf")
    check_same(folder / "m.gguf", folder / "again.gguf")
    for between in ("m.zt", "m.npz"):
        tenon("convert", "-q", folder / "m.gguf", folder / between)
        tenon("convert", "-q", "--force", folder / between, folder / "again.gguf")
        check_same(folder / "m.gguf", folder / "again.gguf")


def blocks_that_are_encoded_are_those_of_gguf_py(folder):
    x = np.random.default_rng(3).normal(0, 1, (8, 1024)).astype(np.float32)
    safetensors.numpy.save_file({"w": x}, folder / "w.safetensors")
    for kind in BLOCKS:
        name = kind.name.lower()
        tenon("convert", "-q", "--force", folder / "w.safetensors", folder / "w.gguf", "--cast",
              "ggml:mxfp4" if name == "mxfp4" else name)
        (tensor,) = gguf.GGUFReader(folder / "w.gguf").tensors
        assert tensor.tensor_type == kind and list(tensor.shape) == [1024, 8]
        assert tensor.data.tobytes() == gguf.quants.quantize(x, kind).tobytes(), name


def edits_are_seen_by_gguf_py(folder):
    write_all(folder / "m.gguf")
    before = {t.name: t.data.tobytes() for t in gguf.GGUFReader(folder / "m.gguf").tensors}
    tokens = [f"token {i}" for i in range(20000)]
    (folder / "tokens.json").write_text(json.dumps(tokens))
    tenon("meta", folder / "m.gguf", "-q", "--set", "u16=3", "--set", "new:f32=1.5", "--unset", "bools",
          "--set-file", f"tokens={folder / 'tokens.json'}")
    reader = gguf.GGUFReader(folder / "m.gguf")
    assert reader.get_field("u16").types == [gguf.GGUFValueType.UINT16] and reader.get_field("u16").contents() == 3
    assert reader.get_field("new").types == [gguf.GGUFValueType.FLOAT32] and reader.get_field("bools") is None
    assert reader.get_field("tokens").contents() == tokens
    assert {t.name: t.data.tobytes() for t in reader.tensors} == before


def splits_have_the_keys_that_gguf_py_knows(folder):
    write_all(folder / "m.gguf")
    tenon("convert", "-q", folder / "m.gguf", folder / "s.gguf", "--shard-size", "4096", "--align", "64")
    files = sorted(folder.glob("s-*.gguf"))
    names, split = [], gguf.Keys.Split
    for i, path in enumerate(files):
        reader = gguf.GGUFReader(path)
        assert path.name == f"s-{i + 1:05}-of-{len(files):05}.gguf"
        assert reader.get_field(split.LLM_KV_SPLIT_NO).contents() == i
        assert reader.get_field(split.LLM_KV_SPLIT_COUNT).contents() == len(files)
        assert reader.get_field("general.alignment").contents() == 64
        names += [t.name for t in reader.tensors]
    assert names == [t.name for t in gguf.GGUFReader(folder / "m.gguf").tensors] and len(files) > 2
    tenon("convert", "-q", files[0], folder / "merged.gguf", "--align", "32")
    assert [t.data.tobytes() for t in gguf.GGUFReader(folder / "merged.gguf").tensors] == [
        t.data.tobytes() for t in gguf.GGUFReader(folder / "m.gguf").tensors]


def any_bits_come_back(folder):
    writer = gguf.GGUFWriter(folder / "m.gguf", "tenon")
    for i, dtype in enumerate(PLAIN):
        writer.add_tensor(f"t{i}", random_array(dtype, (7, 3), i))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    tenon("convert", "-q", folder / "m.gguf", folder / "m.safetensors")
    tenon("convert", "-q", folder / "m.safetensors", folder / "back.gguf")
    back = {t.name: t.data.tobytes() for t in gguf.GGUFReader(folder / "back.gguf").tensors}
    for i, dtype in enumerate(PLAIN):
        assert back[f"t{i}"] == random_array(dtype, (7, 3), i).tobytes()


# the architectures of each table of --map
MAPS = {"llama": ["LLAMA"], "qwen": ["QWEN2", "QWEN3", "QWEN3MOE"], "gemma": ["GEMMA"], "gemma2": ["GEMMA2", "GEMMA3"],
        "phi3": ["PHI3", "PHIMOE"], "nemotron": ["NEMOTRON"], "gpt2": ["GPT2"]}


def maps_have_the_names_of_gguf_py(folder):
    """Each row of src/pipeline/maps/ is a name that gguf-py gives a tensor of one of the architectures."""
    tables = Path(__file__).resolve().parents[2] / "src/pipeline/maps"
    assert {path.stem for path in tables.glob("*.map")} == set(MAPS)
    for table, architectures in MAPS.items():
        known = [gguf.get_tensor_name_map(gguf.MODEL_ARCH[name], 4) for name in architectures]
        for line in (tables / f"{table}.map").read_text().splitlines():
            words = line.split("#")[0].split()
            if words[:1] == ["models:"]:
                assert {gguf.MODEL_ARCH_NAMES[gguf.MODEL_ARCH[name]] for name in architectures} <= set(words[1:]), line
                continue
            if not words or "-" in words[:2]:
                continue
            here, there = (name.replace("experts.*", "experts").replace("*", "3") for name in words[:2])
            names = {k.get_name(here, try_suffixes=(".weight", ".bias")) for k in known}
            assert there in names, f"{table}: {line}: {names}"


each.run([what_gguf_py_writes_is_read, big_endian_files_of_gguf_py_are_read, what_is_written_again_is_the_same_to_gguf_py,
          blocks_that_are_encoded_are_those_of_gguf_py, edits_are_seen_by_gguf_py, splits_have_the_keys_that_gguf_py_knows,
          any_bits_come_back, maps_have_the_names_of_gguf_py])
