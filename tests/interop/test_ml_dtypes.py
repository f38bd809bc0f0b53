"""test_ml_dtypes.py CAST_FILE: tn_cast() against NumPy and the Python package `ml_dtypes`.

Every pair of types they share: all codes of types up to 16 bits, a million random patterns of wider ones.  NaN is
compared as NaN.  What may differ, and why, is in explain() and in docs/types.md; any other difference is a failure."""
import pathlib
import subprocess
import sys
import tempfile
import warnings

import ml_dtypes
import numpy as np

CAST_FILE = sys.argv[1]
WIDE = {"float64": np.float64, "float32": np.float32, "int64": np.int64, "int32": np.int32, "uint64": np.uint64,
        "uint32": np.uint32}
HALF = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "int16": np.int16, "uint16": np.uint16}
SMALL = {"float8_e4m3fn": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2,
         "float8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "float8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
         "float8_e4m3": ml_dtypes.float8_e4m3, "float8_e3m4": ml_dtypes.float8_e3m4,
         "float8_e8m0": ml_dtypes.float8_e8m0fnu, "int8": np.int8, "uint8": np.uint8}
PACKED = {"float6_e2m3": ml_dtypes.float6_e2m3fn, "float6_e3m2": ml_dtypes.float6_e3m2fn,
          "float4_e2m1": ml_dtypes.float4_e2m1fn, "int4": ml_dtypes.int4, "uint4": ml_dtypes.uint4,
          "int2": ml_dtypes.int2, "uint2": ml_dtypes.uint2}
BITS = {"float6_e2m3": 6, "float6_e3m2": 6, "float4_e2m1": 4, "int4": 4, "uint4": 4, "int2": 2, "uint2": 2}
TYPES = WIDE | HALF | SMALL | PACKED
OVERFLOW_NAN, NAN_ZERO, ROUND_TRUNC, RANDOM = 3, 1, 4, 1 << 20


def is_integer(name):
    return "int" in name


def source(name, seed):
    dtype = np.dtype(TYPES[name])
    if name in BITS:
        return np.arange(1 << BITS[name], dtype=np.uint8).view(dtype) if not name.startswith("int") else \
            np.arange(-(1 << BITS[name] - 1), 1 << BITS[name] - 1).astype(dtype)
    if dtype.itemsize <= 2:
        return np.arange(1 << 8 * dtype.itemsize, dtype=f"u{dtype.itemsize}").view(dtype)
    random = np.frombuffer(np.random.default_rng(seed).bytes(RANDOM * dtype.itemsize), dtype)
    if not is_integer(name):        # half of them within the range of small types
        random = np.concatenate([random, np.random.default_rng(seed + 1).normal(0, 100, RANDOM // 2).astype(dtype),
                                 np.exp2(np.random.default_rng(seed + 2).uniform(-30, 18, RANDOM // 2)).astype(dtype)])
    else:
        shifts = np.random.default_rng(seed + 1).integers(0, 8 * dtype.itemsize, RANDOM).astype(dtype)
        random = random >> shifts
    return random


def pack(codes, bits):
    stream = np.unpackbits(codes.astype(np.uint8)[:, None], axis=1, bitorder="little")[:, :bits]
    return np.packbits(stream.reshape(-1), bitorder="little").tobytes()


def unpack(data, bits, count):
    stream = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")[:count * bits].reshape(count, bits)
    return np.packbits(stream, axis=1, bitorder="little").reshape(-1)


def to_bytes(array, name):
    return pack(array.view(np.uint8), BITS[name]) if name in BITS else array.tobytes()


def from_bytes(data, name, count):
    if name not in BITS:
        return np.frombuffer(data, TYPES[name])
    codes = unpack(data, BITS[name], count)
    if name.startswith("int"):      # sign-extended in ml_dtypes
        sign = 1 << BITS[name] - 1
        return (((codes ^ sign).astype(np.int16) - sign).astype(np.int8)).view(TYPES[name])
    return codes.view(TYPES[name])


def ours(folder, array, from_name, to_name, *options):
    (folder / "in").write_bytes(to_bytes(array, from_name))
    done = subprocess.run([CAST_FILE, from_name, to_name, str(array.size), folder / "in", folder / "out", *options],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return from_bytes((folder / "out").read_bytes(), to_name, array.size)


def as_float(array):
    return array if array.dtype in (np.float64, np.float32) else array.astype(np.float32)


def isnan(array, name):
    return np.isnan(as_float(array)) if not is_integer(name) else np.zeros(array.shape, bool)


def with_meaning(array, from_name, to_name):
    """The elements for which NumPy's answer has a meaning: what does not fit an integer it leaves to the hardware, and a
    NaN where there is none to chance."""
    keep = np.ones(array.shape, bool)
    if not is_integer(from_name) and (is_integer(to_name) or to_name in BITS):
        keep &= ~np.isnan(as_float(array))
    if is_integer(to_name):
        info = (ml_dtypes if to_name in BITS else np).iinfo(TYPES[to_name])
        low, high = int(info.min), int(info.max)
        if is_integer(from_name):
            wide = array.astype(np.int64) if from_name in BITS else array
            keep &= (wide >= low) if low or wide.dtype.kind == "i" else True
            keep &= wide <= high
        else:
            with np.errstate(invalid="ignore"):
                whole = np.trunc(as_float(array).astype(np.float64))
            keep &= (whole >= low) & (whole < high + 1.0)
    return array[keep]


def same(a, b, name):
    bits = f"u{a.dtype.itemsize}"
    mask = (1 << BITS[name]) - 1 if name in BITS else ~np.zeros(1, bits)[0]
    return ((a.view(bits) ^ b.view(bits)) & mask == 0) | (isnan(a, name) & isnan(b, name))


def cast(array, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")     # "overflow encountered in cast"
        return array.astype(TYPES[name])


def explain(from_name, to_name, x, b):
    """Which of their results b for the elements x are known to be other than the nearest value, and why."""
    if to_name == "float8_e8m0" and not is_integer(from_name):
        just_above = (as_float(x) > 2.0**-127) & (as_float(x) < 1.5 * 2.0**-127)
        yield just_above, "a value just above e8m0's smallest is rounded up, not to nearest"
    if x.dtype.itemsize >= 4 and from_name != "float32":
        yield same(b, cast(cast(x, "float32"), to_name), to_name), "rounded to float32 first, and then again"


def compare(folder, from_name, to_name, seen):
    array = with_meaning(source(from_name, 1), from_name, to_name)
    options = [f"overflow={OVERFLOW_NAN}", f"nan={NAN_ZERO if to_name in BITS or is_integer(to_name) else 0}"]
    if to_name in BITS and not is_integer(to_name):
        options[0] = "overflow=1"           # neither infinity nor NaN: ml_dtypes saturates
    if is_integer(to_name):
        options.append(f"round={ROUND_TRUNC}")
    a, b = ours(folder, array, from_name, to_name, *options), cast(array, to_name)
    differ = ~same(a, b, to_name)
    for explained, reason in explain(from_name, to_name, array, b) if differ.any() else ():
        where = np.flatnonzero(differ & explained)
        if where.size:
            i = where[0]
            seen.setdefault(reason, []).append(f"{from_name} to {to_name}: {array[i]!r} is {a[i]!r}, there {b[i]!r}")
        differ[where] = False
    if not differ.any():
        return None
    i = np.flatnonzero(differ)[0]
    return f"{int(differ.sum())} of {array.size} differ: {array[i]!r} is {a[i]!r}, there {b[i]!r}"


def has_cast(from_name, to_name):
    """ml_dtypes has no cast between e8m0 and the other small types."""
    try:
        np.zeros(1, TYPES[from_name]).astype(TYPES[to_name])
        return True
    except TypeError:
        return False


def main():
    passed = failed = 0
    seen = {}
    with tempfile.TemporaryDirectory() as name:
        pairs = [(f, t) for f in TYPES for t in TYPES if f != t and has_cast(f, t)]
        for from_name, to_name in pairs:
            problem = compare(pathlib.Path(name), from_name, to_name, seen)
            if problem:
                print(f"FAIL  {from_name} to {to_name}: {problem}")
            failed += bool(problem)
            passed += not problem
    for reason, examples in seen.items():
        print(f"      known difference, {len(examples)} pairs of types: {reason}: {examples[0]}")
    print(f"ok    {passed} pairs of types agree with ml_dtypes {ml_dtypes.__version__} and NumPy {np.__version__}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
