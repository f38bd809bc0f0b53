"""support.py - what the tests of many processes share."""
import json
import math
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from array import array

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from crc32c import crc32c

TENON, TOOLS = sys.argv[1], pathlib.Path(sys.argv[2])
SLICE = [word for word in sys.argv[3:] if word.startswith("--all")]
ROOM = pathlib.Path(tempfile.mkdtemp(prefix="tenon-together-"))
signal.signal(signal.SIGINT, signal.default_int_handler)        # a shell ignores it in the background
ENVIRONMENT = {k: v for k, v in os.environ.items()
               if not k.startswith(("SLURM", "OMPI", "PMI", "TENON_", "JOB_COMPLETION"))}
ENVIRONMENT["LC_ALL"] = "C"
TESTS = []


def test(f):
    TESTS.append(f)
    return f


class Skip(Exception):
    """A test that cannot run here, and why."""


def write_input(path, seed=1, rows=600, change=0, layers=12, width=256):
    """Small tensors, two large ones, metadata, and a tied tensor."""
    pick = random.Random(seed)
    header, at = {"__metadata__": {"made": "by a test"}}, 0
    shapes = {f"layer.{i}.{part}": shape for i in range(layers)
              for part, shape in (("weight", [64, width]), ("bias", [64]), ("norm", [256]))}
    shapes |= {"embedding": [rows, 512], "head": [rows, 512], "odd": [3, 7, 5], "one": []}
    for name, shape in shapes.items():
        n = 4
        for extent in shape:
            n *= extent
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + n]}
        at += n
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    block = array("f", [pick.gauss(0, 1) for _ in range(65521)]).tobytes()
    data = (block * (at // len(block) + 1))[:at]
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data[:-4] + struct.pack("<f", 1 + change))


def write_tensors(path, tensors):
    """Each of one value: name: (shape, value)."""
    header, data = {}, b""
    for name, (shape, value) in tensors.items():
        one = struct.pack("<f", value) * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(one)]}
        data += one
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


INPUT = ROOM / "in.safetensors"
write_input(INPUT)
SMALL = ROOM / "small.safetensors"
write_input(SMALL, rows=80)


def tool(*words, code=0, env=None, **more):
    done = subprocess.run([TENON, *map(str, words)], capture_output=True, text=True, timeout=60,
                          env={**ENVIRONMENT, **(env or {})}, **more)
    assert code is None or done.returncode == code, \
        f"{' '.join(map(str, words))}: exit {done.returncode}: {done.stderr}"
    return done


def begin(*words, env=None, **more):
    return subprocess.Popen([TENON, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**ENVIRONMENT, **(env or {})}, **more)


def end(processes, codes=(0,)):
    out = []
    for p in processes:
        stdout, stderr = p.communicate(timeout=60)
        assert codes is None or p.returncode in codes, f"exit {p.returncode}: {stderr}"
        out.append(stderr)
    return out


def tells(process, word):
    """The first line of its standard error that has the word; the last one, if 30 seconds go by."""
    line, until = "", time.monotonic() + 30
    while word not in line and time.monotonic() < until:
        line = process.stderr.readline()
    return line


def contents(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}


class Case:
    """A folder for the output, and the files that one process writes."""
    number = 0

    def __init__(self, name, *options, source=INPUT):
        Case.number += 1
        self.folder = ROOM / f"case{Case.number}"
        self.folder.mkdir()
        self.source, self.options = source, options
        self.out = self.folder / name
        self.work = self.folder / (name + ".tenon")
        self.convert()
        self.reference = contents(self.folder)
        self.reset()

    def convert(self):
        tool("convert", self.source, self.out, "-q", *self.options)

    def command(self, *more):
        return ["convert", "--together", self.source, self.out, "-q", "--piece-size", "200K", *self.options, *more]

    def plan(self, *more):
        tool("plan", self.source, self.out, "-q", "--piece-size", "200K", *self.options, *more)

    def pieces(self):
        return json.loads((self.work / "plan.json").read_text())["pieces"]

    def reset(self):
        shutil.rmtree(self.folder)
        self.folder.mkdir()

    def is_right(self, what=""):
        found = contents(self.folder)
        assert sorted(found) == sorted(self.reference), f"{what}: {sorted(os.listdir(self.folder))}"
        assert found == self.reference, f"{what}: other bytes than one process writes"
        assert sorted(os.listdir(self.folder)) == sorted(self.reference), f"{what}: {os.listdir(self.folder)}"

    def is_untouched(self, what=""):
        assert not contents(self.folder), f"{what}: {os.listdir(self.folder)}"


def damage(path, change):
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(bytes(data))


def kills(count, step):
    """At which of `count` system calls to kill."""
    first = 0
    if SLICE:
        first, step = map(int, (SLICE[0].partition("=")[2] or "0/1").split("/"))
    return range(1 + first, count + 1, step)


def main():
    """Runs the tests that the command line chooses; the exit status."""
    bad, skipped = 0, 0
    only = [word for word in sys.argv[3:] if not word.startswith("-")]
    chosen = [f for f in TESTS if not only or any(f"_{word}" in f"_{f.__name__}" for word in only)]
    for f in chosen:
        began = time.monotonic()
        try:
            f()
        except Skip as reason:
            skipped += 1
            print(f"SKIPPED: {f.__name__.replace('_', ' ')}: {reason}", flush=True)
        except Exception as problem:
            bad += 1
            print(f"FAIL  {f.__name__.replace('_', ' ')}: {type(problem).__name__}: {problem}", flush=True)
        if "-v" in sys.argv:
            print(f"{time.monotonic() - began:6.1f} s  {f.__name__}", flush=True)
    shutil.rmtree(ROOM, ignore_errors=True)
    more = f", {skipped} skipped" if skipped else ""
    print(f"{len(chosen) - bad - skipped} passed, {bad} failed{more}")
    return bad > 0
