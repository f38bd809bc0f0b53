"""tests/faults/scenarios.py - what is done while something fails, and how it is judged.

Each scenario is a command that runs in a folder with "in" (what it reads), "out" (what it writes) and
"tmp" (TMPDIR).  The old and the new tensors have the same names and shapes: were their files mixed,
nothing but the values would tell.
"""
import json
import math
import os
import random
import struct
import subprocess
import time

TENON = None                    # set by faults.py
OLD, NEW = "in/old.safetensors", "in/new.safetensors"
SHAPES = {"conv.weight": [8, 4, 3, 3], "a.weight": [64, 64], "b.weight": [32, 96], "bias": [100]}


class Scenario:
    def __init__(self, name, command, target=None, old=(), files=(), judge="file", ready=None):
        self.name = name
        self.command = command          # arguments of tenon
        self.target = target            # what is read to see which it is, old or new; or None
        self.old = old                  # commands that make the old state of "out"
        self.files = files              # of "in" to be copied to "out" first
        self.judge = judge              # file, set (of files), source (C), text, or nothing (is written)
        self.ready = ready              # begins something beside it; returns the process


def write_safetensors(path, seed):
    pick = random.Random(seed)
    header, data = {"__metadata__": {"made": f"by {seed}"}}, b""
    for name, shape in SHAPES.items():
        count = math.prod(shape)
        values = [0.0 if pick.random() < 0.3 else pick.gauss(0, 1) for _ in range(count)]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * count]}
        data += struct.pack(f"<{count}f", *values)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def varint(value):
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def field(number, content):
    """Of a protobuf message: a number, or bytes with their length."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def write_graph(path):
    """An ONNX model with the tensors of write_safetensors(), all 0."""
    graph = b""
    for name, shape in SHAPES.items():
        dims = b"".join(field(1, extent) for extent in shape)
        graph += field(5, dims + field(2, 1) + field(8, name.encode()) + field(9, bytes(4 * math.prod(shape))))
    with open(path, "wb") as f:
        f.write(field(1, 8) + field(7, graph))


def tenon(*arguments, cwd):
    subprocess.run([TENON, *arguments], cwd=cwd, check=True, stdout=subprocess.DEVNULL)


def make_inputs(folder):
    os.mkdir(os.path.join(folder, "in"))
    write_safetensors(os.path.join(folder, "in/old.safetensors"), 1)
    write_safetensors(os.path.join(folder, "in/new.safetensors"), 2)
    write_graph(os.path.join(folder, "in/graph.onnx"))
    packed = ["--compress", "zstd", "--checksum", "sha256", "-q"]
    fixed = ["--cast", "fx16,frac=auto", "--only", "bias", "-q", "--only"]
    tenon("convert", NEW, "in/new.zt", *packed, cwd=folder)
    tenon("convert", OLD, "in/old-fx.zt", *fixed, "b.weight", cwd=folder)       # so that the headers differ
    tenon("convert", NEW, "in/new-fx.zt", *fixed, "a.weight", cwd=folder)


def serve(folder):
    """A server that offers in/new.zt at the path "socket"."""
    path = os.path.join(folder, "socket")
    process = subprocess.Popen([TENON, "serve", "in/new.zt", "--socket", "socket", "-q"], cwd=folder)
    for _ in range(200):
        if os.path.exists(path):
            return process
        time.sleep(0.05)
    process.kill()
    raise AssertionError("the server is not ready")


def convert(source, target, *options):
    return ["convert", source, target, *options, "-q"]


def over_old(name, target, *options, judge="file"):
    """IN to OUT, where an older OUT of the same kind stands."""
    return Scenario(name, [*convert(NEW, target, *options), "--force", "-j1"], target,
                    [convert(OLD, target, *options)], judge=judge)


INDEX = "out/o.safetensors.index.json"
SHARDED = [*convert(NEW, "out/o.safetensors", "--shard-size", "12K"), "--force", "-j1"]
SHARED = ["--together", "--work", "work", "--piece-size", "16K"]       # what is in "work" may stay there
FIRMWARE = ["-o", "out", "--name", "net", "-q"]

ALL = [
    over_old("zTensor, zstd, crc32c", "out/o.zt", "--compress", "zstd", "--checksum", "crc32c"),
    Scenario("zTensor, sha256, no old one", [*convert(NEW, "out/o.zt", "--checksum", "sha256"), "-j1"],
             "out/o.zt"),
    over_old("safetensors", "out/o.safetensors"),
    Scenario("a set of shards, no old one", SHARDED, INDEX, judge="set"),
    Scenario("a set of shards over another", SHARDED, INDEX,
             [convert(OLD, "out/o.safetensors", "--shard-size", "20K")], judge="set"),
    over_old("for many processes", "out/o.zt", *SHARED, "--checksum", "crc32c"),
    over_old("for many processes, zstd", "out/o.zt", *SHARED, "--compress", "zstd"),
    over_old("a descriptor and its data", "out/o.json", judge="set"),
    over_old("a model and its data", "out/o.onnx", "--graph", "in/graph.onnx", "--external", "--drop-metadata",
             judge="set"),
    over_old("npz", "out/o.npz"),
    over_old("BTF", "out/o.btf", "--only", "b.weight", "--drop-names", "--drop-metadata"),
    over_old("MatrixMarket", "out/o.mtx", "--only", "a.weight", "--drop-metadata", "--drop-names"),
    over_old("mxfp4 with a report", "out/o.zt", "--cast", "*.weight=mxfp4", "--report"),
    over_old("CSR", "out/o.zt", "--form", "[ab].weight=csr"),
    over_old("another layout, padded", "out/o.zt", "--layout", "conv.weight=NHWC,from=NCHW", "--pad",
             "a.weight=1=80"),
    Scenario("metadata edited", ["meta", "out/new.zt", "--set", "made=by hand"], "out/new.zt",
             files=["new.zt"]),
    Scenario("C source over an older one", ["export-c", "in/new-fx.zt", *FIRMWARE, "--force"], "out/net.c",
             [["export-c", "in/old-fx.zt", *FIRMWARE]], judge="source"),
    Scenario("descriptors beside a file", ["describe", "out/new.zt", "--sidecar", "-q"],
             "out/new.zt.wia.json", files=["new.zt"], judge="text"),
    Scenario("diff", ["diff", NEW, "in/new.zt", "-j1"], judge="nothing"),
    Scenario("stats", ["stats", "in/new.zt", "-j1"], judge="nothing"),
    Scenario("verify", ["verify", "in/new.zt", "in/new.safetensors", "-j1"], judge="nothing"),
    Scenario("attached and saved", ["attach", "socket", "-o", "out/o.zt", "--force", "-q", "-j1"], "out/o.zt",
             [convert(OLD, "out/o.zt")], ready=serve),
]
