"""tests/system/system.py - what the system tests share: the tool, a folder, input files, counting.

Each script is run as SCRIPT TENON, prints one line a test and ends in "N passed, M failed".
"""
import atexit
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import traceback

TENON = os.path.abspath(sys.argv[1])
MIB = 1 << 20
_tests = []


class Skip(Exception):
    """The machine cannot run this test; the reason is its text."""


def test(function):
    """A test: a function that takes a folder of its own.  Its name is the sentence printed."""
    _tests.append(function)
    return function


def run_tests():
    counts = {"ok": 0, "FAIL": 0, "SKIPPED": 0}
    for function in _tests:
        name = function.__name__.replace("_", " ")
        folder = tempfile.mkdtemp(prefix="tenon-system-")
        os.chmod(folder, 0o755)
        try:
            note = function(folder)
            counts["ok"] += 1
            print(f"ok    {name}{': ' + note if note else ''}", flush=True)
        except Skip as reason:
            counts["SKIPPED"] += 1
            print(f"SKIPPED: {name}: {reason}", flush=True)
        except Exception:
            counts["FAIL"] += 1
            print(f"FAIL  {name}\n      " + traceback.format_exc().rstrip().replace("\n", "\n      "), flush=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    skipped = f", {counts['SKIPPED']} skipped" if counts["SKIPPED"] else ""
    print(f"{counts['ok']} passed, {counts['FAIL']} failed{skipped}")
    sys.exit(1 if counts["FAIL"] else 0)


def tenon(*arguments, code=0, **options):
    """Runs the tool, checks its exit status and returns what it said on stderr."""
    done = subprocess.run([TENON, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    assert done.returncode == code, f"tenon {' '.join(arguments)}: exit {done.returncode}, expected {code}: {done.stderr}"
    return done.stderr


def write_safetensors(path, tensors):
    """tensors: name -> bytes, or a size for that many zero bytes without blocks on disk."""
    header, at = {}, 0
    for name, data in tensors.items():
        size = data if isinstance(data, int) else len(data)
        header[name] = {"dtype": "U8", "shape": [size], "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for data in tensors.values():
            if isinstance(data, int):
                f.seek(data, os.SEEK_CUR)
            else:
                f.write(data)
        f.truncate(8 + len(text) + at)


def noise(size, seed=1):
    """Bytes that do not compress, the same every time."""
    import random
    return random.Random(seed).randbytes(size)


def contents(path):
    with open(path, "rb") as f:
        return f.read()


_copy = None


def open_program():
    """The tool for other users: the build's folder may be closed to them, a copy is not."""
    global _copy
    if not _copy:
        _copy = tempfile.mkdtemp(prefix="tenon-program-")
        atexit.register(shutil.rmtree, _copy, ignore_errors=True)
        os.chmod(_copy, 0o755)
        build = os.path.dirname(TENON)
        for name in ["tenon"] + [name for name in os.listdir(build) if name.startswith("libtenon.so")]:
            shutil.copy(os.path.join(build, name), os.path.join(_copy, name))
            os.chmod(os.path.join(_copy, name), 0o755)
    return os.path.join(_copy, "tenon")


def is_sanitized():
    """Sanitizers take terabytes of address space: limits on it make no sense."""
    library = os.path.join(os.path.dirname(TENON), "libtenon.so")
    return b"__asan_init" in contents(TENON) or (os.path.exists(library) and b"__asan_init" in contents(library))
