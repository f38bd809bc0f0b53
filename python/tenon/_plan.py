"""Conversions as data: plans whose pieces can be made in any order, by one process or by many."""

from __future__ import annotations

import builtins
import os
import tempfile
import threading
import time
import warnings
from typing import TYPE_CHECKING, Any, Mapping

from . import _core
from ._file import opened
from ._results import Converted, Holder, Piece, Planned, WorkState
from ._verbs import _borrowed, _conversion, _say, _size

if TYPE_CHECKING:
    from ._file import Path
    from ._verbs import Rules, Source


_IDLE = 1.0  # seconds that a process keeps a folder open after its last piece: one in use cannot be abandoned
_PATIENCE = 3.0  # seconds before it says whom it waits for
_HELD = 2


# ---- folders that processes share ----


class _Folders:
    """Folders that this process has open: opening one plans anew, which is too much for each piece."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.open: dict[Any, _core.Plan] = {}
        self.uses: dict[Any, int] = {}
        self.timer: threading.Timer | None = None

    def take(self, key: Any) -> _core.Plan:
        with self.lock:
            if key not in self.open:
                self.open[key] = _core.Plan(_core, None, os.fsencode(key[0]), {"jobs": key[1]}, "")
            self.uses[key] = self.uses.get(key, 0) + 1
            return self.open[key]

    def give_back(self, key: Any) -> None:
        with self.lock:
            self.uses[key] -= 1
            if self.timer:
                self.timer.cancel()
            self.timer = threading.Timer(_IDLE, self.close)
            self.timer.daemon = True
            self.timer.start()

    def forget(self, key: Any) -> None:
        """What was finished, or failed to be, cannot be used any more."""
        with self.lock:
            if key in self.open:
                self.open.pop(key)._close()

    def close(self) -> None:
        """Those that are not in use."""
        with self.lock:
            for key in [key for key in self.open if not self.uses[key]]:
                self.open.pop(key)._close()


_folders = _Folders()


def _stamp(folder: str) -> Any:
    """What tells a work folder from a later one at the same path."""
    try:
        found = os.stat(os.path.join(folder, "plan.json"))
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


class _joined:
    """The core of a plan, for a while."""

    def __init__(self, plan: Plan) -> None:
        global _folders
        if _folders.pid != os.getpid():  # a fork
            _folders = _Folders()
        self.own = plan._core
        self.folders = _folders
        self.key = (plan.folder, plan._jobs, plan.folder and _stamp(plan.folder))

    def __enter__(self) -> _core.Plan:
        return self.own if self.own is not None else self.folders.take(self.key)

    def __exit__(self, *unused: object) -> None:
        if self.own is None:
            self.folders.give_back(self.key)


# ---- plans ----


class Plan:
    """A conversion as data: its tensors, and pieces that can be made in any order.

    >>> import tenon
    >>> p = tenon.plan(sample, folder / "planned.zt", cast="bf16")
    >>> [t.name for t in p.tensors], len(p)
    (['embed.weight', 'norm.weight'], 1)
    >>> for i in range(len(p)):
    ...     p.run(i)
    >>> p.finish().tensors
    2

    Pieces belong to the process that made them, unless the plan has a work folder: then any number of
    processes make them, on machines that share it.  A process opens such a plan by tenon.Plan.open(folder),
    or gets it pickled, as the path of the folder; so plan.run can be given to any engine that maps functions:

    >>> p = tenon.plan(sample, folder / "shared.zt", cast="bf16", work=True)
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> list(ThreadPoolExecutor().map(p.run, range(len(p))))
    [None]
    >>> p.state.made, p.finish().tensors
    (1, 2)

    tenon.distributed.run(plan, executor) does that.

    folder: the work folder, or None
    path: the output
    """

    __slots__ = ("folder", "path", "_core", "_jobs", "_count", "_pieces", "__weakref__")

    def __init__(self, core: _core.Plan | None, folder: str | None, path: str, jobs: int, count: int) -> None:
        self.folder = folder
        self.path = path
        self._core = core
        self._jobs = jobs
        self._count = count
        self._pieces: tuple[Piece, ...] | None = None

    @classmethod
    def open(cls, path: Path, *, jobs: int = 0) -> Plan:
        """Open the input of a saved plan, or of a work folder, and make the plan anew."""
        if not os.path.isdir(path):
            core = _core.Plan(_core, None, os.fsencode(path), {}, None)
            return cls(core, None, "", jobs, core._count)
        return _shared(_core.Plan(_core, None, os.fsencode(path), {"jobs": jobs}, ""), jobs)

    @property
    def tensors(self) -> tuple[Planned, ...]:
        """What becomes of each tensor.  A plan that was opened, or has a work folder, does not have them."""
        return () if self._core is None else tuple(Planned(*row) for row in self._core._rows)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """What each piece makes and costs."""
        if self._pieces is None or self._core is not None:
            with _joined(self) as core:
                self._pieces = _pieces(core)
        return self._pieces

    def __len__(self) -> int:
        return self._count

    def run(self, piece: int) -> None:
        """Make one piece; one that is made already is left as it is.

        With a work folder: a piece that another process is making is waited for, and taken over if that
        process dies.
        """
        began, told = time.monotonic(), False
        while True:
            with _joined(self) as core:
                outcome, notes = core._run(piece)
            _say(notes)
            if outcome != _HELD:
                return
            waited = time.monotonic() - began
            if waited > _PATIENCE and not told:
                told = self._tell_holder(piece)
            time.sleep(min(0.25, 0.005 + waited / 8))

    def _tell_holder(self, piece: int) -> bool:
        for holder in self.state.holders:
            if holder.piece == piece:
                stopped = " and is stopped: continue or kill it" if holder.stopped else ""
                text = f"waiting for process {holder.pid} on {holder.host}, which has piece {piece}{stopped}"
                warnings.warn(f"{self.folder}: {text}", stacklevel=3)
                return True
        return False

    def finish(self) -> Converted:
        """Make the output appear: all pieces are made.  A work folder is removed."""
        joined = _joined(self)
        try:
            with joined as core:
                tensors, bytes_in, bytes_out, notes = core._finish()
        finally:
            joined.folders.forget(joined.key)
        _say(notes)
        return Converted(self.path, tensors, bytes_in, bytes_out)

    def abandon(self) -> None:
        """Remove what was made; the output stays as it was.  OSError: a process is using the work folder."""
        if self._core is not None:
            self._core._close()
            return
        _folders.close()
        _core.work_abandon(os.fsencode(self._shared_folder()))

    @property
    def state(self) -> WorkState:
        """How far the work folder is."""
        *counts, holders = _core.work_look(os.fsencode(self._shared_folder()))
        everything: Any = (*counts, tuple(Holder(*row) for row in holders))
        return WorkState(*everything)

    def _shared_folder(self) -> str:
        if self.folder is None:
            raise ValueError("expected a plan with a work folder (plan(..., work=True))")
        return self.folder

    def save(self, path: Path) -> None:
        """Write the plan as JSON."""
        with _joined(self) as core:
            core._save(os.fsencode(path))

    def __repr__(self) -> str:
        return f"Plan({self.folder or self.path!r}, {self._count} pieces)"

    def __reduce__(self) -> tuple[Any, ...]:
        if self.folder is not None:
            return Plan, (None, self.folder, self.path, self._jobs, self._count)
        with tempfile.TemporaryDirectory() as folder:
            self.save(os.path.join(folder, "plan.json"))
            with builtins.open(os.path.join(folder, "plan.json"), "rb") as file:
                return _plan_of, (file.read(), self.path)


def _plan_of(text: bytes, path: str) -> Plan:
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "plan.json")
        with builtins.open(name, "wb") as file:
            file.write(text)
        made = Plan.open(name)
    made.path = path
    return made


def _pieces(core: _core.Plan) -> tuple[Piece, ...]:
    return tuple(Piece(*core._piece(i)) for i in range(core._count))


def _shared(core: _core.Plan, jobs: int) -> Plan:
    """From the core of a plan with a folder, which is closed until it is used."""
    made = Plan(None, os.path.abspath(core._folder), os.path.abspath(core._output), jobs, core._count)
    made._pieces = _pieces(core)
    core._close()
    return made


def plan(
    source: Source,
    path: Path,
    *,
    to: str | None = None,
    from_: str | None = None,
    cast: Rules = None,
    layout: Rules = None,
    pad: Rules = None,
    form: Rules = None,
    slice: Rules = None,
    transpose: Rules = None,
    reshape: Rules = None,
    add: Rules = None,
    concat: Rules = None,
    split: Rules = None,
    only: Rules = None,
    rename: Rules = None,
    round: str | None = None,
    overflow: str | None = None,
    underflow: str | None = None,
    nan: str | None = None,
    seed: int | None = None,
    mode: str | None = None,
    rotate: str | None = None,
    importance: Path | None = None,
    map: str | None = None,
    template: Path | None = None,
    compress: str | bool | None = None,
    checksum: str | None = None,
    align: int | None = None,
    shard_size: int | str | None = None,
    jobs: int = 0,
    replace: bool = False,
    drop_metadata: bool = False,
    drop_names: bool = False,
    max_bytes: int = 0,
    raw: bool = False,
    strict: bool = False,
    options: Mapping[str, Any] | None = None,
    work: Path | bool | None = None,
    piece_size: int | str | None = None,
) -> Plan:
    """Plan what convert() would do with the same arguments.  See Plan.

    work: the plan has a work folder, in which many processes make it: True is OUT.tenon, a path another one
        on the file system of the output.  Where the folder is there already this process joins, which takes
        the same arguments, input and Tenon: so a conversion that was interrupted goes on.  Without a folder
        nothing is written before the output.
    piece_size: about how many bytes a piece writes; None: 64 MiB
    """
    given = _conversion(locals()) | {"piece_size": _size(piece_size)}
    if work is None or work is False:
        core = _core.Plan(_core, opened(source, from_)._home, os.fsencode(path), given, None)
        return Plan(core, None, os.fspath(path), jobs, core._count)
    with _borrowed(source, from_) as file:
        return _shared(
            _core.Plan(_core, file._home, os.fsencode(path), given, "" if work is True else os.fspath(work)),
            jobs,
        )
