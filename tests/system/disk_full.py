"""A disk that fills up, and a limit on the size of files: a message, exit 3, the old file as it was, no litter."""
import os
import resource
import subprocess

from system import MIB, Skip, contents, noise, run_tests, tenon, test, write_safetensors


class SmallDisk:
    """A tmpfs of 8 MiB, where we may mount one."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "disk")

    def __enter__(self):
        os.mkdir(self.path)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tenon-test", self.path], stderr=subprocess.PIPE,
                              text=True)
        if done.returncode:
            raise Skip(f"cannot mount a small disk: {done.stderr.strip()}")
        return self.path

    def __exit__(self, *_):
        subprocess.run(["umount", self.path], check=True)


def free(path):
    s = os.statvfs(path)
    return s.f_bavail * s.f_frsize


def make_input(folder, suffix=".safetensors"):
    source = os.path.join(folder, "in" + suffix)
    write_safetensors(source, {"a": noise(3 * MIB), "b": noise(9 * MIB, 2), "c": noise(MIB, 3)})
    return source


def check_full(disk, out, arguments, reason="No space left on device"):
    """One failing run over an old file."""
    name = os.path.basename(out)
    with open(out, "wb") as f:
        f.write(b"the old file")
    before = free(disk)
    said = tenon("convert", "--quiet", "--force", *arguments, out, code=3)
    assert said == f"tenon: {out}: cannot write: {reason} (nothing was replaced)\n", said
    assert contents(out) == b"the old file" and os.listdir(disk) == [name], os.listdir(disk)
    assert free(disk) == before, "the space of the unfinished file is not given back"


@test
def a_full_disk(folder):
    with SmallDisk(folder) as disk:
        source = make_input(folder)
        runs = 0
        for jobs in ("1", "2", "4"):
            for options in (["--to", "ztensor"], ["--to", "ztensor", "--checksum", "crc32c"], ["--to", "safetensors"],
                            ["--to", "ztensor", "--compress", "zstd"], ["--to", "ztensor", "--compress", "zstd:1",
                                                                       "--checksum", "sha256"]):
                for way in ("mmap", "pread"):
                    check_full(disk, os.path.join(disk, "out"), [*options, "--jobs", jobs, "--io", way, source])
                    runs += 1
        return f"{runs} runs"


@test
def a_disk_that_fills_up_where_space_cannot_be_reserved(folder):
    """Compressed sizes are not known beforehand: many threads find the disk full at once."""
    with SmallDisk(folder) as disk:
        source = os.path.join(folder, "in.safetensors")
        write_safetensors(source, {f"t{i}": noise(300_000, i) for i in range(40)})
        for _ in range(20):
            check_full(disk, os.path.join(disk, "out.zt"), ["--compress", "zstd:1", "--jobs", "4", source])


@test
def a_disk_too_small_for_new_metadata(folder):
    """tmpfs cannot share blocks: the copy does not fit beside the old file."""
    with SmallDisk(folder) as disk:
        out = os.path.join(disk, "f.safetensors")
        write_safetensors(out, {"a": noise(5 * MIB)})
        before = contents(out)
        said = tenon("meta", "--set", "k=v", out, code=3)
        assert "No space left on device" in said and out in said, said
        assert contents(out) == before and os.listdir(disk) == ["f.safetensors"]


@test
def a_disk_that_is_just_large_enough(folder):
    with SmallDisk(folder) as disk:
        source = os.path.join(folder, "in.safetensors")
        write_safetensors(source, {"a": noise(7 * MIB)})
        tenon("convert", "--quiet", source, os.path.join(disk, "out.zt"))
        tenon("diff", source, os.path.join(disk, "out.zt"))


@test
def a_limit_on_the_size_of_files(folder):
    """ulimit -f: the kernel sends SIGXFSZ, which must not end the tool before it has cleaned up."""
    source, disk = make_input(folder), os.path.join(folder, "out")
    os.mkdir(disk)
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2 * MIB, 2 * MIB))
    for options in ([], ["--compress", "zstd"]):
        out = os.path.join(disk, "out.zt")
        with open(out, "wb") as f:
            f.write(b"the old file")
        said = tenon("convert", "--quiet", "--force", *options, source, out, code=3, preexec_fn=limit)
        assert said == f"tenon: {out}: cannot write: File too large (nothing was replaced)\n", said
        assert contents(out) == b"the old file" and os.listdir(disk) == ["out.zt"]


@test
def output_that_cannot_be_printed(folder):
    source = make_input(folder)
    with open("/dev/full", "w") as full:
        done = subprocess.run([__import__("system").TENON, "ls", source], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 3 and "No space left on device" in done.stderr, (done.returncode, done.stderr)


run_tests()
