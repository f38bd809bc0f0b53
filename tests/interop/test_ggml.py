"""test_ggml.py TOOL: MXFP4 against ggml's, as its Python package `gguf` has it.

Uses the tool only.  Codes and scales are compared one by one: ours lie in parts, ggml's in blocks of a scale and
nibbles that belong to values i and i + 16.  bench/scaled compares with ggml's C code, powers of two included."""

import gguf
import numpy as np
import safetensors
import safetensors.numpy

import each
from tool import tenon

MXFP4 = gguf.GGMLQuantizationType.MXFP4


def values():
    """Normal ones of many magnitudes, multiples of a quarter (all ties), zeros of both signs."""
    random = np.random.default_rng(6)
    normal = random.normal(0, 1, (256, 512)) * np.exp2(random.integers(-90, 90, (256, 1)))
    ties = random.integers(-24, 25, (64, 512)) / 4 * np.exp2(random.integers(-60, 60, (64, 1)))
    few = np.where(random.random((16, 512)) < 0.05, random.normal(0, 1, (16, 512)), -0.0)
    return np.concatenate([normal, ties, few]).astype(np.float32)


def cast(folder, x, *options):
    """(codes, scales, values again) that the tool makes of x."""
    source, small, back = (folder / name for name in ("in.safetensors", "small.safetensors", "back.safetensors"))
    safetensors.numpy.save_file({"w": x}, source)
    tenon("convert", "-q", source, small, "--cast", "mxfp4", *options)
    tenon("convert", "-q", small, back, "--cast", "f32")
    parts = {name: np.frombuffer(t["data"], np.uint8) for name, t in safetensors.deserialize(small.read_bytes())}
    codes = np.stack([parts["w"] & 15, parts["w"] >> 4], axis=-1).reshape(-1, 32)
    return codes, parts["w.scale"], safetensors.numpy.load_file(back)["w"]


def of_ggml(x):
    blocks = gguf.quants.quantize(x, MXFP4)
    rows = blocks.reshape(-1, 17)
    return np.concatenate([rows[:, 1:] & 15, rows[:, 1:] >> 4], axis=1), rows[:, 0], gguf.quants.dequantize(blocks, MXFP4)


def the_ggml_dialect_has_ggmls_codes_scales_and_values(folder):
    x = values()
    codes, scales, back = cast(folder, x, "--dialect", "ggml")
    its_codes, its_scales, its_values = of_ggml(x)
    assert (scales == its_scales).all(), f"{(scales != its_scales).sum()} of {scales.size} scales differ"
    assert (codes == its_codes).all(), f"{(codes != its_codes).sum()} of {codes.size} codes differ"
    assert (back == its_values.reshape(x.shape)).all() and (codes != 8).all()


def our_own_differs_at_ties_and_in_the_sign_of_zero_only(folder):
    x = values()
    codes, scales, back = cast(folder, x)
    its_codes, its_scales, its_values = of_ggml(x)
    differ = codes != its_codes
    assert (scales == its_scales).all() and differ.any()
    assert (abs(back - x) == abs(its_values.reshape(x.shape) - x)).all()        # as near as ggml's: a tie, or a zero


each.run([the_ggml_dialect_has_ggmls_codes_scales_and_values, our_own_differs_at_ties_and_in_the_sign_of_zero_only])
