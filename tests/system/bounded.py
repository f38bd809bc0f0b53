"""Small files that decode to very much: the memory for windows is one budget, and what is kept has a limit."""
import os
import struct
import subprocess
import time
import zlib

from system import MIB, TENON, Skip, is_sanitized, run_tests, tenon, test, write_safetensors
from zt import write_zt

BLOCK = 128 * 1024              # the most that a block of zstd data decodes to
ALL = (1, 2, 8)                 # numbers of threads


# ---- files ----

def frame(size, exponent, known=False, byte=0):
    """A zstd frame of `size` equal bytes, a multiple of BLOCK, with a window of 2^exponent."""
    header = b"\x28\xb5\x2f\xfd" + (bytes([0xc0, exponent - 10 << 3]) + struct.pack("<Q", size) if known else bytes([0, exponent - 10 << 3]))
    count = size // BLOCK
    return header + b"".join(struct.pack("<I", BLOCK << 3 | 2 | (i == count - 1))[:3] + bytes([byte]) for i in range(count))


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


# ---- data that is kept ----

GIB = 1 << 30
REFUSED = " allowed (--max-bytes)"


def zeros_npz(path, size):
    """A deflated member of zeros: pieces that end in a full flush can follow each other."""
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }" % size
    header = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.ljust(117) + b"\n"
    piece, zeros = zlib.compressobj(9, zlib.DEFLATED, -15), bytes(16 * MIB)
    first = piece.compress(header) + piece.flush(zlib.Z_FULL_FLUSH)
    again = piece.compress(zeros) + piece.flush(zlib.Z_FULL_FLUSH)
    stored = first + again * (size // len(zeros)) + piece.flush(zlib.Z_FINISH)
    crc = zlib.crc32(header)
    for _ in range(size // len(zeros)):
        crc = zlib.crc32(zeros, crc)
    fields = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 33, crc, len(stored), len(header) + size, 5, 0)
    local = b"PK\3\4" + fields + b"t.npy"
    central = b"PK\1\2" + struct.pack("<H", 20) + fields + struct.pack("<HHHII", 0, 0, 0, 0, 0) + b"t.npy"
    end = b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(local) + len(stored), 0)
    with open(path, "wb") as f:
        f.write(local + stored + central + end)
    return path


def bombs(folder):
    """A zstd bomb, one of several pieces, and a deflate bomb, all of 2 GiB."""
    one, two, npz = (os.path.join(folder, name) for name in ("one.zt", "two.zt", "t.npz"))
    write_zt(one, {"t": (frame(2 * GIB, 20), 2 * GIB)})
    write_zt(two, {name: (frame(GIB, 20), GIB) for name in "tu"})
    assert os.path.getsize(one) < 70_000
    return one, two, zeros_npz(npz, 2 * GIB)


def refused(folder, *arguments):
    """Exit 1 with a sentence, little memory, and nothing new in the folder."""
    before = sorted(os.listdir(folder))
    said = tenon(*arguments, code=1)
    assert REFUSED in said, said
    assert sorted(os.listdir(folder)) == before, f"left behind: {os.listdir(folder)}"
    if not is_sanitized():
        peak = peak_of(*arguments, code=1)
        assert peak < 64 * MIB, f"{arguments}: {peak // MIB} MiB"


@test
def convert_does_not_write_a_bomb(folder):
    for source in bombs(folder):
        for out in ("o.safetensors", "o.npz", "o.json"):
            refused(folder, "convert", source, os.path.join(folder, out), "--drop-metadata")
        refused(folder, "convert", "--compress", "none", source, os.path.join(folder, "o.zt"))
        out = os.path.join(folder, "o.safetensors")
        tenon("convert", "-q", "--dry-run", "--max-bytes", "2G", source, out)


@test
def what_stays_compressed_is_no_bomb(folder):
    for source in bombs(folder)[:2]:
        tenon("convert", "-q", "-f", source, os.path.join(folder, "o.zt"))
        assert os.path.getsize(os.path.join(folder, "o.zt")) < 200_000


@test
def serve_does_not_fill_memory_with_a_bomb(folder):
    socket = os.path.join(folder, "s")
    for source in bombs(folder):
        refused(folder, "serve", "--socket", socket, source)
        refused(folder, "serve", "--writable", "--socket", socket, source)


@test
def bombs_can_be_looked_at(folder):
    one, two, npz = bombs(folder)
    for source in (one, npz):
        for command in ("ls", "verify", "stats"):
            peak = peak_of(command, source)
            assert is_sanitized() or peak < 64 * MIB, f"{command}: {peak // MIB} MiB"
        tenon("show", source, "t", "--slice", "0:3")
    tenon("diff", one, one)


@test
def export_c_does_not_write_a_bomb(folder):
    size = 5 * GIB // 4
    source = write_zt(os.path.join(folder, "f.zt"), {"t": (frame(size, 20), size)}, dtype="float32")
    refused(folder, "export-c", "--mli", "2.0", "-o", os.path.join(folder, "c"), "--binary", source)
    tenon("export-c", "--mli", "2.0", "--plan", "--max-bytes", "2G", source)


def limited(*arguments):
    """Every command has the option, and it is its limit that is said."""
    said = tenon(*arguments, "--max-bytes", "1000", code=1)
    assert "more than the 1000 allowed (--max-bytes)" in said, said
    tenon(*arguments, "--max-bytes", "1G")


@test
def what_other_commands_keep_has_the_limit_too(folder):
    plain, codes, scales, coo = (os.path.join(folder, name) for name in ("f.zt", "mx.zt", "i8.zt", "coo.zt"))
    write_zt(plain, {"t": (frame(MIB, 20), MIB)}, dtype="float32", shape=[MIB // 16, 4])
    tenon("convert", "-q", "--cast", "mxfp4", plain, codes)
    tenon("convert", "-q", "--cast", "i8,per=channel,axis=0", plain, scales)
    limited("compare-types", "--types", "mxfp4", plain)
    limited("stats", codes)
    limited("show", codes, "t")
    limited("stats", scales)
    limited("describe", scales)
    limited("convert", "-q", "-f", "--compress", "zstd", "--cast", "f32", scales, os.path.join(folder, "o.zt"))
    limited("convert", "-q", "-f", "--compress", "zstd", "--layout", "BA,from=AB", plain,
            os.path.join(folder, "o.zt"))
    said = tenon("diff", "--max-bytes", "1000", scales, plain, code=1)
    assert "more than the 1000 allowed (--max-bytes)" in said, said
    write_zt(plain, {"t": (frame(MIB, 20, byte=1), MIB)}, dtype="uint8", shape=[1024, 1024])
    tenon("convert", "-q", "--form", "coo", plain, coo)
    limited("describe", coo)


@test
def attach_does_not_save_a_bomb(folder):
    one, _, _ = bombs(folder)
    socket = os.path.join(folder, "s")
    server = subprocess.Popen([TENON, "serve", "-q", "--in-place", "--socket", socket, one])
    try:
        deadline = time.monotonic() + 20
        while not os.path.exists(socket) and time.monotonic() < deadline:
            time.sleep(0.01)
        refused(folder, "attach", "--in-place", "-o", os.path.join(folder, "o.safetensors"), socket)
    finally:
        server.terminate()
        server.wait()


@test
def bytes_that_tensors_share_count_once(folder):
    source, out = os.path.join(folder, "tied.zt"), os.path.join(folder, "o.safetensors")
    ones = b"\1" * MIB
    write_zt(source, {f"t{i}": (ones, MIB) for i in range(3000)}, encoding="raw", shared=True)
    assert os.path.getsize(source) < 2 * MIB
    refused(folder, "convert", source, out)
    refused(folder, "convert", source, os.path.join(folder, "o.npz"), "--drop-metadata")
    tenon("convert", "-q", "--dry-run", "--max-bytes", "3G", source, out)
    tenon("convert", "-q", "--dry-run", "--only", "t1??", source, out)
    size, skipped = 225 * BLOCK, bytes(BLOCK // 4)
    skippable = bytes.fromhex("502a4d18") + struct.pack("<I", len(skipped)) + skipped
    stored = frame(size, 20) + skippable        # less than 1000 times as much, each
    write_zt(source, {f"t{i}": (stored, size) for i in range(100)}, shared=True)
    assert size < 1000 * len(stored) and os.path.getsize(source) < 50_000
    refused(folder, "convert", source, out)


@test
def zeros_below_a_gigabyte_are_written(folder):
    source = write_zt(os.path.join(folder, "honest.zt"), {"t": (frame(900 * MIB, 20), 900 * MIB)})
    out = os.path.join(folder, "o.safetensors")
    tenon("convert", "-q", source, out)
    assert os.path.getsize(out) > 900 * MIB


@test
def holes_of_a_file_count_as_the_bytes_they_stand_for_and_no_others(folder):
    raw = os.path.join(folder, "raw.safetensors")
    write_safetensors(raw, {"t": 3 * GIB})
    tenon("convert", "-q", "--dry-run", raw, os.path.join(folder, "o.zt"))      # it does not grow
    source = os.path.join(folder, "apart.zt")
    write_zt(source, {"t": (frame(2 * GIB, 20), 2 * GIB)}, hole=3 * GIB)
    assert os.path.getsize(source) > 3 * GIB
    refused(folder, "convert", source, os.path.join(folder, "o.safetensors"))


# ---- many tensors ----

@test
def an_index_of_many_tensors_takes_a_few_times_its_size(folder):
    """Empty tensors with short names: there is nothing to remember but the index."""
    need_figures()
    entries = ",".join(f'"{i}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}' for i in range(400_000))
    header = ("{" + entries + "}").encode()
    many = os.path.join(folder, "many.safetensors")
    with open(many, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
    outs = [os.path.join(folder, out) for out in ("o.safetensors", "o.zt")]
    peaks = [peak_of("verify", many)] + [peak_of("convert", "-q", many, out) for out in outs]
    times = [(peak - 5 * MIB) / len(header) for peak in peaks]      # without that of an empty run
    text = f"{times[0]:.1f} to read, {times[1]:.1f} and {times[2]:.1f} to convert"
    assert times[0] <= 6 and max(times) <= 10, text
    return text


run_tests()
