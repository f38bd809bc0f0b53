"""Exceptions: one class for each kind of failure of the library."""

from __future__ import annotations

import errno
import os


class Error(Exception):
    """What the library refuses.  Every exception it raises has these attributes, built-in classes too.

    status: the number of the failure, as tn_status of the C library has it
    offset: the byte of the file concerned, or None
    path: the file concerned, or None
    tensor: the name of the tensor concerned, or None
    """

    status: int = 0
    offset: int | None = None
    path: str | None = None
    tensor: str | None = None


class FormatError(Error, ValueError):
    """The file is damaged: truncated, corrupt, or its data does not match its checksum."""


class LossError(Error, ValueError):
    """Something would be lost that no argument allows to lose."""


class UnsupportedError(Error, NotImplementedError):
    """Valid, but not in this build."""


class LimitError(Error, ValueError):
    """Beyond a documented limit."""


class ArgumentError(Error, ValueError):
    """An argument that makes no sense."""


class ChangedError(Error, OSError):
    """A file has changed since it was read: it was not replaced."""


class CancelledError(Error):
    """A conversion was stopped."""


# tn_status of the C library; 1 (no memory) is MemoryError, 2 (I/O) OSError, 21 (exists) FileExistsError.
CLASSES: dict[int, type[Exception]] = {
    1: MemoryError,
    2: OSError,
    3: CancelledError,
    10: FormatError,
    11: FormatError,
    12: UnsupportedError,
    13: LimitError,
    14: FormatError,
    15: LossError,
    20: ArgumentError,
    21: FileExistsError,
    22: ChangedError,
}

# tn_reason: what the caller can do, in the words of this package.
REASONS: dict[int, str] = {
    0: "",
    1: "raise max_bytes",
    2: "replace=True replaces it",
    3: "drop_metadata=True",
    4: "drop_names=True",
    5: 'form="%s"',
    6: 'cast="%s"',
    7: "only=[...] chooses others",
    8: "rename=[...]",
    9: "layout=[...]",
    10: 'nan="%s" makes it 0',
    11: 'compress="%s"',
    12: 'checksum="%s"',
    13: 'to="%s"',
    14: 'format="%s"',
    15: "without %s in options",
    16: "shard_size",
    18: "align, drop_metadata=True, drop_names=True",
    19: "jobs=%s needs none",
    20: "set_window_memory()",
    21: "uids=[...]",
    22: "give its symbols values first",
    23: 'mli="%s"',
    24: "binary=True takes it",
    25: 'convert(..., cast="%s") first, or leave it out with only=[...]',
    26: 'convert(..., form="%s") first',
    27: "convert(..., rename=[...]) first",
    28: "cast=[...]",
    32: "%s=[...]",
    33: "raw=True takes them as numbers",
    34: "tenon.datatypes() lists the names of datatypes",
    35: 'or let the rule choose other tensors: %s=["GLOB=..."]',
    36: 'options={"onnx.graph": "MODEL.onnx"}',
    37: 'options={"onnx.external": True}',
    38: 'importance="imatrix.gguf"',
}


def _errno(text: str) -> int:
    """The number of the system's reason, which ends the text."""
    found = [number for number in errno.errorcode if os.strerror(number) in text]
    return max(found, key=lambda number: len(os.strerror(number)), default=errno.EIO)


def make(
    status: int, reason: int, offset: int | None, path: str, tensor: str, value: str, text: str, line: str
) -> Exception:
    """The exception of a failed call; _core raises it."""
    remedy = REASONS.get(reason, "")
    if "%s" in remedy:
        remedy = remedy % value if value else remedy.replace('"%s"', "...").replace("%s", "...")
    message = f"{line} ({remedy})" if remedy else line
    kind = CLASSES.get(status, Error)
    raised: Exception
    if kind in (OSError, FileExistsError, ChangedError):
        number = errno.EEXIST if kind is FileExistsError else _errno(text)
        raised = kind(number, message) if kind is not OSError or not path else OSError(number, text, path)
    else:
        raised = kind(message)
    for name, what in (
        ("status", status),
        ("offset", offset),
        ("path", path or None),
        ("tensor", tensor or None),
    ):
        setattr(raised, name, what)
    return raised
