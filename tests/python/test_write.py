"""Saving, steps, conversions and plans."""

import json
import pathlib
import pickle
import subprocess
import sys
import warnings

import ml_dtypes
import numpy as np
import pytest

import tenon

TOOL = str(pathlib.Path(tenon.__file__).parent / "bin" / "tenon")


def test_steps_compute_what_arrays_do(sample):
    t = tenon.open(sample)["embed.weight"]
    a = t.numpy()
    for made, expected in (
        (t.cast("bf16"), a.astype(ml_dtypes.bfloat16)),
        (t[1:3].cast("f16"), a[1:3].astype("f2")),
        (t.transpose(), a.T),
        (t.transpose(1, 0)[2:4], a.T[2:4]),
        (t.reshape(2, -1), a.reshape(2, -1)),
        (t.reshape((3, 8)), a.reshape(3, 8)),
        (t.reshape(2, 2, 3, 2).reorder("NHWC", from_="NCHW"), a.reshape(2, 2, 3, 2).transpose(0, 2, 3, 1)),
        (tenon.concat([t, t[1:2]]), np.concatenate([a, a[1:2]])),
        (tenon.concat([t, t], axis=1), np.concatenate([a, a], 1)),
        (tenon.concat([t, t], stack=0), np.stack([a, a])),
        (tenon.concat([t, a.copy()]), np.concatenate([a, a])),
        (tenon.tensor(a)[::2].cast("float64"), a[::2].astype("f8")),
        (t.quantize("mxfp8").dequantize()[1:], t.quantize("mxfp8").values()[1:]),
    ):
        assert made.is_lazy and made.shape == expected.shape
        assert np.array_equal(made.numpy(), expected), repr(made)
    assert t.quantize("mxfp4").form == "scaled"
    assert np.array_equal(t.quantize("mxfp4").values(), tenon.dequantize(tenon.quantize(a, "mxfp4")))
    with pytest.raises(tenon.ArgumentError):
        t.cast("nonsense")
    with pytest.raises(ValueError):
        tenon.concat([])
    with pytest.raises(ValueError):
        tenon.concat([t], axis=0, stack=0)


def test_lazy_tensors_are_saved_block_by_block(tmp_path):
    """In a process that may have little memory, 64 MB are cast, sliced and quantized into another file."""
    big = np.arange(16 << 20, dtype="f4").reshape(4096, 4096)
    tenon.save(tmp_path / "big.zt", {"w": big})
    code = """
import resource, sys, tenon
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
f = tenon.open(sys.argv[1], io="pread")
tenon.save(sys.argv[2], {"half": f["w"].cast("f16", overflow="saturate"), "part": f["w"][1:, ::2],
                         "codes": f["w"].quantize("int8,per=channel,axis=0")})
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "big.zt", tmp_path / "out.zt"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert int(done.stdout) < 48 << 10  # KiB; the tensors have 64 MiB each
    with tenon.open(tmp_path / "out.zt") as f:
        assert np.array_equal(f["part"].numpy(), big[1:, ::2])
        assert np.array_equal(f["half"].numpy(), np.minimum(big, 65504).astype("f2"))
        assert np.array_equal(
            f["codes"].values(),
            tenon.open(tmp_path / "big.zt")["w"].quantize("int8,per=channel,axis=0").values(),
        )


def test_save_takes_many_kinds(sample, tmp_path):
    t = tenon.open(sample)["embed.weight"]
    given = {
        "numpy": np.arange(3),
        "big": np.arange(3, dtype=">i4"),
        "fortran": np.asfortranarray(np.ones((2, 3))),
        "strided": np.arange(10)[::3],
        "scalar": 3.5,
        "list": [[1, 2], [3, 4]],
        "bytes": b"abc",
        "view": memoryview(np.ones((2, 2), "f4")),
        "tensor": t,
        "slice": t[1:, 2],
        "lazy": t.cast("f16"),
        "empty": np.zeros((0, 2)),
        "codes": t.quantize("nvfp4"),
        "scaled": tenon.quantize(t.numpy(), "mxfp4"),
    }
    tenon.save(tmp_path / "x.zt", given, metadata={"a": "b"}, checksum="sha256")
    f = tenon.open(tmp_path / "x.zt")
    assert list(f) == list(given) and f.metadata == {"a": "b"} and tenon.verify(f).ok
    for name in ("numpy", "big", "fortran", "strided", "scalar", "list", "tensor", "slice", "lazy", "empty"):
        assert np.array_equal(f[name].numpy(), np.asarray(given[name])), name
    assert f["bytes"].packed().tobytes() == b"abc" and f["view"].shape == (2, 2)
    assert np.array_equal(f["scaled"].values(), given["scaled"].values())
    with pytest.raises(TypeError, match="no type"):
        tenon.save(tmp_path / "y.zt", {"x": np.array(["text"])})
    with pytest.raises(FileExistsError, match="replace=True"):
        tenon.save(tmp_path / "x.zt", {"x": np.ones(1)}, replace=False)
    with pytest.raises(tenon.ArgumentError):
        tenon.save(tmp_path / "no.suffix", {"x": np.ones(1)})
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "example.safetensors") == [
        "sample.safetensors",
        "x.zt",
    ]


@pytest.mark.parametrize(
    "keywords, options",
    [
        ({}, []),
        ({"cast": ["*norm*=f32", "*=mxfp4"]}, ["--cast", "*norm*=f32", "--cast", "*=mxfp4"]),
        (
            {"cast": "bf16", "round": "away", "compress": "zstd:9"},
            ["--cast", "bf16", "--round", "away", "--compress", "zstd:9"],
        ),
        (
            {"checksum": "crc32c", "only": "embed.*", "rename": "embed.*=e.*", "align": 4096},
            ["--checksum", "crc32c", "--only", "embed.*", "--rename", "embed.*=e.*", "--align", "4096"],
        ),
        (
            {"slice": "embed.*=1:3", "form": "csr", "only": "embed.*"},
            ["--slice", "embed.*=1:3", "--form", "csr", "--only", "embed.*"],
        ),
        (
            {"cast": "int8,per=tensor", "options": {"ztensor.byte-order": "big"}},
            ["--cast", "int8,per=tensor", "--option", "ztensor.byte-order=big"],
        ),
    ],
    ids=str,
)
def test_convert_writes_the_bytes_of_the_tool(keywords, options, sample, tmp_path):
    done = tenon.convert(sample, tmp_path / "py.zt", **keywords)
    subprocess.run([TOOL, "convert", "-q", sample, tmp_path / "c.zt", *options], check=True)
    assert (tmp_path / "py.zt").read_bytes() == (tmp_path / "c.zt").read_bytes()
    assert done.bytes_out == (tmp_path / "c.zt").stat().st_size and done.file == str(tmp_path / "py.zt")


def test_convert_reports_and_refuses(sample, tmp_path):
    done = tenon.convert(sample, tmp_path / "x.zt", cast="mxfp4", report=True)
    assert [row.name for row in done.report] == ["embed.weight", "norm.weight"] and done.report[0].bits > 4
    calls = []
    tenon.convert(sample, tmp_path / "y.zt", progress=lambda done, total: calls.append((done, total)))
    assert calls and calls[-1][0] == calls[-1][1]
    for keywords, kind, text in (
        ({"cast": "nonsense"}, ValueError, "nonsense"),
        ({"only": "none*"}, ValueError, "none"),
        ({"compress": "lzma"}, ValueError, "compression"),
        ({"checksum": "md5"}, ValueError, "checksum"),
        ({"shard_size": "5XB"}, ValueError, "size"),
        ({"to": "xyz"}, ValueError, "xyz"),
        ({"options": {"x": 1}}, ValueError, "FORMAT.KEY"),
    ):
        with pytest.raises(kind, match=text):
            tenon.convert(sample, tmp_path / "z.zt", **keywords)
    with pytest.raises(ZeroDivisionError):
        tenon.convert(sample, tmp_path / "z.zt", progress=lambda done, total: 1 / 0)
    tenon.convert(sample, tmp_path / "s.safetensors", shard_size="1kB")


def test_a_tensor_of_several_windows_is_compressed(tmp_path, random):
    values = random.integers(0, 9, (3000, 2000)).astype("f4")
    tenon.save(tmp_path / "large.zt", {"w": values}, compress="zstd")
    assert np.array_equal(tenon.open(tmp_path / "large.zt")["w"].numpy(), values)


def test_plans_run_in_any_order_and_can_be_pickled(sample, tmp_path):
    tenon.convert(sample, tmp_path / "whole.zt", cast="bf16")
    plan = tenon.plan(sample, tmp_path / "planned.zt", cast="bf16")
    assert (
        plan.tensors[0].dtype == "bfloat16"
        and plan.tensors[0].from_ == "float32"
        and plan.pieces[0].tensors == 2
    )
    with pytest.raises(tenon.ArgumentError):
        plan.finish()
    again = pickle.loads(pickle.dumps(plan))
    for i in reversed(range(len(again))):
        again.run(i)
        again.run(i)
    assert again.pieces == plan.pieces and again.finish().tensors == 2
    for late in (
        again.finish,
        lambda: again.run(0),
        lambda: again.pieces,
        lambda: again.save(tmp_path / "late"),
    ):
        with pytest.raises(tenon.ArgumentError, match="finished"):
            late()
    assert (tmp_path / "planned.zt").read_bytes() == (tmp_path / "whole.zt").read_bytes()
    tenon.plan(sample, tmp_path / "other.zt").save(tmp_path / "plan.json")
    tenon.save(sample, {"embed.weight": np.ones(5, "f4")})
    with pytest.raises(tenon.ChangedError):
        tenon.Plan.open(tmp_path / "plan.json")
    with pytest.raises(tenon.ArgumentError):
        plan.run(77)


@pytest.mark.parametrize(
    "name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "int4", "float6_e2m3fn"]
)
def test_casts_are_those_of_ml_dtypes(name, random):
    values = random.standard_normal((7, 9)).astype("f4") * 3
    expected = (
        values.astype(getattr(ml_dtypes, name))
        if name != "int4"
        else np.clip(np.rint(values), -8, 7).astype("i1")
    )
    assert np.array_equal(tenon.cast(values, name).astype("f4"), expected.astype("f4"))


def test_arrays_are_cast_and_quantized(random):
    values = random.standard_normal((4, 64)).astype("f4")
    assert np.array_equal(tenon.cast(np.array([300.0, -1]), "uint8"), [255, 0])
    with pytest.raises(tenon.LossError):
        tenon.cast(np.array([300.0]), "uint8", overflow="error")
    with pytest.raises(tenon.LossError):
        tenon.cast(np.array([np.nan]), "int8")
    assert tenon.cast(np.array([1 + 2j]), "float32", real=True)[0] == 1
    with pytest.raises(ValueError, match="rounding"):
        tenon.cast(values, "int8", round="wrong")
    for datatype in ("mxfp4", "nvfp4", "mxfp8", "int8,per=tensor", "mxint4"):
        q = tenon.quantize(values, datatype)
        error = tenon.dequantize(q) - values
        assert q.form == "scaled" and q.shape == values.shape and np.abs(error).max() < 1
    assert np.array_equal(
        tenon.dequantize(tenon.quantize(values, "mxfp4", rotate="hadamard32")).shape, (4, 64)
    )
    assert tenon.quantize(values.astype(ml_dtypes.bfloat16), "mxfp4").dtype == "bfloat16"
    assert tenon.quantize(values, "mxfp4", unpacked=True).parts["data"].shape == (4, 64)
    with pytest.raises(tenon.ArgumentError):
        tenon.quantize(values, "what")
    with pytest.raises(tenon.ArgumentError):
        tenon.quantize(values.astype("i4"), "mxfp4")


def test_verbs_say_what_the_tool_says(sample, tmp_path):
    import json

    def tool(*words):
        return json.loads(
            subprocess.run([TOOL, *words, "--json"], stdout=subprocess.PIPE, check=False).stdout
        )

    tenon.convert(sample, tmp_path / "b.zt", cast="f8e5m2", checksum="crc32c")
    ours, theirs = tenon.stats(sample).to_dict(), tool("stats", sample)
    theirs = theirs[0] if isinstance(theirs, list) else theirs.get("files", [theirs])[0]
    for mine, row in zip(ours["tensors"], theirs["tensors"]):
        assert {key: list(value) if isinstance(value, tuple) else value for key, value in mine.items()} == row
    ours, theirs = tenon.diff(sample, tmp_path / "b.zt"), tool("diff", sample, tmp_path / "b.zt")
    assert (ours.equal, ours.different, ours.tensors, ours.elements) == tuple(
        theirs[key] for key in ("equal", "different", "tensors", "elements")
    )
    for mine, row in zip(ours, theirs["differences"]):
        assert mine.name == row["name"] and list(mine.what) == row["what"]
        if mine.values:
            assert mine.values.to_dict() == row["values"]
    names = ["mxfp4", "nvfp4"]
    rows = tool("compare-types", sample, "--types", ",".join(names))["types"]
    for mine, row in zip(tenon.compare_types(sample, names), rows):
        assert {key: value for key, value in mine.to_dict().items() if key != "sqnr"} == {
            key: value for key, value in row.items() if key != "sqnr"
        }
        assert mine.sqnr == pytest.approx(row["sqnr"])
    assert tenon.verify(tmp_path / "b.zt").crc32c == 2 and tenon.verify(sample).without_checksum == 2


def test_reports_are_those_of_the_tool(sample, tmp_path):
    page = tmp_path / "r.html"
    found = tenon.report(sample, page, types=["mxfp4"])
    words = [TOOL, "report", sample, "--types", "mxfp4", "--json"]
    assert found.data == json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)
    assert json.dumps(found.data["tensors"][0]["name"]) in page.read_text()
    assert found._repr_html_().startswith("<section") and "<script" not in found._repr_html_()
    with pytest.raises(FileExistsError):
        tenon.report(sample, page)
    tenon.report(sample, page, replace=True)
    tenon.save(tmp_path / "n.zt", {f"layers.{i}.w": np.full(32, i, "f4") + np.arange(32) for i in range(8)})
    values = {f"layers.{i}.w": np.full(32, i, "f4") + np.arange(32) for i in range(8)}
    values["layers.3.w"][5] = np.nan
    tenon.save(tmp_path / "m.zt", values)
    found = tenon.report(tmp_path / "m.zt", against=tmp_path / "n.zt")
    assert found.marked == ("layers.3.w",) and found.changed == ("layers.3.w",) and found.path is None
    with tenon.open(sample) as file:
        assert tenon.report(file, only="norm.*").data["summary"]["tensors"] == 1
    with pytest.raises(tenon.ArgumentError):
        tenon.report(sample, types=["mxpf4"])


def test_differences_may_be_small_or_under_other_names(sample, tmp_path):
    tenon.convert(sample, tmp_path / "b.zt", cast="f8e5m2", rename="norm.*=n.*")
    assert len(tenon.diff(sample, tmp_path / "b.zt")) == 3
    assert not tenon.diff(sample, tmp_path / "b.zt", rename="norm.*=n.*", relative=0.2)
    assert tenon.diff(sample, tmp_path / "b.zt", rename="norm.*=n.*", only="embed.*").tensors == 1


def test_damage_is_found(sample, tmp_path):
    tenon.convert(sample, tmp_path / "x.zt", checksum="crc32c")
    data = bytearray((tmp_path / "x.zt").read_bytes())
    data[70] ^= 1
    (tmp_path / "x.zt").write_bytes(data)
    found = tenon.verify(tmp_path / "x.zt")
    assert not found.ok and found.bad == 1 and found.problems[0].verdict == "BAD" and found.problems[0].name
    with pytest.raises(tenon.FormatError) as wrong:
        tenon.convert(tmp_path / "x.zt", tmp_path / "y.zt")
    assert wrong.value.status == 14 and wrong.value.tensor and not (tmp_path / "y.zt").exists()


def test_descriptors(sample):
    document = tenon.describe(sample)
    assert [row["name"] for row in document] == ["embed.weight", "norm.weight"]
    assert all(finding.remark for finding in tenon.check(document))
    document[0]["memory"]["strides"] = [0, 0]
    assert any(not finding.remark for finding in tenon.check(document))
    with pytest.raises(tenon.FormatError):
        tenon.check("{")
    with pytest.raises(KeyError):
        tenon.describe(sample, "nothing")


def test_the_package_carries_the_tool(sample):
    done = subprocess.run(
        [sys.executable, "-m", "tenon", "ls", sample], capture_output=True, text=True, check=True
    )
    assert "embed.weight" in done.stdout


def test_a_cast_that_loses_much_warns_or_raises(tmp_path):
    path = tmp_path / "w.npy"
    np.save(path, np.linspace(-0.02, 0.02, 101, dtype=np.float32))
    with pytest.warns(UserWarning, match="of 100 values other than 0, 100 became 0 and 0 were beyond"):
        tenon.convert(path, tmp_path / "out.zt", cast="int8")
    with pytest.raises(tenon.LossError, match="100 of 100 values other than 0 become 0 in int8"):
        tenon.convert(path, tmp_path / "strict.zt", cast="int8", strict=True)
    assert not (tmp_path / "strict.zt").exists()
    with pytest.raises(tenon.LossError, match=r"element \[0\] is -0.02, which becomes 0"):
        tenon.convert(path, tmp_path / "strict.zt", cast="int8", underflow="error")
    with pytest.warns(UserWarning, match="100 became 0"):
        made = tenon.plan(path, tmp_path / "planned.zt", cast="int8")
        made.run(0)
        made.finish()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tenon.convert(path, tmp_path / "bf16.zt", cast="bf16")


GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "onnx"


def test_weights_go_into_the_graph_of_an_onnx_model(tmp_path):
    model = GOLDEN / "plain.onnx"
    f = tenon.open(model)
    assert f.metadata["ir_version"] == 11 and f["conv/weight:0"].shape == (16, 9)
    new = {name: f[name].numpy() for name in f}
    new["conv/weight:0"] = new["conv/weight:0"] + 1
    tenon.save(tmp_path / "saved.onnx", new, options={"onnx.graph": model})
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        tenon.convert(model, tmp_path / "w.safetensors")
    assert len(said) == 1 and "its graph is not carried over" in str(said[0].message)
    tenon.convert(tmp_path / "w.safetensors", tmp_path / "back.onnx", options={"onnx.graph": str(model), "onnx.external": True})
    assert not tenon.diff(model, tmp_path / "back.onnx").different
    saved = tenon.open(tmp_path / "saved.onnx")
    assert np.array_equal(saved["conv/weight:0"].numpy(), new["conv/weight:0"])
    with pytest.raises(tenon.ArgumentError, match="onnx.graph"):
        tenon.convert(tmp_path / "w.safetensors", tmp_path / "none.onnx")


def test_block_types_and_gguf(tmp_path):
    values = np.linspace(-3, 3, 4 * 512, dtype="f4").reshape(4, 512)
    codes = tenon.quantize(values, "q4_K")
    assert codes.form == "blocks" and codes.parts["data"].shape == (4, 288)
    tenon.save(tmp_path / "w.gguf", {"w": codes}, metadata={"general.name": "w"})
    with tenon.open(tmp_path / "w.gguf") as file:
        assert file["w"].form == "blocks" and file.metadata["general.name"] == "w"
        assert np.array_equal(file["w"].numpy(), tenon.dequantize(codes))


def test_maps_and_templates(tmp_path):
    tenon.save(tmp_path / "hf.safetensors", {"model.norm.weight": np.ones(4, "f4")})
    tenon.save(tmp_path / "other.gguf", {"x": np.ones(1, "f4")}, metadata={"general.architecture": "gemma"})
    tenon.convert(tmp_path / "hf.safetensors", tmp_path / "out.gguf", map="gemma", template=tmp_path / "other.gguf")
    with tenon.open(tmp_path / "out.gguf") as file:
        assert file["output_norm.weight"].numpy().tolist() == [2, 2, 2, 2]
        assert file.metadata["general.architecture"] == "gemma"


def test_importance(tmp_path):
    weight = np.linspace(-1, 1, 2 * 256, dtype="f4").reshape(2, 256)
    tenon.save(tmp_path / "w.zt", {"w": weight})
    tenon.save(tmp_path / "i.zt", {"w.in_sum2": np.ones((1, 256), "f4"), "w.counts": np.ones((1, 1), "f4")})
    with pytest.raises(ValueError, match="importance"):
        tenon.convert(tmp_path / "w.zt", tmp_path / "out.zt", cast="iq2_xs")
    done = tenon.convert(tmp_path / "w.zt", tmp_path / "out.zt", cast="iq2_xs", importance=tmp_path / "i.zt")
    assert done.tensors == 1
