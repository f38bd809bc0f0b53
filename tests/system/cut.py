"""An input that is cut while a command reads it: a sentence and exit 1, no signal, and nothing is written."""
import atexit
import os
import shutil
import subprocess
import tempfile
import time

from system import MIB, TENON, noise, run_tests, test, write_safetensors

SIZE = 16 * MIB
BYTES = noise(SIZE // 4).replace(b"\0", b"\1")
PLACES = (5 * 4096, SIZE // 2 + 100, SIZE - 4096 * 3 - 7)       # where pages meet, inside one, near the end

# Cuts the file $CUT to $LEFT bytes as soon as it is mapped.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void *map(const char *name, void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    void *(*real)(void *, size_t, int, int, int, off_t) = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, name);
    void *mapped = real(at, n, protection, flags, fd, offset);
    struct stat a, b;
    if (fd >= 0 && getenv("CUT") && stat(getenv("CUT"), &a) == 0 && fstat(fd, &b) == 0 && a.st_ino == b.st_ino)
        if (truncate(getenv("CUT"), atol(getenv("LEFT"))) != 0)
            abort();
    return mapped;
}

void *mmap(void *at, size_t n, int p, int f, int fd, off_t o) { return map("mmap", at, n, p, f, fd, o); }
void *mmap64(void *at, size_t n, int p, int f, int fd, off_t o) { return map("mmap64", at, n, p, f, fd, o); }
"""
TOOLS = tempfile.mkdtemp(prefix="tenon-cut-")
atexit.register(shutil.rmtree, TOOLS, ignore_errors=True)
subprocess.run(["cc", "-shared", "-fPIC", "-xc", "-", "-o", f"{TOOLS}/cut.so", "-ldl"], input=SHIM, text=True, check=True)


def prepare(folder):
    path = os.path.join(folder, "in.safetensors")
    write_safetensors(path, {f"t{i}": BYTES for i in range(4)})
    return path


def check(folder, path, left, before, code, said):
    assert code == 1, f"exit {code} when cut to {left} bytes: {said}"
    assert f"{path}: byte {left}: the file has shrunk: expected " in said and f" bytes, found {left}\n" in said, said
    assert sorted(os.listdir(folder)) == before, f"left behind: {os.listdir(folder)}"


def cut(folder, *arguments):
    """Runs a command on IN, a file that is cut once it is open."""
    for left in PLACES:
        path = prepare(folder)
        before = sorted(os.listdir(folder))
        done = subprocess.run([TENON, *[path if a == "IN" else a for a in arguments]], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "LD_PRELOAD": f"{TOOLS}/cut.so", "CUT": path, "LEFT": str(left)})
        check(folder, path, left, before, done.returncode, done.stderr)


@test
def stats_of_a_file_that_is_cut(folder):
    cut(folder, "stats", "IN")


@test
def verify_of_a_file_that_is_cut(folder):
    cut(folder, "verify", "IN")


@test
def diff_with_a_file_that_is_cut(folder):
    other = os.path.join(folder, "other.safetensors")
    os.rename(prepare(folder), other)
    cut(folder, "diff", other, "IN")
    cut(folder, "diff", "IN", other)


@test
def convert_of_a_file_that_is_cut(folder):
    out = os.path.join(folder, "out.zt")
    cut(folder, "convert", "--quiet", "IN", out)
    cut(folder, "convert", "--quiet", "--compress", "zstd", "--checksum", "sha256", "IN", out)


@test
def other_commands_on_a_file_that_is_cut(folder):
    for arguments in (("show", "IN", "t3"), ("describe", "IN"), ("ls", "IN"), ("meta", "IN", "--set", "a=b")):
        cut(folder, *arguments)


@test
def a_cut_at_any_time_is_a_sentence_or_comes_too_late(folder):
    """No signal, and an output only where all was read."""
    met = 0
    for i in range(20):
        path, out = prepare(folder), os.path.join(folder, "out.zt")
        before = sorted(os.listdir(folder))
        command = ("stats", path) if i % 2 else ("convert", "--quiet", path, out)
        process = subprocess.Popen([TENON, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(0.001 * i)
        os.truncate(path, PLACES[i % 3])
        said = process.communicate(timeout=120)[1]
        assert process.returncode in (0, 1), f"exit {process.returncode}: {said}"
        assert process.returncode == 0 or sorted(os.listdir(folder)) == before, f"left behind: {os.listdir(folder)}"
        met += process.returncode
        if os.path.exists(out):
            os.unlink(out)
    return f"{met} of 20 met it"


run_tests()
