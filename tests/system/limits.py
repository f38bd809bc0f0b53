"""Limits that a user can meet, at the limit and one beyond: docs/limits.md has the table."""
import json
import os
import struct
import subprocess
import time

from system import TENON, run_tests, tenon, test, write_safetensors
from zt import write_zt

GIB = 1 << 30


def large_file(folder, name, size, begin=b"{"):
    """A file of that size without blocks on disk."""
    path = os.path.join(folder, name)
    with open(path, "wb") as f:
        f.write(begin)
        f.truncate(size)
    return path


def refused(expected, *arguments, code=1):
    said = tenon(*arguments, code=code)
    assert expected in said, said


@test
def a_safetensors_header_beyond_the_limit_is_not_written(folder):
    """100 names of a million bytes each fit an index of zTensor, but no header of safetensors."""
    source, out = os.path.join(folder, "in.zt"), os.path.join(folder, "out.safetensors")
    names = ["abcdefghij"[i // 10] + str(i % 10) + "x" * 1_000_000 for i in range(100)]
    write_zt(source, {name: (b"", 0) for name in names}, encoding="raw")
    refused("but safetensors allows 100000000", "convert", source, out)
    assert not os.path.exists(out)
    tenon("convert", "-q", "--only", "a*", source, out)


@test
def the_index_of_a_set_has_a_limit(folder):
    begin = b'{"metadata": {}, "weight_map": {"t": "m.safetensors"}}'
    path = large_file(folder, "m.safetensors.index.json", 100_000_001, begin)
    refused("an index of at most 100000000 bytes but found 100000001", "ls", "--from", "safetensors", path)
    refused("an index of at most 100000000 bytes but found 100000001", "ls", "--from", "pytorch", path)


@test
def a_document_of_descriptors_has_a_limit(folder):
    path = large_file(folder, "d.json", 100_000_001)
    refused("descriptors of at most 100000000 bytes but found 100000001", "ls", "--from", "raw", path)
    refused("expected at most 100000000 bytes but found more", "check", path)


@test
def a_tensor_has_less_than_2_to_the_59_bytes(folder):
    path = os.path.join(folder, "in.zt")
    write_zt(path, {"t": (b"\0" * 16, 1 << 59)})
    tenon("ls", path)
    write_zt(path, {"t": (b"\0" * 16, (1 << 59) + 1)})
    refused('tensor "t": its shape takes more than 2^59 bytes', "ls", path)


@test
def of_many_warnings_the_rest_is_counted(folder):
    """150 scalars of BTF whose reserved bytes are not 0."""
    path = os.path.join(folder, "in.btf")
    record = struct.pack("<QBB6sQ", 0, 0, 0, b"not 0!", 1)
    with open(path, "wb") as f:
        f.write(struct.pack("<151Q", 150, *(151 * 8 + i * len(record) for i in range(150))) + record * 150)
    said = tenon("ls", "--from", "btf", path)
    assert 'tensor "99"' in said and 'tensor "100"' not in said and "and 50 more" in said, said


@test
def no_byte_of_deflate_data_makes_more_than_1032(folder):
    path = os.path.join(folder, "in.npz")
    for decoded in (1032 * 21 - 1, 1032 * 21):
        fields = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 33, 0, 20, decoded, 5, 0)
        local = b"PK\3\4" + fields + b"t.npy" + b"\0" * 20
        central = b"PK\1\2" + struct.pack("<H", 20) + fields + struct.pack("<HHHII", 0, 0, 0, 0, 0) + b"t.npy"
        with open(path, "wb") as f:
            f.write(local + central + b"PK\5\6")
            f.write(struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(local), 0))
        said = tenon("ls", path, code=1)
        assert ("no 20 bytes of deflate data decode to 21672" in said) == (decoded == 1032 * 21), said


def try_to_serve(folder, tensors, expected, code=1):
    source, socket = os.path.join(folder, "in.safetensors"), os.path.join(folder, "s")
    write_safetensors(source, tensors)
    refused(expected, "serve", "-q", "--writable", "--socket", socket, source, code=code)
    assert not os.path.exists(socket)


@test
def an_offer_has_at_most_1024_items(folder):
    try_to_serve(folder, {f"t{i}": b"x" for i in range(1025)}, '"t1024" would be one more than the 1024 that')


@test
def the_name_of_an_item_has_at_most_1024_bytes(folder):
    try_to_serve(folder, {"n" * 1025: b"x"}, "a name of 1 to 1024 bytes of UTF-8 but found 1025 bytes", 2)
    source, socket = os.path.join(folder, "in.safetensors"), os.path.join(folder, "s")
    write_safetensors(source, {"n" * 1024: b"x"})
    server = subprocess.Popen([TENON, "serve", "-q", "--writable", "--socket", socket, source])
    try:
        deadline = time.monotonic() + 20
        while not os.path.exists(socket) and time.monotonic() < deadline:
            time.sleep(0.01)
        tenon("attach", socket)
    finally:
        server.terminate()
        assert server.wait() == 0


@test
def the_path_of_a_socket_has_at_most_107_bytes(folder):
    source = os.path.join(folder, "in.safetensors")
    write_safetensors(source, {"t": b"x"})
    said = "a path of 108 bytes: expected 1 to 107 for a socket"
    refused(said, "serve", "--socket", "s" * 108, source, code=2)


@test
def a_path_is_as_long_as_the_system_takes(folder):
    source, long = os.path.join(folder, "in.safetensors"), "/".join(["d" * 200] * 22)
    write_safetensors(source, {"t": b"x"})
    refused("cannot open: File name too long", "ls", long, code=3)
    refused("cannot open its folder: File name too long", "convert", source, long + "/o.zt", code=3)
    refused("cannot write: File name too long (nothing was replaced)", "convert", source, "n" * 300 + ".zt", code=3)


@test
def data_is_aligned_to_at_most_a_gigabyte(folder):
    source = os.path.join(folder, "in.safetensors")
    write_safetensors(source, {"t": b"x"})
    out = os.path.join(folder, "o.zt")
    refused("a power of two from 64 to 2^30 but found 2147483648", "convert", "--align", "2G", source, out, code=2)
    tenon("convert", "-q", "--dry-run", "--align", "1G", source, out)


def write_floats(path, count, names):
    """Zeros without blocks on disk."""
    size = 4 * count
    header = json.dumps({name: {"dtype": "F32", "shape": [count], "data_offsets": [size * i, size * (i + 1)]}
                         for i, name in enumerate(names)}).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header)
        f.truncate(8 + len(header) + 4 * count * len(names))
    return path


@test
def what_microcontrollers_count_has_a_limit(folder):
    path = os.path.join(folder, "in.safetensors")
    plan = ["export-c", "--mli", "2.0", "--plan"]
    refused("MLI 2.0 counts at most 2147483647 bytes", *plan, write_floats(path, GIB // 2, ["t"]))
    refused("an image of 4831838208 bytes: expected at most 4294967295", *plan, "--binary",
            write_floats(path, 3 * GIB // 8, ["t", "u", "v"]))


run_tests()
