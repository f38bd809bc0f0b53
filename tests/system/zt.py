"""tests/system/zt.py - zTensor files made by hand."""
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
