"""tool.py - the tool, which the command line names first, and arrays to give it."""
import subprocess
import sys

import numpy as np

TOOL = sys.argv[1]


def run(*arguments, status=0):
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == status, f"tenon {' '.join(map(str, arguments))}: exit {done.returncode}: {done.stderr}"
    return done


def tenon(*arguments, status=0):
    """All that it says."""
    done = run(*arguments, status=status)
    return done.stdout + done.stderr


def convert(source, target, *options):
    tenon("convert", "--force", source, target, *options)
    return target


def random_array(dtype, shape, seed=0):
    """Any bits at all: NaN, infinities and subnormals among them.  The seed may be a generator."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    data = np.random.default_rng(seed).bytes(size)
    if dtype == bool:
        data = bytes(byte & 1 for byte in data)
    return np.frombuffer(data, dtype).reshape(shape)
