"""Tensors handed to other processes without a copy."""

from __future__ import annotations

import os
from types import TracebackType
from typing import TYPE_CHECKING, Any, Iterable, Mapping, cast

from . import _arrays, _core
from ._file import File, opened
from ._tensor import Tensor

if TYPE_CHECKING:
    from ._file import Path


class Server(_core.Offer):
    """Offers tensors at a socket until it is closed.  Its own tensors are in the shared memory.

    >>> import numpy, tenon
    >>> with tenon.serve(folder / "socket", {"x": numpy.zeros(3, "f4")}, writable=True) as server:
    ...     other = tenon.attach(folder / "socket")["x"]
    ...     server["x"].numpy()[1] = 5
    ...     other.tolist()
    [0.0, 5.0, 0.0]
    """

    __slots__ = ("_shared", "__weakref__")

    _shared: dict[str, Tensor]

    def __getitem__(self, name: str) -> Tensor:
        return self._shared[name]

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def serve(
    path: Path,
    tensors: Mapping[str, Any] | Iterable[File | Path] | File,
    *,
    writable: bool = False,
    in_place: bool = False,
    uids: Iterable[int] = (),
) -> Server:
    """Offer tensors to other processes of this user at a socket, without a copy for each.

    tensors: names with arrays, which are copied once into shared memory; or files
    writable: others may write into the arrays, and everyone sees it
    in_place: files are offered as they are on disk
    uids: other users who may attach
    """
    server = Server(_core, os.fsencode(path), tuple(uids))
    server._shared = {}
    if isinstance(tensors, File):
        tensors = [tensors]
    if isinstance(tensors, Mapping):
        arrays = cast(Mapping[str, Any], tensors)
        for name, array in arrays.items():
            server._shared[name] = server._share(_arrays.as_tensor(array, name), name, writable)
    else:
        for source in tensors:
            file = opened(source)
            name = os.path.basename(file.shards[0]) if file.shards and file.shards[0] else "file"
            server._file(file._home, name, in_place)
    server._start()
    return server


def attach(path: Path, *, in_place: bool = False, uids: Iterable[int] = ()) -> dict[str, Tensor | File]:
    """All that is offered at a socket, by name: tensors in shared memory, and files.

    in_place: also files as they are on disk, which whoever can write them can change or cut
    uids: other users whose offers are taken
    """
    found: dict[str, Tensor | File] = {}
    for name, item, _ in _core.attach(os.fsencode(path), in_place, tuple(uids)):
        found[name] = item if isinstance(item, Tensor) else File(_core, "home", item, None, 0, 0, False)
    return found
