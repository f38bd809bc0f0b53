"""Open files: mappings of names to tensors."""

from __future__ import annotations

import html
import io
import os
import stat
import threading
from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Iterable

from . import _core
from ._results import Stats
from ._tensor import Tensor, metadata

if TYPE_CHECKING:
    Path = str | os.PathLike[str]
    Opened = Path | bytes | bytearray | memoryview | IO[bytes] | Iterable[Path]

_IO = {"auto": 0, "mmap": 1, "pread": 2}
_ROWS = 50


class _Items(ItemsView[str, Tensor]):
    _mapping: File

    def __iter__(self) -> Iterator[tuple[str, Tensor]]:
        return zip(self._mapping, self._mapping._all())


class _Values(ValuesView[Tensor]):
    _mapping: File

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self._mapping._all())


class File(_core.File, Mapping[str, Tensor]):
    """An open file: a mapping of names to tensors.  Opening reads no data.

    >>> import tenon
    >>> with tenon.open(sample) as f:
    ...     print(f.format, list(f))
    safetensors ['embed.weight', 'norm.weight']
    """

    __slots__ = ("__weakref__", "_statistics")

    _statistics: Stats

    @property
    def metadata(self) -> dict[str, Any]:
        """The file's own metadata."""
        return metadata(self._meta)

    @property
    def shards(self) -> tuple[str, ...]:
        """The paths of the files it consists of."""
        return tuple(self._shards)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with the file although it can be read."""
        return tuple(self._warnings)

    def items(self) -> ItemsView[str, Tensor]:
        return _Items(self)

    def values(self) -> ValuesView[Tensor]:
        return _Values(self)

    def __enter__(self) -> File:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __repr__(self) -> str:
        if self.closed:
            return "File(closed)"
        name = f"{self._shards[0]!r}, " if self._shards and self._shards[0] else ""
        return f"File({name}{self.format}, {len(self)} tensors)"

    def _repr_html_(self) -> str:
        try:
            pictures = {row.name: row.sparkline() for row in self._statistics}
        except AttributeError:
            pictures = {}
        head = ["name", "type", "shape", "bytes"] + (["magnitudes"] if pictures else [])
        rows = []
        for name in list(self)[:_ROWS]:
            t = self[name]
            cells = [name, t.dtype if t.form == "dense" else f"{t.dtype} {t.form}", t.shape, f"{t.nbytes:,}"]
            cells += [pictures.get(name, "")] if pictures else []
            rows.append("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in cells) + "</tr>")
        if len(self) > _ROWS:
            rows.append(f"<tr><td>and {len(self) - _ROWS} more</td></tr>")
        title = "".join(f"<th>{cell}</th>" for cell in head)
        return f"<p>{html.escape(repr(self))}</p><table><tr>{title}</tr>{''.join(rows)}</table>"


class _Reader:
    """read_at() of a file object that can seek: one thread at a time."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.lock = threading.Lock()
        self.file.seek(0, io.SEEK_END)
        self.size = self.file.tell()

    def __call__(self, offset: int, size: int) -> bytes:
        with self.lock:
            self.file.seek(offset)
            pieces = []
            while size > 0:
                piece = self.file.read(size)
                if not piece:
                    break
                pieces.append(piece)
                size -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _descriptor(source: Any) -> int | None:
    """The descriptor of a file object that is a regular file, as it is on disk."""
    if not isinstance(source, (io.FileIO, io.BufferedReader, io.BufferedRandom, io.TextIOWrapper)):
        return None
    source.flush()
    number = source.fileno()
    return number if stat.S_ISREG(os.fstat(number).st_mode) else None


def open(
    source: Opened, *, format: str | None = None, io: str = "auto", max_bytes: int = 0, raw: bool = False
) -> File:
    """Open a tensor file.

    source: a path or a URL; the bytes of a file; a file object, also of fsspec; or several paths, which become one
    format: the name of its format, where the content does not tell
    io: "auto" maps the file; "pread" never does: for network file systems, and files that others may cut
    max_bytes: what its data may be decoded into; 0: 1 GiB, or 1000 times what is stored if that is more
    raw: take another tool's packed codes as the numbers that they look like

    >>> import tenon
    >>> f = tenon.open(sample)
    >>> f["norm.weight"].tolist()
    [1.0, 0.5, 2.0]
    """
    if io not in _IO:
        raise ValueError(f"unknown io {io!r} (expected auto, mmap or pread)")
    how, what = _kind(source)
    return File(_core, how, what, format, _IO[io], max_bytes, raw)


def _kind(source: Any) -> tuple[str, Any]:
    """How the library opens it."""
    if isinstance(source, (str, os.PathLike)):
        return "path", os.fsencode(source)
    if isinstance(source, (bytes, bytearray, memoryview)):
        return "memory", source
    if not hasattr(source, "read"):
        return "several", tuple(os.fsencode(path) for path in source)
    number = _descriptor(source)
    if number is not None:
        return "fd", number
    reader = _Reader(source)
    return "object", (reader, reader.size)


def opened(source: Any, format: str | None = None) -> File:
    """An open file, or one that is opened here."""
    return source if isinstance(source, File) else open(source, format=format)
