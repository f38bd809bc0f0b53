"""Metadata of large GGUF files on file systems that share blocks: the data stays where it is, also when all breaks off.

TENON_TEST_MIB is the size of the file (128).  Needs the right to mount, mkfs.xfs and mkfs.btrfs.
"""
import array
import fcntl
import json
import os
import random
import signal
import struct
import subprocess
import time

from system import MIB, TENON, Skip, noise, run_tests, tenon, test

SIZE = int(os.environ.get("TENON_TEST_MIB", 128)) * MIB
TOKENS = [f"token {i}" for i in range(256_000)]
U32, STRING, ARRAY = 4, 8, 9


def run(*command):
    """Runs a program of the system; the test cannot be made without it."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except FileNotFoundError:
        raise Skip(f"there is no {command[0]}") from None
    if done.returncode:
        raise Skip(f"{' '.join(command)}: {done.stdout.strip()}")


class SharingDisk:
    """A new file system of this kind, in a file."""

    def __init__(self, folder, kind):
        self.path, self.image, self.kind = os.path.join(folder, kind), os.path.join(folder, kind + ".image"), kind

    def mount(self):
        run("mount", "-o", "loop", self.image, self.path)

    def __enter__(self):
        os.mkdir(self.path)
        with open(self.image, "wb") as f:
            f.truncate(3 * SIZE + 512 * MIB)
        run("mkfs." + self.kind, "-q", *(["-m", "reflink=1"] if self.kind == "xfs" else []), self.image)
        self.mount()
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", self.path], check=True)

    def break_off(self, process):
        """What is not on the disk yet is lost, as if the power had failed; then the disk is there again."""
        run("xfs_io", "-x", "-c", "shutdown", self.path)
        process.wait()
        subprocess.run(["umount", self.path], check=True)
        self.mount()


def text(value):
    return struct.pack("<Q", len(value)) + value


def write_model(path):
    """Tokens, a number and two tensors of any bytes; returns where the data begins."""
    words = struct.pack("<IQ", STRING, len(TOKENS)) + b"".join(text(t.encode()) for t in TOKENS)
    half = SIZE // 2
    head = (b"GGUF" + struct.pack("<IQQ", 3, 2, 3) + text(b"general.architecture") + struct.pack("<I", STRING) + text(b"llama")
            + text(b"llama.block_count") + struct.pack("<II", U32, 1)
            + text(b"tokenizer.ggml.tokens") + struct.pack("<I", ARRAY) + words)
    for name, offset in ((b"first", 0), (b"second", half)):
        head += text(name) + struct.pack("<IQIQ", 1, half, 24, offset)
    head += bytes(-len(head) % 32)
    piece = noise(MIB)
    with open(path, "wb") as f:
        f.write(head)
        for i in range(SIZE // MIB):
            f.write(struct.pack("<Q", i) + piece[8:])
        os.fsync(f.fileno())
    return len(head)


def check_model(path):
    """The data is what write_model() wrote; returns the metadata."""
    size = os.path.getsize(path)
    piece = noise(MIB)[8:]
    with open(path, "rb") as f:
        f.seek(size - SIZE)
        for i in range(SIZE // MIB):
            found = f.read(MIB)
            assert found[:8] == struct.pack("<Q", i) and found[8:] == piece, f"{path}: MiB {i} is another"
    tenon("verify", path)
    done = subprocess.run([TENON, "meta", path, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["metadata"]


def extents(path):
    """(place in the file, place on the disk, length) of each extent."""
    FS_IOC_FIEMAP, SYNC, MOST, EACH = 0xC020660B, 1, 20_000, 56
    with open(path, "rb") as f:
        request = array.array("B", struct.pack("<QQIIII", 0, 2**64 - 1, SYNC, 0, MOST, 0) + bytes(EACH * MOST))
        fcntl.ioctl(f, FS_IOC_FIEMAP, request)
    found = struct.unpack_from("<I", request, 20)[0]
    assert found < MOST
    return [struct.unpack_from("<QQQ", request, 32 + EACH * i) for i in range(found)]


def in_common(a, b):
    """Bytes of two files that are at the same place of the disk."""
    points = []
    for which, path in enumerate((a, b)):
        for _, at, n in extents(path):
            points += [(at, 1, which), (at + n, -1, which)]
    common, inside, before = 0, [0, 0], 0
    for at, step, which in sorted(points):
        common += at - before if inside[0] and inside[1] else 0
        inside[which] += step
        before = at
    return common


def edit(path, *changes):
    done = subprocess.run([TENON, "meta", path, "--json", *changes], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["shared_bytes"]


def check_edits(disk, folder):
    path, old = os.path.join(disk.path, "model.gguf"), os.path.join(disk.path, "old.gguf")
    tokens = os.path.join(folder, "tokens.json")
    write_model(path)
    edit(path, "--set", "tenon.padding:u8=[]")      # from here on the data is shared
    took = []
    for i, changes in enumerate((["--set", "llama.block_count=7", "--set", "general.name=A longer header"],
                                 ["--set-file", f"tokenizer.ggml.tokens={tokens}"], ["--unset", "general.name"])):
        with open(tokens, "w") as f:
            json.dump([t + " changed" for t in TOKENS], f)
        os.link(path, old)
        began = time.monotonic()
        shared = edit(path, *changes)
        took.append(time.monotonic() - began)
        assert SIZE - 2 * 4096 <= shared <= SIZE, f"edit {i}: {shared} bytes are shared"
        assert in_common(path, old) >= shared, f"edit {i}: {in_common(path, old)} bytes are at the same place"
        os.unlink(old)
    found = check_model(path)
    assert found["tokenizer.ggml.tokens"] == [t + " changed" for t in TOKENS] and found["llama.block_count"] == 7
    assert "general.name" not in found
    return f"{SIZE // MIB} MiB, {max(took):.2f} s each"


@test
def xfs_shares_the_data(folder):
    with SharingDisk(folder, "xfs") as disk:
        return check_edits(disk, folder)


@test
def btrfs_shares_the_data(folder):
    with SharingDisk(folder, "btrfs") as disk:
        return check_edits(disk, folder)


def begin_edit(path, number):
    return subprocess.Popen([TENON, "meta", "-q", path, "--set", f"llama.block_count={number}", "--set", f"note={'x' * number * 97}"],
                            stderr=subprocess.DEVNULL)


def check_whole(path, before):
    """All of an edit, or nothing of it."""
    found = check_model(path)
    number = found["llama.block_count"]
    assert number == 1 and before == 1 or found["note"] == "x" * number * 97, number
    assert found["tokenizer.ggml.tokens"] == TOKENS
    return number


def break_edits(folder, times, how):
    """Edits that are broken off at any time; how(disk, process) does it."""
    with SharingDisk(folder, "xfs") as disk:
        path = os.path.join(disk.path, "model.gguf")
        write_model(path)
        tenon("meta", "-q", path, "--set", "tenon.padding:u8=[]")
        os.sync()
        chance, number, done = random.Random(5), 1, 0
        for i in range(times):
            process = begin_edit(path, i + 2)
            time.sleep(chance.uniform(0, 0.08))
            how(disk, process)
            process.wait()
            now = check_whole(path, number)
            assert now in (number, i + 2), (now, number)
            done += now != number
            number = now
            assert os.listdir(disk.path) == ["model.gguf"], os.listdir(disk.path)
        return f"{times} edits, {done} of them were done"


@test
def a_killed_edit_is_whole_or_nothing(folder):
    return break_edits(folder, 12, lambda disk, process: process.send_signal(signal.SIGKILL))


@test
def an_edit_that_loses_its_disk_is_whole_or_nothing(folder):
    return break_edits(folder, 12, lambda disk, process: disk.break_off(process))


run_tests()
