"""Files of many kinds, conversions of them by rules, and a plain model of what these do: for combinations.py and
shapes.py."""
import collections
import contextlib
import functools
import itertools
import json
import math
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import zipfile
from array import array

from system import TENON, contents

Case = collections.namedtuple("Case", "kind cast layout pad form")

FLOATS = ["f32", "f16", "bf16", "f8e4m3fn", "f16,times=0.3"]
PLAIN = FLOATS + ["i8", "int4"]
AFFINE = ["int8,per=tensor", "int8,per=channel,axis=0", "int4,per=tensor", "fx8"]
TILES = ["mxfp4", "nvfp4", "int8|float32_t0", "float32|n2m4", "mxfp4,rotate=hadamard32"]
VIRTUAL = "mxfp4,virtual=yes"
RULES = {"cast": PLAIN + AFFINE + TILES + [VIRTUAL], "layout": ["reversed"],
         "pad": ["0=16", "-1=5"], "form": ["dense", "coo", "csr"]}
AS_OPTIONS = {"mxfp4,rotate=hadamard32": ["mxfp4", "--rotate", "hadamard32"], VIRTUAL: ["mxfp4", "--virtual"]}

SMALL = {"m.7x5": [7, 5], "m.33x64": [33, 64], "m.64x33": [64, 33], "m.0x4": [0, 4],
         "q.3x4x5x6": [3, 4, 5, 6]}
SCALAR = {"s": []}
LARGE = {"m.large": [769, 1021]}                        # 3 MiB: made by blocks, not as a whole
BLOCKS = {"m.blocks": [1531, 1543], "q.blocks": [5, 24, 131, 151]}      # 9 MiB: reordered by several blocks

OUTPUTS = {"zt": ("zt", ["--compress", "none", "--checksum", "none"]),
           "zstd": ("zt", ["--compress", "zstd", "--checksum", "sha256"]),
           "safetensors": ("safetensors", ["--compress", "none", "--checksum", "none"])}

DATATYPES = {"mxfp4": "mxfp4", "nvfp4": "nvfp4"}
CODES = {"int8 per tensor": "int8,per=tensor", "int8 per channel": "int8,per=channel,axis=1",
         "int8 with zero points": "int8,per=channel,axis=0,zero=asymmetric",
         "int4 per tensor": "int4,per=tensor"}
ARRAYS = ["safetensors", "zstd", "deflate", "big-endian", "Fortran order", "padded"]
SPARSE = ["coo", "csr"]
KINDS = ARRAYS + ["int4"] + SPARSE + list(CODES) + list(DATATYPES)


# ---- files ----

def count(shape):
    return math.prod(shape)


def values(shape, seed):
    return _values(tuple(shape), seed)


@functools.cache
def _values(shape, seed):
    """Ties of all casts, zeros of both signs, and what no type holds exactly."""
    random_ = random.Random(seed)
    some = [0.0] * 40 + [-0.0, 0.5, -1.5, 2.5, 6.0, -7.5]
    some += [1 + 2 ** -11, 1 + 3 * 2 ** -11, 1 + 2 ** -8, 1 + 3 * 2 ** -8]
    some += [random_.gauss(0, 3) for _ in range(60)]
    return array("f", random_.choices(some, k=count(shape)))


def tensors_of(shapes):
    return {name: values(shape, name) for name, shape in shapes.items()}


def little(elements):
    if sys.byteorder == "big":
        elements = array(elements.typecode, elements)
        elements.byteswap()
    return elements.tobytes()


def write_safetensors(path, shapes):
    header, data = {}, b""
    for name, elements in tensors_of(shapes).items():
        begin, data = len(data), data + little(elements)
        header[name] = {"dtype": "F32", "shape": shapes[name], "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def npy(elements, shape, kind):
    """A NumPy array; in Fortran order its first dimension is the fastest."""
    fortran, big = kind == "Fortran order", kind == "big-endian"
    fields = {"descr": ">f4" if big else "<f4", "fortran_order": fortran, "shape": tuple(shape)}
    header = repr(fields).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    if fortran:
        elements = reorder(elements, shape, list(range(len(shape)))[::-1])[0]
    elements = array("f", elements)
    if big == (sys.byteorder == "little"):
        elements.byteswap()
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + elements.tobytes()


def write_arrays(path, shapes, kind):
    """An .npy file of one array, an .npz file of several."""
    if len(shapes) == 1 and kind != "deflate":
        name, = shapes
        with open(path + ".npy", "wb") as f:
            f.write(npy(tensors_of(shapes)[name], shapes[name], kind))
        return path + ".npy"
    how = zipfile.ZIP_DEFLATED if kind == "deflate" else zipfile.ZIP_STORED
    with zipfile.ZipFile(path + ".npz", "w", how) as archive:
        for name, elements in tensors_of(shapes).items():
            archive.writestr(name + ".npy", npy(elements, shapes[name], kind))
    return path + ".npz"


def write_source(folder, kind, shapes):
    """A file of that kind.  What Tenon makes of a safetensors file is checked by the cases of that kind."""
    path = os.path.join(folder, "source")
    if kind in ("deflate", "big-endian", "Fortran order"):
        return write_arrays(path, shapes, kind)
    write_safetensors(path + ".safetensors", shapes)
    options = {"zstd": ["--compress", "zstd"], "padded": ["--pad", "0=4,-1=8"], "int4": ["--cast", "int4"],
               "coo": ["--form", "coo"], "csr": ["--form", "csr"]}
    options |= {kind: ["--cast", rule] for kind, rule in (DATATYPES | CODES).items()}
    if kind == "safetensors":
        return path + ".safetensors"
    said = convert(path + ".safetensors", path + ".zt", options[kind])
    assert said is None, said
    return path + ".zt"


def read_safetensors(path):
    """The header, and where the data begins."""
    data = contents(path)
    n, = struct.unpack_from("<Q", data)
    return json.loads(data[8:8 + n]), data[8 + n:]


def keep_padding(path):
    """Padding becomes part of the tensors: nothing says any more that it is padding."""
    header, data = read_safetensors(path)
    metadata = header.get("__metadata__", {})
    for key in metadata:
        record = json.loads(metadata[key])
        record.pop("extents", None)
        metadata[key] = json.dumps(record)
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


# ---- conversions ----

def convert(source, made, options, jobs=1):
    """None, or why it was refused."""
    command = [TENON, "convert", "--quiet", "--force", "--jobs", str(jobs), source, made, *options]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = "".join(line for line in done.stderr.splitlines(True) if not line.startswith("tenon: warning: "))
    if done.returncode in (0, 1, 2) and (done.returncode == 0) == (not said):
        return said or None
    raise AssertionError(f"exit {done.returncode}: {describe(options)}: {done.stderr}")


def describe(options):
    return " ".join(f"'{word}'" if re.search("[*?|]", word) else word for word in options)


def by_rank(option, rules, shapes):
    """Rules for matrices and for tensors of four dimensions."""
    ranks = {len(shape) for shape in shapes.values()} & set(rules)
    globs = {2: "m.*", 4: "q.*"} if len(ranks) > 1 else {2: "*", 4: "*"}
    return [word for rank in sorted(ranks) for word in (option, f"{globs[rank]}={rules[rank]}")]


def layout_options(shapes):
    return by_rank("--layout", {2: "BA,from=AB", 4: "NHWC,from=NCHW"}, shapes)


def all_options(case, shapes):
    cast = ["--cast", *AS_OPTIONS.get(case.cast, [case.cast])] if case.cast else []
    return cast + (layout_options(shapes) if case.layout else []) + \
        (["--pad", case.pad] if case.pad else []) + (["--form", case.form] if case.form else [])


def cast_options(case, shapes):
    """The axis of a rule is a dimension of the source: NHWC keeps the first, BA makes it the second."""
    if "axis=0" not in case.cast or not case.layout:
        return ["--cast", case.cast]
    return by_rank("--cast", {2: case.cast.replace("axis=0", "axis=1"), 4: case.cast}, shapes)


def steps_of(case, shapes):
    """The options of each step, in the documented order; "keep": padding becomes part of the tensor."""
    steps, cast, padding = [], case.cast, [["--pad", case.pad]] if case.pad else []
    if cast and (case.kind in DATATYPES or (case.kind in CODES and cast != "fx8")):
        first = cast if cast in FLOATS else "f32"
        steps.append(["--cast", first])
        cast = None if first == cast else cast
    if case.form == "dense":
        steps.append(["--form", "dense"])
    if case.layout:
        steps.append(layout_options(shapes))
    if padding and (case.form in SPARSE or cast in TILES):
        steps += padding + ["keep"]
        padding = []
    if case.form in SPARSE:
        steps.append(["--form", case.form])
    if cast:
        steps.append(cast_options(case, shapes))
    return steps + padding


class Bench:
    """A source, and what conversions have made of it."""

    def __init__(self, folder, kind, shapes):
        self.folder, self.kind, self.shapes = tempfile.mkdtemp(dir=folder), kind, shapes
        self.source = write_source(self.folder, kind, shapes)
        self.made = {}
        self.runs = 0

    def convert(self, source, made, options, jobs=1):
        self.runs += 1
        return convert(source, made, options, jobs)

    def after(self, steps, names):
        """The file that some steps make of some tensors, and why it could not be made."""
        key = (names, json.dumps(steps))
        if not steps:
            return self.source, None
        if key not in self.made:
            is_kept = steps[-1] == "keep"
            last = steps[-2] if is_kept else steps[-1]
            source, said = self.after(steps[:-2 if is_kept else -1], names)
            path = os.path.join(self.folder, f"{len(self.made)}.{'safetensors' if is_kept else 'zt'}")
            if not said:
                only = self.only(names) if source == self.source else []
                said = self.convert(source, path, [*OUTPUTS["zt"][1], *only, *last])
            if is_kept and not said:
                keep_padding(path)
            self.made[key] = path, said
        return self.made[key]

    def only(self, names):
        if len(names) == len(self.shapes):
            return []
        return [word for name in names for word in ("--only", name)]

    def by_steps(self, case, names, output):
        steps = steps_of(case, self.chosen(names))
        suffix, options = OUTPUTS[output]
        path = os.path.join(self.folder, "steps." + suffix)
        if output == "zt":
            return self.after(steps or [[]], names)
        source, said = self.after(steps[:-1], names)
        if said:
            return path, said
        only = self.only(names) if source == self.source else []
        return path, self.convert(source, path, [*options, *only, *(steps[-1] if steps else [])])

    def at_once(self, case, names, output, jobs):
        suffix, options = OUTPUTS[output]
        path = os.path.join(self.folder, f"at_once{jobs}.{suffix}")
        how = ["--io", "pread"] if jobs > 1 and output == "safetensors" else []
        options = [*options, *how, *self.only(names), *all_options(case, self.chosen(names))]
        return path, self.convert(self.source, path, options, jobs)

    def chosen(self, names):
        return {name: self.shapes[name] for name in names}


# ---- a model ----

def reorder(elements, shape, order):
    """Dimension i of the result was order[i]."""
    new = [shape[i] for i in order]
    if count(shape) == 0 or not shape:
        return elements, new
    stride = [count(shape[i + 1:]) for i in order]
    made = array(elements.typecode)
    for index in itertools.product(*map(range, new[:-1])):
        first = sum(i * step for i, step in zip(index, stride))
        made.extend(elements[first:first + stride[-1] * (new[-1] - 1) + 1:stride[-1]])
    return made, new


def pad(data, shape, physical):
    """Bytes of elements, with zeros for padding."""
    if not shape or count(physical) == 0 or shape == physical:
        return data
    each = len(data) // count(shape) * count(shape[1:])
    rows = [pad(data[i:i + each], shape[1:], physical[1:]) for i in range(0, len(data), each)]
    return b"".join(rows) + bytes(len(rows[0])) * (physical[0] - shape[0])


def to_bfloat16(elements):
    bits = array("I", elements.tobytes())
    return array("H", [(x + 0x7fff + (x >> 16 & 1)) >> 16 for x in bits])


def cast(elements, to):
    """The entry's type, and the bytes."""
    if to == "f16":
        return "F16", struct.pack(f"<{len(elements)}e", *elements)
    if to == "bf16":
        return "BF16", little(to_bfloat16(elements))
    if to == "i8":
        return "I8", array("b", [max(-128, min(127, round(x))) for x in elements]).tobytes()
    return "F32", little(elements)


def quantize(elements, shape, axis):
    """int8 codes and scales, one scale per index of a dimension or (axis None) one."""
    inner = count(shape[axis + 1:]) if axis is not None else max(count(shape), 1)
    channels = shape[axis] if axis is not None else 1
    largest = [0.0] * channels
    rows = range(0, len(elements), inner)
    for row in rows:
        channel = row // inner % channels
        largest[channel] = max(largest[channel], max(map(abs, elements[row:row + inner])))
    scales = array("f", [x / 127 if x else 1.0 for x in largest])
    codes = array("b")
    for row in rows:
        scale = scales[row // inner % channels]
        quotients = array("f", [x / scale for x in elements[row:row + inner]])
        codes.extend(max(-127, min(127, round(x))) for x in quotients)
    return codes, scales


def dequantize(codes, scales, shape, axis):
    inner = count(shape[axis + 1:]) if axis is not None else max(count(shape), 1)
    each = itertools.cycle([scale for scale in scales for _ in range(inner)])
    return array("f", [code * scale for code, scale in zip(codes, each)])


def sparse_parts(elements, shape, form, to):
    """What is not zero in all its bits, in order."""
    bits = array("I", elements.tobytes())
    where = [i for i in range(len(elements)) if bits[i]]
    dtype, data = cast(array("f", [elements[i] for i in where]), to)
    parts = {"": (dtype, [len(where)], data)}
    if form == "coo":
        steps = [(count(shape[i + 1:]), extent) for i, extent in enumerate(shape)]
        indices = [at // inner % extent for at in where for inner, extent in steps]
        parts[".indices"] = ("I32", [len(where), len(shape)], little(array("i", indices)))
        return parts
    rows = [0] * (count(shape[:-1]) + 1)
    for at in where:
        rows[at // shape[-1] + 1] += 1
    parts[".indices"] = ("I32", [len(where)], little(array("i", [at % shape[-1] for at in where])))
    parts[".indptr"] = ("I32", [len(rows)], little(array("i", itertools.accumulate(rows))))
    return parts


# ---- what comes of cases ----

class Results(collections.Counter):
    """cases and conversions; tensors that are equal and checked by the model; refused conversions."""


@contextlib.contextmanager
def fast_folder(folder):
    """A folder in memory where there is one: thousands of small files are synced."""
    if not os.access("/dev/shm", os.W_OK):
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="tenon-system-", dir="/dev/shm") as fast:
        yield fast
