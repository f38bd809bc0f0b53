"""Results: frozen dataclasses whose fields are those that the tool prints with --json."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Iterator


class Result:
    """What all results have."""

    def to_dict(self) -> dict[str, Any]:
        """The fields as a dictionary of plain values, for JSON or a data frame."""
        return dataclasses.asdict(self)  # type: ignore[call-overload, no-any-return]


@dataclass(frozen=True)
class Scaling(Result):
    """How codes become values: by a datatype, or (code - zero) * scale along an axis."""

    axis: int | None
    range: tuple[int, int]
    datatype: str | None
    unpacked: bool
    rotation: str | None
    store: str | None


@dataclass(frozen=True)
class Stored(Result):
    """How a part lies in its file."""

    offset: int
    stored: int
    type: str | None
    encoding: str | None
    checksum: str | None
    byteorder: str
    file: str | None


@dataclass(frozen=True)
class Statistics(Result):
    """What values look like.  Item k of the histogram counts 2^(k - 40) <= |x| < 2^(k - 39)."""

    name: str | None
    dtype: str | None
    shape: tuple[int, ...]
    error: str | None
    count: int
    finite: int
    min: float
    max: float
    mean: float
    std: float
    absmax: float
    density: float
    zeros: int
    subnormals: int
    nans: int
    infinities: int
    histogram: tuple[int, ...]

    def sparkline(self) -> str:
        """One character a power of two, as high as its share of the largest."""
        used = [k for k, n in enumerate(self.histogram) if n]
        if not used:
            return ""
        most = max(self.histogram)
        return "".join(
            " ▁▂▃▄▅▆▇█"[1 + int(n / most * 7 + 0.5) if n else 0]
            for n in self.histogram[used[0] : used[-1] + 1]
        )


@dataclass(frozen=True)
class Stats(Result):
    """Statistics of each tensor, and of all together."""

    tensors: tuple[Statistics, ...]
    total: Statistics

    def __iter__(self) -> Iterator[Statistics]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)


@dataclass(frozen=True)
class Problem(Result):
    """What is wrong with a part, or what lies beside the file (then name and part are None)."""

    name: str | None
    part: str | None
    verdict: str
    why: str
    offset: int | None


@dataclass(frozen=True)
class Verified(Result):
    """What was checked, and what is wrong."""

    problems: tuple[Problem, ...]
    tensors: int
    parts: int
    crc32c: int
    crc32: int
    sha256: int
    without_checksum: int
    not_checked: int
    unreadable: int
    bad: int
    ambiguous: int

    @property
    def ok(self) -> bool:
        """Whether nothing is bad or left unchecked, and no other file can be taken for this one."""
        return self.bad == 0 and self.ambiguous == 0 and self.not_checked == 0 and self.unreadable == 0


@dataclass(frozen=True)
class Side(Result):
    """One of two tensors that differ."""

    form: str
    dtype: str | None
    shape: tuple[int, ...]
    datatype: str | None
    bits: float


@dataclass(frozen=True)
class Values(Result):
    """How the values of two tensors differ."""

    part: str | None
    elements: int
    differing: int
    first: int
    bits: int
    specials: int
    max_abs: float
    max_rel: float
    max_ulp: float
    sqnr: float
    saturated: int
    flushed: int


@dataclass(frozen=True)
class Difference(Result):
    """One tensor that differs; name is None for the metadata of the files."""

    name: str | None
    what: tuple[str, ...]
    a: Side | None
    b: Side | None
    values: Values | None
    metadata: tuple[tuple[str, str], ...]
    why: str | None


@dataclass(frozen=True)
class Diff(Result):
    """All differences of two files.  It is true if there are any, like the exit status of diff."""

    differences: tuple[Difference, ...]
    equal: bool
    different: int
    tensors: int
    elements: int

    def __bool__(self) -> bool:
        return not self.equal

    def __iter__(self) -> Iterator[Difference]:
        return iter(self.differences)

    def __len__(self) -> int:
        return len(self.differences)


@dataclass(frozen=True)
class Quantized(Result):
    """What quantizing did: bits a value takes, signal to noise ratio in dB, values cut and flushed to 0."""

    name: str | None
    datatype: str
    values: int
    bits: float
    sqnr: float
    max_error: float
    saturated: int
    flushed: int


@dataclass(frozen=True)
class TypeRating(Result):
    """What one datatype does to all tensors."""

    type: str
    datatype: str
    values: int
    bits: float
    sqnr: float
    max_error: float
    saturated: int
    flushed: int
    tensors: int
    left_out: int
    worst: str | None
    worst_sqnr: float | None


@dataclass(frozen=True)
class Compared(Result):
    """Datatypes side by side."""

    types: tuple[TypeRating, ...]
    tensors: int
    left_out: int

    def __iter__(self) -> Iterator[TypeRating]:
        return iter(self.types)

    def __len__(self) -> int:
        return len(self.types)


@dataclass(frozen=True, repr=False)
class Report(Result):
    """What a report found: `data` has the fields of the tool's --json.  A notebook shows the summary."""

    path: str | None
    data: dict[str, Any]
    html: str

    @property
    def marked(self) -> tuple[str, ...]:
        """Names of tensors that are unlike the others of their role, or have NaN or infinity."""
        return tuple(t["name"] for t in self.data["tensors"] if t.get("marked"))

    @property
    def changed(self) -> tuple[str, ...]:
        """Names of tensors that differ from those of the other file, or are not in it."""
        return tuple(t["name"] for t in self.data["tensors"] if "difference" in t)

    def __repr__(self) -> str:
        summary = self.data["summary"]
        return f"<tenon.Report {self.data['file']!r}: {summary['tensors']} tensors, {summary['marked']} marked>"

    def _repr_html_(self) -> str:
        return self.html


@dataclass(frozen=True)
class Converted(Result):
    """What a conversion wrote."""

    file: str
    tensors: int
    bytes_in: int
    bytes_out: int
    report: tuple[Quantized, ...] = ()


@dataclass(frozen=True)
class Planned(Result):
    """What becomes of one tensor."""

    name: str
    source: str
    from_: str | None
    dtype: str | None
    form: str
    datatype: str | None
    shape: tuple[int, ...]
    physical_shape: tuple[int, ...] | None
    layout: str | None
    nbytes: int
    encoding: str | None
    checksum: str | None
    file: int
    offset: int | None


@dataclass(frozen=True)
class Piece(Result):
    """A part of a conversion that can be made by itself."""

    file: int
    offset: int | None
    first_tensor: int
    tensors: int
    first_block: int
    blocks: int
    bytes_written: int
    bytes_read: int


@dataclass(frozen=True)
class Holder(Result):
    """A process that is making a piece.  host "" and pid 0: not known."""

    piece: int
    host: str
    pid: int
    stopped: bool


@dataclass(frozen=True)
class WorkState(Result):
    """How far a work folder is.  bytes: to be written, before compression."""

    pieces: int
    made: int
    held: int
    bytes: int
    bytes_made: int
    processes: int
    published: bool
    holders: tuple[Holder, ...]


@dataclass(frozen=True)
class Finding(Result):
    """What is wrong, or worth a remark, in a descriptor."""

    descriptor: int
    remark: bool
    path: str
    text: str


def sqnr(signal: float, noise: float) -> float:
    """The signal to noise ratio in dB."""
    if noise == 0:
        return math.inf
    return 10 * math.log10(signal / noise) if signal > 0 else -math.inf
