"""Rules of a conversion compose: one conversion gives what its steps give one at a time.

Each case is a kind of source, some rules and a few tensors.  One conversion with all rules, by one thread
and by two, gives the bytes of the documented steps, each in a conversion of its own: values of codes, dense
form, layout, sparse form, cast or codes, padding (before codes of tiles and before a sparse form).  What a
small model in Python can compute is compared with that as well.  What is refused is in REFUSALS.
"""
import collections
import contextlib
import functools
import itertools
import json
import math
import multiprocessing
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
from array import array

from system import MIB, TENON, contents, run_tests, test
from zt import read_zt

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
    if done.returncode in (0, 1, 2) and (done.returncode == 0) == (not done.stderr):
        return done.stderr or None
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


# ---- what is refused ----

def padded_shape(shape, pad):
    physical = list(shape)
    for rule in pad.split(","):
        dimension, multiple = map(int, rule.split("="))
        physical[dimension] += -physical[dimension] % multiple
    return physical


def new_order(case, rank):
    if case.layout:
        return [0, 2, 3, 1] if rank == 4 else [1, 0]
    return list(range(rank))


def has_padding(case, shape):
    """Whether the result has: not if the padding has become part of the tensor."""
    shape = [shape[i] for i in new_order(case, len(shape))]
    is_kept = case.form in SPARSE or case.cast in TILES
    has_narrow_codes = case.cast == "int4,per=tensor" or (case.kind == "int4 per tensor" and not case.cast)
    if case.pad and shape and not is_kept and padded_shape(shape, case.pad) != shape:
        return True
    return bool(has_narrow_codes and shape and count(shape) and shape[-1] % 2)


def last_extent(case, shape):
    shape = [shape[i] for i in new_order(case, len(shape))]
    return (padded_shape(shape, case.pad) if case.pad else shape)[-1]


def is_quantized(case):
    return case.cast is not None and case.cast not in PLAIN


Refusal = collections.namedtuple("Refusal", "text reason applies")
REFUSALS = [
    Refusal("its codes have no other form, layout, shape or padding: cast it to a float type as well",
            "codes of tiles lie as their datatype says",
            lambda c, s, o: c.kind in DATATYPES and not c.cast and (c.layout or c.pad or c.form)),
    Refusal('expected a dense, coo or csr tensor but found form "scaled" (cast it to a float type first)',
            "codes have scales, which no other form has; from codes to fx8 there are no values in between",
            lambda c, s, o: c.kind in CODES and c.form and c.cast in (None, "fx8")),
    Refusal("a sparse tensor has no scales, no order of its elements and no padding (--form dense)",
            "these are properties of a dense array",
            lambda c, s, o: (c.kind in SPARSE and c.form != "dense" and
                             (is_quantized(c) or c.layout or c.pad))),
    Refusal("a sparse tensor has no codes with scales", "as before",
            lambda c, s, o: c.kind not in SPARSE and c.form in SPARSE and is_quantized(c)),
    Refusal("entries of a sparse tensor take whole bytes when they are made but found int4",
            "entries are gathered one by one",
            lambda c, s, o: c.form in SPARSE and c.cast == "int4"),
    Refusal("int4 is narrower than a byte: cast it to a type of whole bytes first", "as before",
            lambda c, s, o: c.kind == "int4" and c.form in SPARSE),
    Refusal("form csr has two dimensions, or three: a batch; but found", "the form is of matrices",
            lambda c, s, o: c.form == "csr" and len(s) not in (2, 3)),
    Refusal("expected values of a", "integers are not quantized in silence",
            lambda c, s, o: c.kind == "int4" and is_quantized(c)),
    Refusal("expected a tiled dimension that is a multiple of the rotation's 32 values but found",
            "a rotation mixes as many values as it is large",
            lambda c, s, o: c.cast and "rotate" in c.cast and s and count(s) and last_extent(c, s) % 32 != 0),
    Refusal("its tiles need rank 1 or more but the tensor has rank 0", "a tile is a part of a dimension",
            lambda c, s, o: not s and (c.cast in TILES or c.cast == VIRTUAL)),
    Refusal("expected a dimension below 0 but found", "a scalar has no channels",
            lambda c, s, o: not s and c.cast and "channel" in c.cast),
    Refusal("expected one of its 0 dimensions to pad but found", "a scalar has no dimension to pad",
            lambda c, s, o: not s and c.pad),
    Refusal("a tensor with padding cannot be compressed", "padding is there to be mapped",
            lambda c, s, o: o == "zstd" and has_padding(c, s)),
]


def refusals_of(case, shape, output):
    return [refusal for refusal in REFUSALS if refusal.applies(case, shape, output)]


# ---- a model of some conversions ----

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


MODELLED = (None, "f32", "f16", "bf16", "i8", "int8,per=tensor", "int8,per=channel,axis=0")


def model_knows(case):
    is_int8 = case.kind in ("int8 per tensor", "int8 per channel")
    return case.cast in MODELLED and (case.kind in ARRAYS + SPARSE or bool(is_int8 and case.cast))


def model(case, name, shape):
    """The entries of the result by what follows the name: type, shape, bytes; None: not modelled."""
    if not model_knows(case):
        return None
    elements = values(shape, name)
    if case.kind in CODES:
        axis = 1 if case.kind == "int8 per channel" else None
        elements = dequantize(*quantize(elements, shape, axis), shape, axis)
    order = new_order(case, len(shape))
    elements, shape = reorder(elements, shape, order)
    form = case.form or (case.kind if case.kind in SPARSE else "dense")
    physical = padded_shape(shape, case.pad) if case.pad else shape
    if form != "dense":
        elements = array("f", pad(elements.tobytes(), shape, physical))
        return sparse_parts(elements, physical, form, case.cast)
    if not is_quantized(case):
        dtype, data = cast(elements, case.cast)
        return {"": (dtype, physical, pad(data, shape, physical))}
    axis = order.index(0) if "channel" in case.cast else None
    codes, scales = quantize(elements, shape, axis)
    return {"": ("I8", physical, pad(codes.tobytes(), shape, physical)),
            ".scale": ("F32", [] if axis is None else [len(scales)], little(scales))}


def check_model(case, chosen, path):
    """How many tensors of a safetensors file the model could check."""
    header, data = read_safetensors(path)
    header.pop("__metadata__", None)
    checked = 0
    for name, shape in chosen.items():
        expected = model(case, name, shape) if count(shape) <= MIB else None
        if expected is None:
            continue
        checked += 1
        if case.kind in ONE_ARRAY and name not in header:       # an .npy file has no names
            name = min(header, key=len)
        for suffix, (dtype, shape, elements) in expected.items():
            entry = header.get(name + suffix)
            assert entry, f"{name + suffix} is missing"
            begin, end = entry["data_offsets"]
            found = (entry["dtype"], entry["shape"])
            assert found == (dtype, shape), f"{name + suffix}: expected {dtype} {shape} but found {found}"
            if data[begin:end] != elements:
                at = next(i for i in range(end - begin) if data[begin + i] != elements[i])
                raise AssertionError(f"{name + suffix}: byte {at} of {end - begin} is not that of the model")
    return checked


ONE_ARRAY = ("big-endian", "Fortran order")


# ---- cases ----

class Results(collections.Counter):
    """cases and conversions; tensors that are equal and checked by the model; refused conversions."""


def check_refused(bench, case, names, output, results):
    """Tensors that are to be refused are, for a reason that applies."""
    allowed = refusals_of(case, bench.shapes[names[0]], output)
    _, said = bench.at_once(case, names, output, 1)
    assert said, f"converted but was to be refused: {allowed[0].text}"
    reasons = [refusal for refusal in allowed if refusal.text in said]
    assert reasons, f"refused for another reason than expected: {said}"
    results["refused"] += 1


def entries_of(path):
    """What a file without compression holds, wherever it lies."""
    if path.endswith(".safetensors"):
        return contents(path)
    return {name: (fields | {"offset": 0}, data) for name, (fields, data) in read_zt(path).items()}


def check_steps(bench, case, names, output, made):
    """What is made at once is what the steps make; compressed data is unpacked first."""
    plain = output if output != "zstd" else "zt"
    path, said = bench.by_steps(case, names, plain)
    assert not said, f"a step of it is refused: {said}"
    if output == "zstd":
        packed, made = made, os.path.join(bench.folder, "unpacked.zt")
        said = bench.convert(packed, made, OUTPUTS["zt"][1])
        assert not said, f"it cannot be unpacked: {said}"
    if entries_of(made) != entries_of(path):
        diff = subprocess.run([TENON, "diff", path, made], stdout=subprocess.PIPE, text=True)
        raise AssertionError(f"it is not what its steps make: {diff.stdout}")


def check_equal(bench, case, names, output, results):
    """All rules at once give what the steps give, by one thread and by two."""
    (made, said), (by_two, said_two) = (bench.at_once(case, names, output, jobs) for jobs in (1, 2))
    assert not said and not said_two, f"refused: {said}"
    assert contents(made) == contents(by_two), "two threads make other bytes than one"
    if len(steps_of(case, bench.chosen(names))) > 1 or output == "zstd" or case.cast in AS_OPTIONS:
        check_steps(bench, case, names, output, made)
    results["equal"] += len(names)
    if output == "safetensors":
        results["modelled"] += check_model(case, bench.chosen(names), made)


def check_case(bench, case, output):
    """One set of rules on all tensors of a source.  Returns what was found, and what is wrong."""
    results, wrong, before = Results(cases=1), [], bench.runs
    groups = collections.defaultdict(list)
    for name, shape in bench.shapes.items():
        groups[tuple(refusal.text for refusal in refusals_of(case, shape, output))].append(name)
    for refusals, names in groups.items():
        check = check_refused if refusals else check_equal
        try:
            check(bench, case, tuple(names), output, results)
        except AssertionError as reason:
            options = describe(all_options(case, bench.chosen(names)))
            wrong.append(f"{case.kind}, {' '.join(names)}, {output}: {options}: {reason}")
    results["conversions"] += bench.runs - before
    return results, wrong


def check_source(task):
    """All cases of one source; run by a process of its own."""
    folder, kind, shapes, cases = task
    bench = Bench(folder, kind, shapes)
    total, wrong = Results(), []
    for case, output in cases:
        results, found = check_case(bench, case, output)
        total.update(results)
        wrong += found
    shutil.rmtree(bench.folder)
    return total, wrong


@contextlib.contextmanager
def fast_folder(folder):
    """A folder in memory where there is one: thousands of small files are synced."""
    if not os.access("/dev/shm", os.W_OK):
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="tenon-system-", dir="/dev/shm") as fast:
        yield fast


def check_all(folder, plan):
    """plan: (kind, shapes) -> cases with their outputs.  Fails with the first few that are wrong."""
    total, wrong = Results(), []
    with fast_folder(folder) as fast, multiprocessing.get_context("fork").Pool(2) as pool:
        tasks = [(fast, kind, shapes, cases) for kind, shapes, cases in plan if cases]
        for results, found in pool.imap_unordered(check_source, tasks):
            total.update(results)
            wrong += found
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:20])
    return f"{total['cases']} sets of rules, {total['conversions']} conversions: " \
           f"{total['equal']} tensors equal ({total['modelled']} modelled), {total['refused']} refusals"


def cases_of(kind, numbers, shapes=SMALL):
    """All sets of so many rules."""
    for number in numbers:
        for chosen in itertools.combinations(RULES, number):
            if "layout" in chosen and shapes == SCALAR:
                continue
            for rules in itertools.product(*(RULES[option] for option in chosen)):
                yield Case(kind, **{option: None for option in RULES} | dict(zip(chosen, rules)))


def shapes_of(kind, shapes):
    return {name: shape for name, shape in shapes.items() if kind != "csr" or len(shape) == 2}


def is_wanted(case, shapes, output):
    return not all(refusals_of(case, shape, output) for shape in shapes.values())


@test
def every_rule_and_every_pair_of_rules_on_every_kind_of_source(folder):
    """Each set is written in two ways, over all kinds in three; if all is refused, in one."""
    plan = []
    for number, kind in enumerate(KINDS):
        shapes, cases = shapes_of(kind, SMALL), collections.defaultdict(list)
        for i, case in enumerate(cases_of(kind, (0, 1, 2))):
            first, second, _ = itertools.islice(itertools.cycle(OUTPUTS), i + number, i + number + 3)
            cases[first].append((case, first))
            if is_wanted(case, shapes, second):
                cases[first].append((case, second))
        plan += [(kind, shapes, some) for some in cases.values()]
    return check_all(folder, plan)


def random_cases(kind, shapes, number, seed, least=3):
    """Sets of so many rules at least, of which not all are refused."""
    random_ = random.Random(f"{kind} {seed}")
    choices = RULES | {"pad": RULES["pad"] + ["0=16,-1=5"]}
    cases = []
    while len(cases) < number:
        rules = {option: random_.choice([None, *some, *some]) for option, some in choices.items()}
        case, output = Case(kind, **rules), random_.choice(list(OUTPUTS))
        if sum(map(bool, rules.values())) >= least and is_wanted(case, shapes, output):
            cases.append((case, output))
    return cases


def modelled_cases(kind, shapes, number):
    """Of those that the model knows, which reads safetensors files."""
    cases = [case for case in cases_of(kind, (1, 2, 3))
             if model_knows(case) and is_wanted(case, shapes, None)]
    return [(case, "safetensors") for case in random.Random(kind).sample(cases, number)]


def random_plan(shapes, number, seed, least=3):
    """Most rules have no meaning for a source that is sparse."""
    plan = []
    for kind in KINDS:
        chosen, most = shapes_of(kind, shapes), min(number, 2) if kind in SPARSE else number
        plan.append((kind, chosen, random_cases(kind, chosen, most, seed, least)))
    return plan


@test
def random_sets_of_three_rules_and_more(folder):
    return check_all(folder, random_plan(SMALL, 24, 1))


@test
def every_rule_and_the_pairs_of_rules_that_scalars_have(folder):
    plan = []
    for kind in ("safetensors", "deflate", "big-endian", "coo", "int4", "int8 per tensor"):
        cases = [*cases_of(kind, (0, 1), SCALAR)]
        cases += [case for case in cases_of(kind, (2,), SCALAR) if not refusals_of(case, [], None)]
        plan.append((kind, SCALAR, list(zip(cases, itertools.cycle(OUTPUTS)))))
    return check_all(folder, plan)


@test
def random_sets_of_rules_on_a_tensor_that_is_made_by_blocks(folder):
    tensors_of(LARGE)
    plan = random_plan(LARGE, 3, 2)
    for kind in (*ARRAYS, *SPARSE, "int8 per tensor", "int8 per channel"):
        plan.append((kind, LARGE, modelled_cases(kind, LARGE, 1)))
    return check_all(folder, plan)


def reordering_plan():
    plan = random_plan(BLOCKS, 40, 3, least=2)
    return [(kind, shapes, [(case, output) for case, output in cases if case.layout][:1])
            for kind, shapes, cases in plan]


@test
def random_sets_of_rules_on_tensors_that_are_reordered_by_blocks(folder):
    tensors_of(BLOCKS)
    return check_all(folder, reordering_plan())


def report(source, made, options):
    command = [TENON, "convert", "--quiet", "--force", "--report", "--json", source, made, *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["report"]


@test
def the_report_of_new_codes_is_that_of_the_values_of_the_old_ones(folder):
    """Whatever other rules there are: scales and errors do not depend on the order of elements."""
    shapes, number = {"m.33x64": SMALL["m.33x64"]}, 0
    for kind in (*CODES, *DATATYPES):
        bench = Bench(folder, kind, shapes)
        decoded, said = bench.after([["--cast", "f32"]], tuple(shapes))
        assert not said, said
        for cast_, more in itertools.product(["int8,per=tensor", "int8,per=channel,axis=0", "mxfp4"],
                                             [[], ["--layout", "AB,from=AB"], ["--form", "dense"]]):
            found = report(bench.source, decoded + ".out.zt", ["--cast", cast_, *more])
            expected = report(decoded, decoded + ".out.zt", ["--cast", cast_])
            assert found == expected, f"{kind}: {cast_} {more}: expected {expected} but found {found}"
            number += 1
    return f"{number} reports"


# ---- shapes: slices, orders, what is joined and cut ----

PAIR = {"m.2": [12, 10], "m.10": [12, 10]}             # joined in the order of their numbers
JOINS = {"concat": ["--concat", "j=m.*"], "stack": ["--concat", "j=m.*,stack=1"],
         "split": ["--split", "m.*=left.*+right.*"], "unstack": ["--split", "m.*=u.*.*,unstack=0"]}
Shaped = collections.namedtuple("Shaped", "kind slice transpose reshape join cast pad form")
SHAPED = {"slice": [None, "m.*=:10:2,1:9", "m.*=2:,::3"], "transpose": [None, "m.*=1,0"],
          "reshape": [None, "m.*=2,-1", "m.*=-1"], "join": [None, *JOINS],
          "cast": [None, "f16", "int4", "int8,per=tensor", "mxfp4", "float32|n2m4"], "pad": [None, "-1=8"],
          "form": [None, "dense", "coo"]}


def is_allowed(case):
    """Whether docs/pipeline.md refuses nothing of it."""
    codes = case.cast in ("int8,per=tensor", "mxfp4", "float32|n2m4")
    scalars = case.reshape == "m.*=-1" and case.join == "unstack"
    if case.kind in (*CODES, *DATATYPES) and case.cast is None or case.kind in SPARSE and case.form != "dense":
        return False
    if case.kind == "int4" and (codes or case.form == "coo") or case.form == "coo" and (codes or case.cast == "int4"):
        return False
    if case.pad and (case.form == "coo" or case.cast in ("mxfp4", "float32|n2m4")):
        return False                                    # padding becomes part of these
    return not (scalars and (case.pad or codes or case.form)) and any(case[1:5])


def shape_steps(case):
    """The options of each step, in the documented order."""
    first, cast_ = [], case.cast
    if case.kind in (*CODES, *DATATYPES):
        first, cast_ = ([["--cast", "f16"]], None) if cast_ == "f16" else ([["--cast", "f32"]], cast_)
    first += [["--form", "dense"]] if case.form == "dense" else []
    first += [[f"--{step}", getattr(case, step)] for step in ("slice", "transpose", "reshape") if getattr(case, step)]
    first += [JOINS[case.join]] if case.join else []
    first += [["--form", "coo"]] if case.form == "coo" else []
    return first + ([["--cast", cast_]] if cast_ else []) + ([["--pad", case.pad]] if case.pad else [])


def shape_options(case):
    """All of them at once, in another order."""
    options = [["--cast", case.cast]] if case.cast else []
    options += [[f"--{step}", getattr(case, step)] for step in ("pad", "form", "reshape", "transpose", "slice")
                if getattr(case, step)]
    return [word for option in options + ([JOINS[case.join]] if case.join else []) for word in option]


def shaped_model(case):
    """The tensors that come out, as type, shape and bytes."""
    made = {}
    for name in sorted(PAIR, key=lambda name: int(name[2:])):
        elements, shape = values(PAIR[name], name), PAIR[name]
        if case.slice:
            rows, columns = [slice(*(int(n) if n else None for n in text.split(":")))
                             for text in case.slice[4:].split(",")]
            kept = [elements[i:i + shape[1]][columns] for i in range(0, len(elements), shape[1])][rows]
            elements, shape = array("f", itertools.chain(*kept)), [len(kept), len(kept[0])]
        if case.transpose:
            elements, shape = reorder(elements, shape, [1, 0])
        if case.reshape:
            shape = [len(elements)] if case.reshape == "m.*=-1" else [2, len(elements) // 2]
        made[name] = elements, shape
    (a, shape), (b, _) = made["m.2"], made["m.10"]
    inner = count(shape[1:])
    if case.join == "concat":
        made = {"j": (a + b, [2 * shape[0], *shape[1:]])}
    elif case.join == "stack":
        rows = [elements[i:i + inner] for i in range(0, len(a), inner) for elements in (a, b)]
        made = {"j": (array("f", itertools.chain(*rows)), [shape[0], 2, *shape[1:]])}
    elif case.join == "split":
        half = len(a) // 2
        made = {f"{side}.{name[2:]}": (elements[from_:from_ + half], [shape[0] // 2, *shape[1:]])
                for name, (elements, shape) in made.items() for side, from_ in (("left", 0), ("right", half))}
    elif case.join == "unstack":
        made = {f"u.{name[2:]}.{i}": (elements[i * inner:(i + 1) * inner], shape[1:])
                for name, (elements, shape) in made.items() for i in range(shape[0])}
    return {name: (dtype, shape, data) for name, (elements, shape) in made.items()
            for dtype, data in [cast(elements, case.cast)]}


def is_cut_evenly(case):
    """Two halves of the first dimension, as it is then."""
    _, shape, _ = shaped_model(case._replace(join=None, cast=None))["m.2"]
    return case.join != "split" or shape[0] % 2 == 0


def check_shaped(task):
    folder, kind, cases = task
    bench, modelled, wrong = Bench(folder, kind, PAIR), 0, []
    for i, case in enumerate(cases):
        whole, steps = os.path.join(bench.folder, "whole.safetensors"), bench.source
        said = bench.convert(bench.source, whole, [*OUTPUTS["safetensors"][1], *shape_options(case)], 1 + i % 2)
        path, why = bench.after(shape_steps(case), tuple(PAIR))
        if not why:
            steps = os.path.join(bench.folder, "steps.safetensors")
            why = bench.convert(path, steps, [*OUTPUTS["safetensors"][1], *(["--pad", case.pad] if case.pad else [])])
        if said or why or contents(whole) != contents(steps):
            wrong.append(f"{kind}: {describe(shape_options(case))}: {said or why or 'differs from its steps'}")
            continue
        if kind in ARRAYS and case.cast in (None, "f16") and not case.pad and case.form != "coo":
            header, data = read_safetensors(whole)
            header.pop("__metadata__", None)
            found = {name: (entry["dtype"], entry["shape"], bytes(data[slice(*entry["data_offsets"])]))
                     for name, entry in header.items()}
            modelled += 1
            if found != shaped_model(case):
                wrong.append(f"{kind}: {describe(shape_options(case))}: not what the model has")
    shutil.rmtree(bench.folder)
    return len(cases), bench.runs, modelled, wrong


@test
def slices_orders_shapes_and_joined_tensors_compose_with_all_other_rules(folder):
    """Every pair with a rule of shapes, and random sets of more."""
    tasks, random_ = [], random.Random(7)
    with fast_folder(folder) as fast, multiprocessing.get_context("fork").Pool(2) as pool:
        for kind in KINDS:
            every = [Shaped(kind, *rules) for rules in itertools.product(*SHAPED.values())]
            every = [case for case in every if is_allowed(case) and is_cut_evenly(case)]
            more = [case for case in every if sum(map(bool, case[1:])) >= 3]
            pairs = [case for case in every if sum(map(bool, case[1:])) <= (2 if kind in ARRAYS else 3)]
            tasks.append((fast, kind, random_.sample(pairs, min(len(pairs), 24)) + random_.sample(more, 18)))
        cases, runs, modelled, wrong = zip(*pool.map(check_shaped, tasks))
    wrong = list(itertools.chain(*wrong))
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:20])
    return f"{sum(cases)} sets of rules, {sum(runs)} conversions, {sum(modelled)} modelled"


run_tests()
