"""test_onnx.py TOOL: Tenon and onnx read each other's models.

Uses the tool only.  tests/interop/run makes the environment."""
import json
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file, save_file

import each
from tool import convert, random_array, run, tenon

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "onnx"
TYPES = ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
         "complex64", "complex128"]


def arrays_of(path):
    """All initializers by onnx."""
    return {t.name: numpy_helper.to_array(t, str(path.parent)) for t in onnx.load(path, load_external_data=False).graph.initializer}


def make_model(tensors, path):
    """A graph that adds nothing up: each initializer is an output by an Identity."""
    nodes = [helper.make_node("Identity", [t.name], [t.name + "_out"]) for t in tensors]
    outputs = [helper.make_tensor_value_info(t.name + "_out", t.data_type, list(t.dims)) for t in tensors]
    graph = helper.make_graph(nodes, "g", [], outputs, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    onnx.save(model, path)
    return path


def model_of_all_types(path):
    tensors = [numpy_helper.from_array(random_array(name, (3, 5), seed), name) for seed, name in enumerate(TYPES)]
    tensors.append(helper.make_tensor("typed", TensorProto.INT16, [4], [-1, 2, -32768, 32767]))
    tensors.append(helper.make_tensor("large", TensorProto.FLOAT, [40, 30], np.arange(1200, dtype="f4").tobytes(), raw=True))
    tensors.append(numpy_helper.from_array(np.zeros((2, 0, 3), "f4"), "empty"))
    return make_model(tensors, path)


def same(expected, found):
    assert expected.keys() == found.keys()
    for name, array in expected.items():
        other = found[name]
        assert array.dtype == other.dtype and array.shape == other.shape, name
        strings = array.dtype == object
        assert array.tolist() == other.tolist() if strings else array.tobytes() == other.tobytes(), name


def rest_of(path):
    """All of a model but the data of initializers."""
    model = onnx.load(path, load_external_data=False)
    for t in model.graph.initializer:
        for field in ["raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data", "external_data",
                      "data_location"]:
            t.ClearField(field)
    return model.SerializeToString(deterministic=True)


def what_tenon_writes_onnx_checks_and_reads(folder):
    source = model_of_all_types(folder / "m.onnx")
    for options in [], ["--external"]:
        made = convert(source, folder / "out.onnx", *options)
        onnx.checker.check_model(str(made))
        same(arrays_of(source), arrays_of(made))
        assert rest_of(source) == rest_of(made)
    data = [path for path in folder.iterdir() if path.name.endswith(".onnx.data")]
    assert len(data) == 1 and data[0].stat().st_size == 4800


def every_golden_model_passes_the_checker_as_before(folder):
    checked = 0
    for path in sorted(GOLDEN.glob("*.onnx")):
        only = ["--exclude", "strings"] if path.name == "odd_shapes.onnx" else []
        for options in [], ["--external"]:
            made = convert(path, folder / path.name, *options, *only)
            before = onnx.load(path)
            after = onnx.load(made)
            same({t.name: numpy_helper.to_array(t) for t in before.graph.initializer},
                 {t.name: numpy_helper.to_array(t) for t in after.graph.initializer})
            try:
                onnx.checker.check_model(str(path))
            except onnx.checker.ValidationError:
                continue
            onnx.checker.check_model(str(made))
            checked += 1
    assert checked >= 10, checked


def new_weights_come_from_safetensors(folder):
    source = make_model([numpy_helper.from_array(random_array("float32", (7, 9), k), f"w{k}") for k in range(5)], folder / "m.onnx")
    weights = {f"w{k}": random_array("float32", (7, 9), 100 + k) for k in range(5)}
    save_file(weights, folder / "new.safetensors")
    made = convert(folder / "new.safetensors", folder / "new.onnx", "--graph", source)
    onnx.checker.check_model(str(made))
    same(weights, arrays_of(made))
    assert rest_of(source) == rest_of(made)
    same(arrays_of(made), load_file(convert(made, folder / "again.safetensors")))


def other_types_are_refused(folder):
    source = make_model([numpy_helper.from_array(np.zeros(4, "f4"), "w")], folder / "m.onnx")
    assert "the graph needs float32 [4] but found float16 [4]" in tenon(
        "convert", source, folder / "out.onnx", "--cast", "f16", status=1)


def models_with_external_data_of_onnx_are_read(folder):
    source = model_of_all_types(folder / "m.onnx")
    for all_in_one in True, False:
        target = folder / f"external_{all_in_one}.onnx"
        onnx.save(onnx.load(source), target, save_as_external_data=True, all_tensors_to_one_file=all_in_one, size_threshold=0)
        listed = json.loads(run("ls", "--json", target).stdout)
        assert {t["name"] for t in listed["tensors"]} == arrays_of(source).keys()
        assert "equal" in tenon("diff", source, target)


each.run([what_tenon_writes_onnx_checks_and_reads, every_golden_model_passes_the_checker_as_before,
          new_weights_come_from_safetensors, other_types_are_refused, models_with_external_data_of_onnx_are_read])
