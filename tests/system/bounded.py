"""Small files that decode to very much: the memory for windows is one budget, and what is kept has a limit."""
import os
import struct
import subprocess
import zlib

from system import MIB, TENON, Skip, is_sanitized, run_tests, tenon, test

BLOCK = 128 * 1024              # the most that a block of zstd data decodes to
ALL = (1, 2, 8)                 # numbers of threads


# ---- files ----

def cbor(value):
    def head(major, n):
        if n < 24:
            return bytes([major << 5 | n])
        return bytes([major << 5 | 27]) + struct.pack(">Q", n)
    if isinstance(value, int):
        return head(0, value)
    if isinstance(value, str):
        return head(3, len(value)) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(cbor, value))
    return head(5, len(value)) + b"".join(cbor(key) + cbor(item) for key, item in value.items())


def frame(size, exponent, known=False, byte=0):
    """A zstd frame of `size` equal bytes, a multiple of BLOCK, with a window of 2^exponent."""
    header = b"\x28\xb5\x2f\xfd" + (bytes([0xc0, exponent - 10 << 3]) + struct.pack("<Q", size) if known else bytes([0, exponent - 10 << 3]))
    count = size // BLOCK
    return header + b"".join(struct.pack("<I", BLOCK << 3 | 2 | (i == count - 1))[:3] + bytes([byte]) for i in range(count))


def write_zt(path, tensors, places=None):
    """tensors: name -> (bytes that are stored, size); a name in `places` has the bytes of that other one."""
    data, entries, at = b"ZTEN0001" + b"\0" * 56, [], {}
    for name, (stored, size) in tensors.items():
        twin = (places or {}).get(name)
        if twin is None:
            data += b"\0" * (-len(data) % 64)
            at[name] = len(data)
            data += stored
        entries.append({"name": name, "offset": at[twin or name], "size": len(stored), "dtype": "uint8", "shape": [size], "encoding": "zstd"})
    index = cbor(entries)
    with open(path, "wb") as f:
        f.write(data + index + struct.pack("<Q", len(index)))
    return path


# ---- windows ----

def peak_of(*arguments, code=0):
    """The largest resident set of a run."""
    process = subprocess.Popen([TENON, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == code, f"{arguments}: exit {process.returncode}: {said}"
    return usage.ru_maxrss * 1024


def hungry(folder, name="hungry.zt", exponents=(27,) * 8):
    """Tensors of a few kilobytes with windows of 128 MiB, all of which is written to."""
    return write_zt(os.path.join(folder, name), {f"t{i}": (frame(1 << e, e), 1 << e) for i, e in enumerate(exponents)})


def need_figures():
    if is_sanitized():
        raise Skip("sanitizers take memory of their own")


@test
def windows_of_all_threads_stay_within_one_budget(folder):
    need_figures()
    source = hungry(folder)
    assert os.path.getsize(source) < 40_000
    found = [peak_of("verify", "-j8", source), peak_of("stats", "-j8", source), peak_of("diff", "-j8", source, source),
             peak_of("convert", "-q", "-f", "--compress", "zstd", "-j8", source, os.path.join(folder, "out.zt")),
             peak_of("verify", "-j8", "--memory", "128M", source)]
    text = f"{[f'{peak // MIB} MiB' for peak in found]}"
    assert max(found[:3]) < (256 + 32) * MIB and found[4] < (128 + 32) * MIB, text
    assert found[3] < (256 + 160) * MIB, text           # with encoders, which are not counted
    return text


@test
def threads_that_wait_for_windows_get_them(folder):
    need_figures()
    source = hungry(folder, exponents=(20, 27, 24, 27, 22, 26, 25, 23, 27, 20, 24, 27))
    for jobs in ALL:
        peak = peak_of("diff", "-j", str(jobs), source, source)
        assert peak < (256 + 96) * MIB, f"{peak // MIB} MiB"


@test
def a_window_above_the_budget_is_refused_with_both_sizes(folder):
    source = hungry(folder, exponents=(29,))
    said = tenon("stats", source, code=1)
    assert 'tensor "t0": zstd data needs a window of 536870912 bytes, more than the 268435456 allowed (--memory)' in said, said
    said = tenon("stats", "--memory", "1M", hungry(folder, exponents=(21,)), code=1)
    assert "2097152 bytes, more than the 1048576 allowed (--memory)" in said, said
    two = hungry(folder, exponents=(27,))
    said = tenon("diff", "--memory", "200M", two, two, code=1)
    assert "268435456 bytes, more than the 209715200 allowed (--memory)" in said, said
    tenon("verify", "--memory", "200M", two)


run_tests()
