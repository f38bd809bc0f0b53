"""make.py: the IDX files of this folder, packed number by number, and arrays.tsv, which has what is in them."""
import hashlib
import math
import pathlib
import struct

HERE = pathlib.Path(__file__).parent
TYPES = {                       # name: (code in the file, letter for struct)
    "uint8": (0x08, "B"), "int8": (0x09, "b"), "int16": (0x0b, "h"), "int32": (0x0c, "i"), "float32": (0x0d, "f"), "float64": (0x0e, "d"),
}
ARRAYS = [                      # file, tensor, type, shape, elements
    ("digits-idx3-ubyte", "digits", "uint8", (2, 3, 4), range(10, 250, 10)),
    ("digits.idx1-ubyte", "digits", "uint8", (2,), (7, 2)),
    ("int8.idx", "int8", "int8", (3,), (-128, 0, 127)),
    ("int16.idx", "int16", "int16", (2, 3), (-32768, -2, -1, 0, 258, 32767)),
    ("int32.idx", "int32", "int32", (2, 1, 2, 1), (-2147483648, -1, 16909060, 2147483647)),
    ("float32.idx", "float32", "float32", (1, 2, 3), (0.5, -1.25, 2.0**-149, math.inf, -0.0, 3.4028234663852886e38)),
    ("float64.idx", "float64", "float64", (5,), (1 / 3, -math.inf, 5e-324, -0.0, 1e300)),
    ("scalar.idx", "scalar", "int16", (), (258,)),
    ("nothing.idx", "nothing", "float32", (3, 0, 2), ()),
]

with open(HERE / "arrays.tsv", "w") as table:
    print("# file, tensor, type, shape, SHA-256 of the elements in rows, little-endian", file=table)
    for file, tensor, name, shape, elements in ARRAYS:
        code, letter = TYPES[name]
        elements = list(elements)
        header = struct.pack(f">BBBB{len(shape)}I", 0, 0, code, len(shape), *shape)
        (HERE / file).write_bytes(header + struct.pack(f">{len(elements)}{letter}", *elements))
        digest = hashlib.sha256(struct.pack(f"<{len(elements)}{letter}", *elements)).hexdigest()
        print(file, tensor, name, ",".join(map(str, shape)) or "-", digest, sep="\t", file=table)
