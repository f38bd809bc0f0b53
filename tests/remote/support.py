"""What the tests of URLs share: files, the server, the tool, and what the server saw."""
import atexit
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

TENON = sys.argv[1]
MIB = 1 << 20
HERE = pathlib.Path(__file__).resolve().parent
ROOM = pathlib.Path(tempfile.mkdtemp(prefix="tenon-remote-"))
FILES = ROOM / "files"
FILES.mkdir()
atexit.register(shutil.rmtree, ROOM, ignore_errors=True)
tests = []


def test(function):
    tests.append(function)
    return function


def expect(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(item) for item in what))


def equal(found, expected, what=""):
    expect(found == expected, f"{what}: expected {expected!r:.2000} but found {found!r:.2000}")


# ---- files ----

def write_safetensors(path, tensors):
    """(name, bytes) each of random float32 data."""
    header, at = {}, 0
    for name, size in tensors:
        header[name] = {"dtype": "F32", "shape": [size // 4], "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    noise = random.Random(7)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, size in tensors:
            piece = noise.randbytes(min(size, 1 << 16)).replace(b"\x7f", b"\x3f").replace(b"\xff", b"\x3f")
            file.write((piece * (size // len(piece) + 1))[:size] if size else b"")


def make_set(folder, shards, tensors):
    folder.mkdir()
    where = {}
    for i in range(shards):
        name = f"model-{i + 1:05}-of-{shards:05}.safetensors"
        listed = [(f"s{i}.t{k}", 4000) for k in range(tensors)]
        write_safetensors(folder / name, listed)
        where.update({tensor: name for tensor, _ in listed})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))


def make_files():
    sizes = random.Random(3)
    layers = [(f"model.layers.{i}.w{k}", sizes.choice([2048, 8192, 120000, 300000]))
              for i in range(55) for k in range(4)]
    write_safetensors(FILES / "m.safetensors", layers + [("embedding", 12 * MIB), ("norm", 1024)])
    write_safetensors(FILES / "many.safetensors", [(f"a.long.name.of.a.tensor.{i:05}", 64) for i in range(3000)])
    write_safetensors(FILES / "small.safetensors", [("a", 40), ("b", 400)])
    (FILES / "empty").write_bytes(b"")
    make_set(FILES / "set", 12, 20)
    make_set(FILES / "longset", 12, 900)
    (FILES / "single").mkdir()
    shutil.copy(FILES / "small.safetensors", FILES / "single/model.safetensors")
    for name in ("m.zt", "m.npz"):
        tool("convert", FILES / "m.safetensors", FILES / name)
    tool("convert", FILES / "many.safetensors", FILES / "many.zt")


# ---- the tool ----

# Nothing of whoever runs the tests: no credentials, no proxies, no settings.
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": str(ROOM), "TENON_REMOTE_TIMEOUT": "1", "LC_ALL": "C.UTF-8",
               "AWS_EC2_METADATA_DISABLED": "true", "no_proxy": "127.0.0.1",
               "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", ""), "UBSAN_OPTIONS": "print_stacktrace=1"}
outputs = []            # of every call, for the test that looks for secrets


class Result:
    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds


def tool(*arguments, env=None, code=0, most=60):
    """Runs the tool, which must end with this exit code within so many seconds."""
    began = time.monotonic()
    done = subprocess.run([TENON, *map(str, arguments)], env=ENVIRONMENT | (env or {}), cwd=ROOM, timeout=most,
                          stdin=subprocess.DEVNULL, capture_output=True)
    result = Result(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"),
                    time.monotonic() - began)
    outputs.append((arguments, result.out + result.err))
    expect(code is None or result.code == code, f"tenon {' '.join(map(str, arguments))}: expected exit {code} but "
           f"found {result.code}\n{result.out[-2000:]}{result.err[-2000:]}")
    return result


# ---- the server ----

class Server:
    def __init__(self, *certificate):
        self.process = subprocess.Popen([sys.executable, "-B", HERE / "server.py", FILES, *certificate],
                                        stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline())
        self.url = f"http{'s' if certificate else ''}://127.0.0.1:{self.port}"
        atexit.register(self.stop)

    def stop(self):
        self.process.kill()
        self.process.wait()

    def log(self):
        with urllib.request.urlopen(self.url + "/_log") as reply:
            return json.load(reply)


def round_trips(log):
    """The most requests of which each came after the reply to the one before."""
    count, last = 0, -1.0
    for entry in sorted(log, key=lambda entry: entry["end"]):
        if entry["begin"] >= last:
            count, last = count + 1, entry["end"]
    return count


def bytes_asked(log):
    total = 0
    for entry in log:
        if entry["range"] and entry["status"] == 206:
            first, last = entry["range"].removeprefix("bytes=").split("-")
            total += int(last) - int(first) + 1
    return total


def run_all():
    chosen = sys.argv[2:]
    failed = passed = 0
    for function in tests:
        name = function.__name__.replace("_", " ")
        if chosen and not any(word in name for word in chosen):
            continue
        try:
            function()
        except (AssertionError, subprocess.TimeoutExpired) as problem:
            failed += 1
            print(f"FAIL  {name}\n      {problem}", flush=True)
        else:
            passed += 1
            print(f"ok    {name}", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)
