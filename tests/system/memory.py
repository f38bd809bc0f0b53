"""Files several times larger than the address space that is allowed, and how much memory of its own the tool takes."""
import json
import os
import resource
import struct
import subprocess
import time

from system import MIB, TENON, Skip, contents, is_sanitized, noise, run_tests, tenon, test, write_safetensors

LIMIT = 160 * MIB               # of address space: libraries and stacks take a third of it
LARGE = 4 * LIMIT + 5 * MIB
MOST = 64 * MIB + 256 * 1024    # of private memory: 64 MiB and a window


def need_limits():
    if is_sanitized():
        raise Skip("sanitizers need more address space than any limit")


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))


def limited(*arguments, **options):
    return tenon(*arguments, preexec_fn=limit, **options)


def on_fast_disk(folder):
    """Half a gigabyte is written: in memory where there is room."""
    try:
        s = os.statvfs("/dev/shm")
    except OSError:
        return folder
    if s.f_bavail * s.f_frsize < 4 * LARGE:
        return folder
    import atexit
    import shutil
    import tempfile
    fast = tempfile.mkdtemp(prefix="tenon-system-", dir="/dev/shm")
    atexit.register(shutil.rmtree, fast, ignore_errors=True)
    return fast


def make_large(folder, name="in.safetensors"):
    """One tensor that alone is larger than the limit, of zeroes that take no room, between small ones."""
    source = os.path.join(folder, name)
    write_safetensors(source, {"first": noise(1000), "large": LARGE - MIB, "last": noise(100_000)})
    return source


@test
def a_file_four_times_larger_than_the_address_space(folder):
    need_limits()
    fast = on_fast_disk(folder)
    source = make_large(folder)
    raw, packed, back = (os.path.join(fast, name) for name in ("raw.zt", "packed.zt", "back.safetensors"))
    assert os.path.getsize(source) >= 4 * LIMIT
    limited("ls", source)
    limited("convert", "--quiet", "--checksum", "crc32c", source, raw)
    limited("verify", raw)
    limited("diff", source, raw)
    os.remove(raw)
    limited("convert", "--quiet", "--compress", "zstd", "--checksum", "crc32c", source, packed)
    limited("verify", packed)
    limited("convert", "--quiet", packed, back)
    limited("diff", source, back)
    said = limited("ls", "--io", "mmap", source, code=3)
    assert f"tenon: {source}: cannot map: Cannot allocate memory" in said, said
    os.remove(back)
    return f"{LARGE // MIB} MiB within {LIMIT // MIB} MiB"


@test
def many_tensors_larger_together_than_the_address_space(folder):
    need_limits()
    fast = on_fast_disk(folder)
    source, out = os.path.join(folder, "in.safetensors"), os.path.join(fast, "out.zt")
    write_safetensors(source, {f"layer.{i}": 5 * MIB + i for i in range(LARGE // (5 * MIB))})
    limited("convert", "--quiet", source, out)
    limited("diff", source, out)
    limited("convert", "--quiet", "--force", "--compress", "zstd", source, out)
    limited("diff", source, out)


def peak_of(command):
    """The largest resident set of a run, from its accounting: for runs that map nothing."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, f"{command}: status {status}"
    process.returncode = 0
    return usage.ru_maxrss * 1024


def private_peak_of(command):
    """The largest private resident set seen while it runs: mapped pages of files are not ours."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    most = 0
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/status") as f:
                fields = dict(line.split(":", 1) for line in f)
            most = max(most, int(fields.get("RssAnon", "0 kB").split()[0]) * 1024)
        except (FileNotFoundError, ProcessLookupError):
            pass
        time.sleep(0.002)
    assert process.returncode == 0, f"{command}: exit {process.returncode}"
    return most


def check_memory(folder, tensors):
    if is_sanitized():
        raise Skip("sanitizers take memory of their own")
    fast = on_fast_disk(folder)
    source, out = os.path.join(folder, "in.safetensors"), os.path.join(fast, "out.zt")
    write_safetensors(source, tensors)
    found = []
    for options in (["--io", "pread"], ["--io", "pread", "--checksum", "crc32c", "--jobs", "4"]):
        found.append(peak_of([TENON, "convert", "--quiet", "--force", *options, source, out]))
    for options in (["--io", "mmap"], ["--io", "mmap", "--checksum", "sha256"]):
        found.append(private_peak_of([TENON, "convert", "--quiet", "--force", *options, source, out]))
    found.append(peak_of([TENON, "verify", "--io", "pread", out]))
    found.append(peak_of([TENON, "diff", "--io", "pread", source, out]))
    os.remove(out)
    assert max(found) < MOST, f"peaks {[f'{peak / MIB:.1f} MiB' for peak in found]}, expected below {MOST / MIB:.2f} MiB"
    return f"at most {max(found) / MIB:.1f} MiB"


@test
def memory_does_not_grow_with_a_tensor(folder):
    return check_memory(folder, {"small": noise(1000), "large": 700 * MIB})


@test
def memory_does_not_grow_with_the_number_of_tensors(folder):
    return check_memory(folder, {f"model.layers.{i}.weight": 70_000 for i in range(5000)})


@test
def compressing_takes_no_more_for_a_larger_tensor(folder):
    if is_sanitized():
        raise Skip("sanitizers take memory of their own")
    fast = on_fast_disk(folder)
    out = os.path.join(fast, "out.zt")
    peaks = []
    for size in (100, 400):
        source = os.path.join(folder, f"{size}.safetensors")
        write_safetensors(source, {"large": size * MIB})
        peaks.append(peak_of([TENON, "convert", "--quiet", "--force", "--io", "pread", "--compress", "zstd", source, out]))
    assert peaks[1] < peaks[0] * 1.2 + 4 * MIB, f"peaks {[f'{peak / MIB:.1f} MiB' for peak in peaks]}"
    return f"{peaks[0] / MIB:.1f} and {peaks[1] / MIB:.1f} MiB"


# ---- the index ----

MANY = 100_000                  # tensors without a byte of data: all memory is what is known of them
BASE = 12 * MIB                 # of a run with none


def write_many(path):
    empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    header = json.dumps({f"t{i}": empty for i in range(MANY)}, separators=(",", ":"))
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header.encode())
    return path


@test
def memory_for_each_tensor_is_bounded(folder):
    """In bytes, by command, with a fifth to spare."""
    if is_sanitized():
        raise Skip("sanitizers take memory of their own")
    most = {"convert": 1800, "cast": 1900, "describe": 1400, "ls": 850, "verify": 850, "stats": 1050,
            "diff": 1400}
    source, packed, out = (os.path.join(folder, name) for name in ("in.safetensors", "in.zt", "out.zt"))
    tenon("convert", "-q", write_many(source), packed)
    found = []
    for path in (source, packed):
        runs = {"convert": ["convert", "-q", "-f", path, out], "diff": ["diff", path, path],
                "cast": ["convert", "-q", "-f", "--cast", "bf16", path, out]}
        for name, limit in most.items():
            each = (peak_of([TENON, *runs.get(name, [name, path])]) - BASE) // MANY
            found.append(f"{name} {each}")
            assert each < limit, f"{name}: {each} bytes a tensor, expected below {limit}"
    return ", ".join(found)


@test
def very_many_descriptors_are_printed_as_one_document(folder):
    """They are printed in pieces: the text is that of the sidecar, which is made at once."""
    for count in (1000, 1001, 2000, 3456):
        path = os.path.join(folder, f"{count}.safetensors")
        write_safetensors(path, {f"t{i}": b"x" for i in range(count)})
        printed = subprocess.run([TENON, "describe", path], stdout=subprocess.PIPE, check=True).stdout
        tenon("describe", "-q", "--sidecar", path)
        assert printed == contents(path + ".wia.json") and len(json.loads(printed)) == count, count


run_tests()
