"""In place of the package safetensors: the same names, the same arguments.

    from tenon.safetensors import safe_open, save_file, load_file
    from tenon.safetensors.torch import load_file, save_model

Arrays and tensors that are loaded share the pages of the file until somebody writes into them.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import struct
import sys
import tempfile
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Iterable, Mapping, Sequence

from .. import _arrays
from .._core import VERSION as __version__
from .._errors import Error
from .._file import File, open as _open

if TYPE_CHECKING:
    from collections.abc import Buffer  # type: ignore[attr-defined, unused-ignore]


class SafetensorError(Exception):
    """What safetensors raises."""


# Types by their names in headers, in the order of files: wide ones first.
_ORDER = (
    "U64",
    "I64",
    "F64",
    "C64",
    "F32",
    "U32",
    "I32",
    "BF16",
    "F16",
    "U16",
    "I16",
    "F8_E5M2FNUZ",
    "F8_E4M3FNUZ",
    "F8_E8M0",
    "F8_E4M3",
    "F8_E5M2",
    "I8",
    "U8",
    "F6_E3M2",
    "F6_E2M3",
    "F4",
    "BOOL",
)
_NAMES = {row[4]: name for name, row in _arrays.TYPES.items() if row[4]}
_CODES = {
    spelling: row[4]
    for name, row in _arrays.TYPES.items()
    if row[4]
    for spelling in (name, row[2] if row[2] and row[2][0] not in "<|" else None, row[3])
    if spelling
}
_FRAMEWORKS = {"np": "np", "numpy": "np", "pt": "pt", "torch": "pt", "pytorch": "pt"}
_BACKENDS = {"mmap": "mmap", "pread": "pread"}


class TensorSpec:
    """One tensor that is to be written: its type, its shape and where its bytes are."""

    __slots__ = ("data_len", "data_ptr", "dtype", "shape")

    def __init__(self, *, dtype: str, shape: Sequence[int], data_ptr: int, data_len: int) -> None:
        if dtype not in _CODES:
            raise SafetensorError(f"unknown dtype {dtype!r}")
        self.dtype = _CODES[dtype]
        self.shape = [int(extent) for extent in shape]
        if dtype.endswith("_x2") and self.shape:  # an element of the framework is two of ours
            self.shape[-1] *= 2
        self.data_ptr = data_ptr
        self.data_len = data_len

    def __repr__(self) -> str:
        return f"TensorSpec(dtype={self.dtype!r}, shape={self.shape}, data_len={self.data_len})"

    def _bytes(self) -> Any:
        if not self.data_len:
            return b""
        return memoryview((ctypes.c_ubyte * self.data_len).from_address(self.data_ptr)).cast("B")


def _layout(specs: Mapping[str, TensorSpec], metadata: Mapping[str, str] | None) -> tuple[bytes, list[Any]]:
    """The header, and the data in its order."""
    for spec in specs.values():
        if not isinstance(spec, TensorSpec):
            raise TypeError("expected TensorSpecs")
    header: dict[str, Any] = {}
    if metadata is not None:
        header["__metadata__"] = dict(metadata)
    pieces, at = [], 0
    for name in sorted(specs, key=lambda name: (_ORDER.index(specs[name].dtype), name)):
        spec = specs[name]
        count = 1
        for extent in spec.shape:
            count *= extent
        if 8 * spec.data_len != count * _arrays.TYPES[_NAMES[spec.dtype]][0]:
            raise SafetensorError(
                f"tensor {name!r}: {spec.data_len} bytes do not make {spec.dtype} {spec.shape}"
            )
        header[name] = {"dtype": spec.dtype, "shape": spec.shape, "data_offsets": [at, at + spec.data_len]}
        pieces.append(spec._bytes())
        at += spec.data_len
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text, pieces


def serialize(tensor_dict: Mapping[str, TensorSpec], metadata: Mapping[str, str] | None = None) -> bytes:
    """The bytes of a file."""
    header, pieces = _layout(tensor_dict, metadata)
    return b"".join([header, *pieces])


def serialize_file(
    tensor_dict: Mapping[str, TensorSpec],
    filename: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write a file, which appears whole or not at all."""
    header, pieces = _layout(tensor_dict, metadata)
    folder = os.path.dirname(os.path.abspath(filename))
    number, temporary = tempfile.mkstemp(dir=folder, prefix=".safetensors-")
    try:
        mask = os.umask(0)
        os.umask(mask)
        os.fchmod(number, 0o666 & ~mask)
        with os.fdopen(number, "wb", buffering=0) as file:
            for piece in (header, *pieces):
                view = memoryview(piece)
                while view:
                    view = view[file.write(view) :]
        os.replace(temporary, filename)
    except BaseException:
        os.unlink(temporary)
        raise


def _parse(head: Any) -> tuple[dict[str, str] | None, dict[str, Any], int]:
    """Metadata, entries and the place of the data, of a header that the library has checked."""
    size = struct.unpack("<Q", head[:8])[0]
    header = json.loads(bytes(head[8 : 8 + size]))
    return header.pop("__metadata__", None), header, 8 + size


def deserialize(data: Buffer) -> list[tuple[str, dict[str, Any]]]:
    """All tensors of the bytes of a file: [(name, {"shape", "dtype", "data"})]."""
    try:
        _open(data if isinstance(data, bytes) else bytes(data), format="safetensors").close()
    except (Error, OSError) as wrong:
        raise SafetensorError(f"Error while deserializing: {wrong}") from None
    _, entries, begin = _parse(memoryview(data))
    return [
        (
            name,
            {
                "shape": row["shape"],
                "dtype": row["dtype"],
                "data": bytearray(
                    memoryview(data)[begin + row["data_offsets"][0] : begin + row["data_offsets"][1]]
                ),
            },
        )
        for name, row in entries.items()
    ]


class safe_open:  # noqa: N801
    """Opens a file and gives its tensors as asked.

    framework: "np" or "pt"; device: of torch tensors; backend: "mmap" or "pread"
    """

    def __init__(
        self, filename: str | os.PathLike[str], framework: str, device: Any = "cpu", *, backend: str = "mmap"
    ) -> None:
        try:
            file = open(filename, "rb")
        except FileNotFoundError:
            raise FileNotFoundError(f"No such file or directory: {os.fspath(filename)}") from None
        with file:
            self._begin(file, framework, device, backend)

    def _begin(self, file: IO[bytes], framework: str, device: Any, backend: str) -> None:
        if framework not in _FRAMEWORKS:
            raise SafetensorError(f"framework {framework} is invalid (expected np or pt)")
        if backend not in _BACKENDS:
            raise SafetensorError(f"backend {backend} is invalid (expected mmap or pread)")
        self._framework = _FRAMEWORKS[framework]
        self._device = device
        self._file: File | None = None
        self._map: Any = None
        try:
            self._file = _open(file, format="safetensors", io="auto" if backend == "mmap" else "pread")
        except (Error, ValueError) as wrong:
            raise SafetensorError(f"Error while deserializing header: {wrong}") from None
        head = os.pread(file.fileno(), 8, 0)
        head += os.pread(file.fileno(), struct.unpack("<Q", head)[0], 8)
        self._meta, self._entries, self._data = _parse(head)
        if backend == "mmap":  # private: writing changes nobody else's
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        else:
            self._fd = os.dup(file.fileno())

    def __enter__(self) -> safe_open:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
        if self._file is not None and self._map is None:
            os.close(self._fd)
        self._file = None
        self._map = None

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self.__exit__(None, None, None)

    def _open_entries(self) -> dict[str, Any]:
        if self._file is None:
            raise SafetensorError("File is closed")
        return self._entries

    def keys(self) -> list[str]:
        """The names of all tensors, sorted."""
        return sorted(self._open_entries())

    def offset_keys(self) -> list[str]:
        """The names of all tensors, in the order of their data."""
        entries = self._open_entries()
        return sorted(entries, key=lambda name: entries[name]["data_offsets"][0])

    def metadata(self) -> dict[str, str] | None:
        """The metadata of the file, or None."""
        self._open_entries()
        return self._meta

    def _row(self, name: str) -> dict[str, Any]:
        try:
            return self._open_entries()[name]  # type: ignore[no-any-return]
        except KeyError:
            raise SafetensorError(f"File does not contain tensor {name}") from None

    def _bytes(self, row: dict[str, Any]) -> tuple[Any, int]:
        """A writable buffer, and where the data begins in it."""
        first, last = row["data_offsets"]
        if self._map is not None:
            return self._map, self._data + first
        target = bytearray(last - first)
        view = memoryview(target)
        at = self._data + first
        while view:
            n = os.preadv(self._fd, [view], at)
            if not n:
                raise SafetensorError("the file was truncated")
            view, at = view[n:], at + n
        return target, 0

    def get_tensor(self, name: str) -> Any:
        """One tensor."""
        row = self._row(name)
        make = _numpy_array if self._framework == "np" else self._torch_tensor
        return make(*self._bytes(row), row)

    def _torch_tensor(self, buffer: Any, offset: int, row: dict[str, Any]) -> Any:
        from .torch import _from_bytes

        made = _from_bytes(buffer, offset, row)
        return made if self._device in ("cpu", None) else made.to(self._device)

    def get_tensors(self, names: Iterable[str] | None = None) -> dict[str, Any]:
        """Tensors by name: all, or those that are named."""
        return {name: self.get_tensor(name) for name in (self._open_entries() if names is None else names)}

    def get_slice(self, name: str) -> Slice:
        """A tensor of which parts can be taken."""
        return Slice(self, name, self._row(name))


class Slice:
    """What get_slice() gives: slice[2:4, 0]."""

    def __init__(self, file: safe_open, name: str, row: dict[str, Any]) -> None:
        self._of = file
        self._name = name
        self._entry = row

    def get_shape(self) -> list[int]:
        """The shape of the whole tensor."""
        return list(self._entry["shape"])

    def get_dtype(self) -> str:
        """The type of the tensor as the file has it."""
        return str(self._entry["dtype"])

    def __getitem__(self, key: Any) -> Any:
        shape = self._entry["shape"]
        if isinstance(key, list):
            if key:
                raise SafetensorError("Non empty lists are not implemented")
            key = slice(0, 0)
        keys = key if isinstance(key, tuple) else (key,)
        keys = (
            tuple(_checked(item, i, shape, keys) for i, item in enumerate(keys) if item is not ...)
            if ... not in keys
            else keys
        )
        whole = self._of.get_tensor(self._name)
        part = whole[keys]
        return part.copy() if self._of._framework == "np" else part.clone()


def _text(item: Any) -> str:
    if isinstance(item, slice):
        return f"{'' if item.start is None else item.start}:{'' if item.stop is None else item.stop}"
    return str(item)


def _checked(item: Any, i: int, shape: list[int], keys: tuple[Any, ...]) -> Any:
    """An index inside its dimension: unlike Python, nothing is cut to it."""
    if i >= len(shape):
        raise SafetensorError(f"too many indices for shape {shape}")
    extent = shape[i]
    beyond = None
    if isinstance(item, slice):
        if item.step not in (None, 1):
            raise SafetensorError(f"expected a slice without a step but found step {item.step}")
        if item.stop is not None and item.stop > extent:
            beyond = item.stop - 1
    elif item < -extent:
        raise SafetensorError(f"Invalid index {item} for dimension {i} of size {extent}")
    elif item >= extent:
        beyond = item
    if beyond is not None:
        raise SafetensorError(
            f"Error during slicing [{', '.join(map(_text, keys))}] with shape {shape}: "
            f"index {beyond} out of bounds for tensor dimension #{i} of size {extent}"
        )
    return item


def _safe_open_handle(file: Any, framework: str, device: Any = "cpu") -> safe_open:
    """The same for a file that is open."""
    made = safe_open.__new__(safe_open)
    made._begin(file, framework, device, "mmap")
    return made


def _numpy_array(buffer: Any, offset: int, row: dict[str, Any]) -> Any:
    np = _arrays.numpy()
    name, shape = _NAMES[row["dtype"]], tuple(row["shape"])
    size = row["data_offsets"][1] - row["data_offsets"][0]
    if _arrays.TYPES[name][0] < 8:
        return _arrays.unpacked(bytes(memoryview(buffer)[offset : offset + size]), name, shape)
    kind = _arrays.numpy_type(name)
    if not size:
        return np.empty(shape, kind)
    array = np.frombuffer(buffer, np.uint8, size, offset).view(kind).reshape(shape)
    return array.byteswap(inplace=False) if sys.byteorder == "big" and kind.itemsize > 1 else array


from .numpy import load, load_file, save, save_file  # noqa: E402

__all__ = [
    "SafetensorError",
    "Slice",
    "TensorSpec",
    "__version__",
    "deserialize",
    "load",
    "load_file",
    "safe_open",
    "save",
    "save_file",
    "serialize",
    "serialize_file",
]
