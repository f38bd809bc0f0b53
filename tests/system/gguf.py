"""Headers of GGUF files that are large or hostile take little time, and memory that is bounded by the file."""
import os
import resource
import struct
import subprocess
import time

from system import MIB, TENON, Skip, is_sanitized, run_tests, test

GOLDEN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "golden", "gguf")
U8, F32, STRING, ARRAY = 0, 6, 8, 9


def text(value):
    return struct.pack("<Q", len(value)) + value


def write(path, pairs, tensors=(), more=0):
    """`pairs` are (key, type, bytes), `tensors` (name, elements of float32, offset)."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs))
    head += b"".join(text(key) + struct.pack("<I", kind) + value for key, kind, value in pairs)
    head += b"".join(text(name) + struct.pack("<IQIQ", 1, n, 0, offset) for name, n, offset in tensors)
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % 32 + more))
    return path


def measure(path, *codes):
    """Seconds and bytes of memory that opening a file takes; sanitizers take more of both."""
    begin = time.monotonic()
    process = subprocess.Popen([TENON, "verify", path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in (codes or (0,)), f"{path}: exit {process.returncode}: {said}"
    seconds, peak = time.monotonic() - begin, usage.ru_maxrss * 1024
    assert is_sanitized() or peak < 2 * os.path.getsize(path) + 64 * MIB, f"{path}: {peak // MIB} MiB"
    return seconds, peak


@test
def hostile_files_end_at_once_in_little_memory(folder):
    if is_sanitized():
        raise Skip("sanitizers take memory and time of their own")
    path = os.path.join(GOLDEN, "hostile")
    worst = max((*measure(os.path.join(path, name), 0, 1, 3), name) for name in sorted(os.listdir(path)))
    assert worst[0] < 1, worst
    return f"{len(os.listdir(path))} files, at most {1000 * worst[0]:.0f} ms"


@test
def large_headers_take_twice_their_size_at_most(folder):
    """The files are written in pieces: what this process holds counts as memory of those it starts."""
    thousand, array = 1000, ARRAY.to_bytes(4, "little")
    kinds = {"numbers": (array + struct.pack("<IQ", F32, 25 * MIB), bytes(MIB), 100),
             "bytes": (array + struct.pack("<IQ", U8, 100 * MIB), bytes(MIB), 100),
             "strings": (array + struct.pack("<IQ", STRING, 10**6), text(b"a word of some length") * thousand, thousand),
             "empty": (array + struct.pack("<IQ", STRING, 4 * 10**6), text(b"") * 4 * thousand, thousand),
             "arrays": (array + struct.pack("<IQ", ARRAY, 10**6), struct.pack("<IQ", STRING, 0) * thousand, thousand),
             "text": (struct.pack("<IQ", STRING, 100 * MIB), b"x" * MIB, 100)}
    found = []
    for name, (head, piece, times) in kinds.items():
        path = os.path.join(folder, name + ".gguf")
        with open(path, "wb") as f:
            f.write(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text(b"k") + head)
            for _ in range(times):
                f.write(piece)
        seconds, peak = measure(path)
        found.append(f"{name} {os.path.getsize(path) // MIB} MiB: {peak // MIB} MiB, {seconds:.2f} s")
        os.remove(path)
    return "; ".join(found)


@test
def opening_reads_the_header_only(folder):
    """A file of many gigabytes, all of it a hole, is listed within an address space that cannot map it."""
    if is_sanitized():
        raise Skip("sanitizers need more address space than any limit")
    path = write(os.path.join(folder, "large.gguf"), [(b"k", U8, b"1")], [(b"t", 4 << 30, 0)])
    with open(path, "r+b") as f:
        f.truncate(os.path.getsize(path) + (16 << 30))
    limit = 160 * MIB
    done = subprocess.run([TENON, "ls", path], capture_output=True, text=True,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    assert done.returncode == 0 and "16.0 GiB" in done.stdout, done.stderr + done.stdout


run_tests()
