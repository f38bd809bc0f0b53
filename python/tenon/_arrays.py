"""Arrays of other packages: NumPy, ml_dtypes, torch and whatever has DLPack.  All of them are optional."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from . import _core

if TYPE_CHECKING:
    from ._tensor import Tensor

# {name: (bits, kind, NumPy's or ml_dtypes' name, torch's, safetensors', short)}
TYPES = _core.types()

# What NumPy has itself, by its type string without byte order; fixed point as the integers that are stored.
PLAIN = {name: row[2][1:] for name, row in TYPES.items() if row[2] and row[2][0] in "<|"}
PLAIN |= {"tf32": "f4", "fx8": "i1", "fx16": "i2"}
BY_STRING = {code: name for name, code in PLAIN.items() if name not in ("tf32", "fx8", "fx16")}
BY_ML_NAME = {row[2]: name for name, row in TYPES.items() if row[2] and row[2][0] not in "<|"}
ML_NAMES = {name: row[2] for name, row in TYPES.items() if row[2] and row[2][0] not in "<|"}


def numpy() -> Any:
    """The package numpy, with a message where it is not installed."""
    try:
        import numpy as np
    except ImportError as missing:
        raise ImportError(
            "NumPy is needed for arrays: pip install numpy (memoryview(tensor) works without)"
        ) from missing
    return np


def ml_type(name: str) -> Any:
    """The dtype of ml_dtypes for one of our types, or None."""
    try:
        import ml_dtypes
    except ImportError:
        return None
    kind = getattr(ml_dtypes, ML_NAMES[name], None)
    return None if kind is None else numpy().dtype(kind)


def numpy_type(name: str) -> Any:
    """The NumPy dtype whose arrays hold one of our types: of integers where ml_dtypes is not installed."""
    np = numpy()
    if name in PLAIN:
        return np.dtype(PLAIN[name])
    kind = ml_type(name)
    return kind if kind is not None else np.dtype("u2" if TYPES[name][0] == 16 else "u1")


def unpacked(packed: Any, name: str, shape: tuple[int, ...]) -> Any:
    """Elements narrower than a byte, one a byte, as ml_dtypes keeps them."""
    np = numpy()
    bits, kind = TYPES[name][:2]
    codes = np.empty(shape, np.uint8)
    _core.unpack(memoryview(codes).cast("B") if codes.size else bytearray(), packed, bits, kind == "int")
    return codes.view(numpy_type(name))


def read(tensor: Tensor, name: str) -> Any:
    """All values of a tensor of any form as a new array of a type."""
    np = numpy()
    bits = TYPES[name][0]
    if bits < 8:
        size = (tensor.size * bits + 7) // 8
        packed = bytearray(size)
        tensor.read_into(packed, name)
        return unpacked(packed, name, tensor.shape)
    kind = numpy_type(name)
    array = np.empty(tensor.shape, kind)
    tensor.read_into(bytes_of(array), name)
    return array


def bytes_of(array: Any) -> Any:
    """The bytes of a dense array; ml_dtypes' own types have no buffers."""
    np = numpy()
    return array.reshape(-1).view(np.uint8) if array.size else bytearray()


def type_of(dtype: Any) -> str:
    """Our name of a NumPy or ml_dtypes dtype."""
    found = BY_STRING.get(dtype.str[1:]) or BY_ML_NAME.get(dtype.name)
    if not found:
        raise TypeError(f"no type for arrays of {dtype}")
    return found


def packed(array: Any, name: str) -> Any:
    """The bytes of a NumPy array as files have them."""
    np = numpy()
    array = np.ascontiguousarray(array)
    if array.dtype.byteorder == (">" if sys.byteorder == "little" else "<"):
        array = array.astype(array.dtype.newbyteorder("="))
    bits = TYPES[name][0]
    if bits >= 8:
        return bytes_of(array)
    target = bytearray((array.size * bits + 7) // 8)
    _core.pack(target, bytes_of(array), bits)
    return target


def is_numpy(value: Any) -> bool:
    """Whether it is an array or a scalar of NumPy; does not import NumPy."""
    np = sys.modules.get("numpy")
    return np is not None and isinstance(value, (np.ndarray, np.generic))


def is_torch(value: Any) -> bool:
    """Whether it is a tensor of torch; does not import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def torch_type(name: str) -> Any:
    """torch's dtype of one of our types; TypeError where it has none."""
    import torch

    kind = getattr(torch, TYPES[name][3] or "", None)
    if kind is None or TYPES[name][0] < 8:
        raise TypeError(f"torch has no elements of {name}: use values() or packed()")
    return kind


def from_torch(value: Any, name: str) -> Tensor:
    """A torch tensor as one of ours, without a copy where it is dense and on the CPU."""
    import torch

    value = value.detach().cpu().contiguous()
    kind = str(value.dtype).removeprefix("torch.")
    kind = {"half": "float16", "double": "float64"}.get(kind, kind)
    ours = [known for known, row in TYPES.items() if row[3] == kind]
    if not ours or TYPES[ours[0]][0] < 8:
        raise TypeError(f"no type for torch tensors of {value.dtype}")
    shape = tuple(value.shape)
    raw = value.reshape(-1).view(torch.uint8) if value.numel() else None
    data = bytearray() if raw is None else memoryview(_core.from_dlpack(raw.__dlpack__()))
    return _core.tensor(name, "dense", ours[0], shape, (("data", ours[0], shape, data),), None, None)


def from_buffer(value: Any, name: str) -> Tensor:
    """Anything with a buffer."""
    view = memoryview(value)
    code = view.format.lstrip("@=<") if view.format else "B"
    if view.format and view.format[0] in ">!":
        raise TypeError("expected elements in the byte order of this machine")
    letters = {
        "d": "float64",
        "f": "float32",
        "e": "float16",
        "?": "bool",
        "Zf": "complex64",
        "Zd": "complex128",
    }
    if code in letters:
        kind = letters[code]
    elif len(code) == 1 and code in "bhilqnBHILQNc":
        kind = ("int" if code.islower() and code != "c" else "uint") + str(8 * view.itemsize)
    else:
        raise TypeError(f"no type for buffers of format {view.format!r}")
    if not view.c_contiguous:
        view = memoryview(view.tobytes()).cast("B")
        shape = tuple(memoryview(value).shape or ())
    else:
        shape = tuple(view.shape or ())
    return _core.tensor(name, "dense", kind, shape, (("data", kind, shape, view),), None, None)


def as_tensor(value: Any, name: str = "") -> Tensor:
    """Any array as a Tensor: a Tensor, NumPy, torch, DLPack, a buffer, a number or nested lists."""
    if isinstance(value, _core.Tensor):
        return value  # type: ignore[return-value]
    if is_numpy(value):
        kind, shape = type_of(value.dtype), value.shape
        return _core.tensor(
            name, "dense", kind, shape, (("data", kind, shape, packed(value, kind)),), None, None
        )
    if is_torch(value):
        return from_torch(value, name)
    if hasattr(value, "__dlpack__"):
        try:
            capsule = value.__dlpack__(max_version=(1, 0))
        except TypeError:
            capsule = value.__dlpack__()
        return _core.from_dlpack(capsule)
    if isinstance(value, (int, float, complex, list, tuple)):
        return as_tensor(numpy().asarray(value), name)
    return from_buffer(value, name)
