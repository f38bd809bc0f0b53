"""tests/system/zt.py - zTensor files made and read by hand."""
import os
import struct


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


def write_zt(path, tensors, dtype="uint8", shape=None, hole=0, encoding="zstd",
             shared=False):
    """tensors: name -> (bytes that are stored, bytes they decode to); a hole may lie before them.
    shared: the bytes of the first are those of all."""
    data, entries = b"ZTEN0001" + b"\0" * 56, []
    width = 4 if dtype == "float32" else 1
    for name, (stored, size) in tensors.items():
        if shared and entries:
            entries.append({**entries[0], "name": name})
            continue
        data += b"\0" * (-len(data) % 64)
        entries.append({"name": name, "offset": hole + len(data), "size": len(stored), "dtype": dtype,
                        "shape": shape or [size // width], "encoding": encoding})
        data += stored
    index = cbor(entries)
    with open(path, "wb") as f:
        f.write(data[:64])
        f.seek(hole, os.SEEK_CUR)
        f.write(data[64:] + index + struct.pack("<Q", len(index)))
    return path


def read_cbor(data, at=0):
    """One item, and where the next begins.  Strings in chunks, tags and floats are not expected."""
    major, n = data[at] >> 5, data[at] & 31
    at += 1
    if major == 7:
        return {20: False, 21: True, 22: None}[n], at
    if 24 <= n < 31:
        width = 1 << (n - 24)
        n, at = int.from_bytes(data[at:at + width], "big"), at + width
    if major in (0, 1):
        return (n if major == 0 else -1 - n), at
    if major in (2, 3):
        text = data[at:at + n]
        return (text if major == 2 else text.decode()), at + n
    items = []
    most = n if major == 4 else 2 * n
    while (data[at] != 255) if n == 31 else len(items) < most:
        item, at = read_cbor(data, at)
        items.append(item)
    at += n == 31
    return (items if major == 4 else dict(zip(items[::2], items[1::2]))), at


def read_zt(path):
    """The entries of a file that Tenon wrote, by name: their fields, and the bytes that are stored."""
    with open(path, "rb") as f:
        data = f.read()
    n, = struct.unpack("<Q", data[-8:])
    entries = read_cbor(data[-8 - n:-8])[0]
    return {e["name"]: (e, data[e["offset"]:e["offset"] + e["size"]]) for e in entries}
