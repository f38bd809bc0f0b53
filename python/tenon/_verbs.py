"""What the tool does, as functions."""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, Sequence

from . import _arrays, _core
from ._file import File, open
from ._results import (
    Compared,
    Converted,
    Diff,
    Difference,
    Finding,
    Problem,
    Quantized,
    Report,
    Side,
    Statistics,
    Stats,
    TypeRating,
    Values,
    Verified,
    sqnr,
)
from ._tensor import Tensor, rule

if TYPE_CHECKING:
    import numpy as np

    from ._file import Path

    Progress = Callable[[int, int], object] | bool | None
    Rules = str | Iterable[str] | None
    Source = File | Path | Sequence[Path]

_ENCODINGS = {None: 0, "none": 0, "raw": 0, "zstd": 1}
_CHECKSUMS = {None: 0, "none": 0, "crc32c": 1, "sha256": 2}
_ROUND = ("even", "away", "zero", "half_up", "trunc", "up", "down", "stochastic")
_OVERFLOW = ("default", "saturate", "inf", "nan", "error")
_NAN = ("keep", "zero", "error")
_SCALES = ("max", "midmax", "topbinade", "option3", "ceil", "mse")
_DEFAULTS = ("round", "overflow", "underflow", "nan", "seed", "mode", "rotate", "importance")
_STEPS = ("slice", "transpose", "reshape", "add", "concat", "split", "cast", "layout", "pad", "form")


# ---- arguments ----


def _choice(word: str, words: Sequence[str], what: str) -> int:
    try:
        return words.index(word)
    except ValueError:
        raise ValueError(
            f"unknown {what} {word!r} (expected {', '.join(words[:-1])} or {words[-1]})"
        ) from None


def _size(text: int | str | None) -> int:
    """Bytes from a number or a text such as "5GB" or "16MiB"."""
    if text is None or isinstance(text, int):
        return text or 0
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kMGT]i?)?B?", text, re.IGNORECASE)
    if not found:
        raise ValueError(f"expected a size such as 5GB or 16MiB but found {text!r}")
    unit = (found[2] or "").lower()
    base = 1024 if unit.endswith("i") else 1000
    return int(float(found[1]) * base ** (" kmgt".index(unit[0]) if unit else 0))


def _texts(given: Rules) -> tuple[str, ...]:
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)


def _progress(progress: Progress, title: str) -> Any:
    """A callable from what the user gave: True is tqdm, or a line on stderr."""
    if progress is None or progress is False:
        return None
    if progress is not True:
        return progress
    try:
        from tqdm import tqdm  # type: ignore[import-untyped, unused-ignore]
    except ImportError:

        def line(done: int, total: int) -> None:
            end = "\n" if done >= total else ""
            print(f"\r{title}: {100 * done // max(total, 1)} %", end=end, file=sys.stderr, flush=True)

        return line
    bar = tqdm(desc=title, unit="B", unit_scale=True)

    def tell(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)
        if done >= total:
            bar.close()

    return tell


def _say(notes: str) -> None:
    for line in notes.splitlines():
        warnings.warn(line, stacklevel=3)


def _choices(options: Mapping[str, Any]) -> tuple[str, ...]:
    """{"ztensor.byte-order": "big"} as texts in threes."""
    texts: list[str] = []
    for key, value in options.items():
        form, dot, name = key.partition(".")
        if not dot:
            raise ValueError(f"expected FORMAT.KEY in options but found {key!r}")
        if isinstance(value, bool):
            value = "yes" if value else "no"
        texts += [form, name, os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
    return tuple(texts)


def _compression(compress: str | bool | None) -> tuple[int, int]:
    """(encoding, level) of "zstd", "zstd:9"."""
    word, _, level = ("zstd" if compress is True else str(compress or "none")).partition(":")
    if word not in _ENCODINGS:
        raise ValueError(f"unknown compression {word!r} (expected zstd or none)")
    return _ENCODINGS[word], int(level or 0)


def _output(
    to: str | None,
    compress: str | bool | None,
    checksum: str | None,
    align: int | None,
    shard_size: int | str | None,
    jobs: int,
    replace: bool,
    drop_metadata: bool,
    drop_names: bool,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """What a writer takes."""
    if checksum not in _CHECKSUMS:
        raise ValueError(f"unknown checksum {checksum!r} (expected crc32c, sha256 or none)")
    encoding, level = _compression(compress)
    return {
        "format": to,
        "replace": replace,
        "drop_metadata": drop_metadata,
        "drop_names": drop_names,
        "align": align or 0,
        "shard_size": _size(shard_size),
        "encoding": encoding,
        "level": level,
        "checksum": _CHECKSUMS[checksum],
        "jobs": jobs,
        "format_options": _choices(options),
    }


# ---- writing ----


def save(
    path: Path,
    tensors: Mapping[str, Any],
    *,
    metadata: Mapping[str, str] | None = None,
    to: str | None = None,
    compress: str | bool | None = None,
    checksum: str | None = None,
    align: int | None = None,
    shard_size: int | str | None = None,
    jobs: int = 0,
    replace: bool = True,
    drop_metadata: bool = False,
    drop_names: bool = False,
    options: Mapping[str, Any] | None = None,
    progress: Progress = None,
) -> None:
    """Write tensors into a new file, which appears whole or not at all.

    tensors: names with arrays of NumPy or torch, anything with DLPack or a buffer, or Tensors.  Tensors
        of files and those made by steps are read block by block: memory does not grow with them.
    to: the format; None: by the suffix of the path
    compress: "zstd", or with a level "zstd:9"
    checksum: "crc32c" or "sha256"
    shard_size: at most so many bytes a file: 5_000_000_000 or "5GB"
    options: those of one format, {"ztensor.byte-order": "big"}

    >>> import tenon
    >>> f = tenon.open(sample)
    >>> tenon.save(folder / "out.zt", {"w": f["embed.weight"].quantize("mxfp4")}, compress="zstd")
    >>> tenon.open(folder / "out.zt")["w"]
    Tensor('w', float32, (4, 6), scaled)
    """
    given = _output(
        to, compress, checksum, align, shard_size, jobs, replace, drop_metadata, drop_names, options or {}
    )
    names = tuple(tensors)
    made = tuple(_arrays.as_tensor(tensors[name], name) for name in names)
    texts = tuple(text for pair in (metadata or {}).items() for text in pair)
    _say(_core.save(os.fsencode(path), names, made, texts, given, _progress(progress, os.fspath(path))))


def _conversion(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What the core takes, from the arguments of convert() or plan()."""
    a = arguments
    texts = [text for step in _STEPS for one in _texts(a[step]) for text in (step, one)]
    keys = {key: a[key] for key in _DEFAULTS if a[key] is not None}
    if "importance" in keys:
        keys["importance"] = os.fspath(keys["importance"])
    return _output(
        a["to"],
        a["compress"],
        a["checksum"],
        a["align"],
        a["shard_size"],
        a["jobs"],
        a["replace"],
        a["drop_metadata"],
        a["drop_names"],
        a["options"] or {},
    ) | {
        "choose_encoding": int(a["compress"] is not None),
        "choose_checksum": int(a["checksum"] is not None),
        "only": _texts(a["only"]) or None,
        "rename": _texts(a["rename"]) or None,
        "rules": tuple(texts) or None,
        "cast_defaults": ",".join(f"{key}={value}" for key, value in keys.items()) or None,
        "max_bytes": a["max_bytes"],
        "raw_codes": a["raw"],
        "strict": a["strict"],
        "map": a["map"],
        "metadata_from": None if a["template"] is None else os.fspath(a["template"]),
    }


def convert(
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
    report: bool = False,
    progress: Progress = None,
) -> Converted:
    """Convert a tensor file: format, types, layout, compression.  Rules are the tool's, as strings.

    >>> import tenon
    >>> done = tenon.convert(sample, folder / "small.zt", cast=["*norm*=f32", "*=mxfp4"])
    >>> done.tensors
    2
    >>> tenon.convert(sample, folder / "bf16.safetensors", cast="bf16", only="embed.*").tensors
    1

    The output is written completely or not at all; it may be the source.  Ctrl-C leaves no file.
    report: what quantizing did to each tensor is in the result
    importance: for block types such as "q4_K": an imatrix file, which says how much each column counts
    map: from the names of Hugging Face to those of GGUF, or back: "llama", "qwen", "gemma", "gemma2",
        "phi3", "nemotron", "gpt2"
    template: a file whose metadata the output gets, such as a GGUF with a tokenizer
    options: those of one format, {"onnx.graph": "m.onnx"}
    raw: another tool's packed codes are taken as the numbers that they look like
    strict: a plain cast that makes more than 1 % of a tensor's values 0, or finds more than 1 % beyond the
    largest value, raises LossError; else it is a warning
    """
    given = _conversion(locals())
    with _borrowed(source, from_) as file:
        tensors, bytes_in, bytes_out, notes, rows = _core.convert(
            file._home, os.fsencode(path), given, report, _progress(progress, os.fspath(path))
        )
    _say(notes)
    return Converted(os.fspath(path), tensors, bytes_in, bytes_out, tuple(_quantized(*row) for row in rows))


def _quantized(
    name: str | None,
    datatype: str,
    bits: float,
    values: int,
    saturated: int,
    flushed: int,
    signal: float,
    noise: float,
    max_error: float,
) -> Quantized:
    return Quantized(name, datatype, values, bits, sqnr(signal, noise), max_error, saturated, flushed)


class _borrowed:
    """An open file: the caller's, or one that is closed at the end."""

    def __init__(self, source: Any, format: str | None = None) -> None:
        self.is_ours = not isinstance(source, File)
        self.file = open(source, format=format) if self.is_ours else source

    def __enter__(self) -> File:
        return self.file

    def __exit__(self, *unused: object) -> None:
        if self.is_ours:
            self.file.close()


# ---- arrays ----


def _values(array: Any) -> tuple[str, tuple[int, ...], Any]:
    """Type, shape and packed bytes of any array."""
    t = _arrays.as_tensor(array)
    name = t._known()
    if t.form != "dense":
        t = t.dequantize()
    return name, t.shape, t.packed()


def cast(
    array: Any,
    dtype: str,
    *,
    round: str = "even",
    overflow: str = "default",
    nan: str = "keep",
    seed: int = 0,
    real: bool = False,
    jobs: int = 0,
) -> np.ndarray[Any, np.dtype[Any]]:
    """Convert every element of an array, rounding once from its exact value.

    real: complex numbers give their real parts

    >>> import numpy, tenon
    >>> tenon.cast(numpy.array([1.0, 1.5, 2.5], "f4"), "int8", round="even")
    array([1, 2, 2], dtype=int8)
    """
    np = _arrays.numpy()
    name, shape, data = _values(array)
    wanted = _core.type_name(dtype)
    bits = _arrays.TYPES[wanted][0]
    result = np.empty(shape, _arrays.numpy_type(wanted)) if bits >= 8 else None
    size = 1
    for extent in shape:
        size *= extent
    target = _arrays.bytes_of(result) if result is not None else bytearray((size * bits + 7) // 8)
    _core.cast(
        target,
        wanted,
        data,
        name,
        shape,
        _choice(round, _ROUND, "rounding"),
        _choice(overflow, _OVERFLOW, "overflow mode"),
        _choice(nan, _NAN, "NaN mode"),
        real,
        seed,
        jobs,
    )
    made: Any = result if result is not None else _arrays.unpacked(target, wanted, shape)
    return made  # type: ignore[no-any-return]


def quantize(
    array: Any,
    datatype: str,
    *,
    round: str = "even",
    mode: str = "max",
    nan: str = "keep",
    seed: int = 0,
    unpacked: bool = False,
    rotate: str | None = None,
    percentile: float = 0,
    jobs: int = 0,
) -> Tensor:
    """Make codes and scales of an array of floats: a Tensor of form "scaled", of block types "blocks".

    datatype: such as "mxfp4", "nvfp4", "int8,per=tensor"; tenon.datatypes() lists the names
    mode: where scales come from: "max", "midmax", "topbinade", "option3", "ceil" or "mse"

    >>> import numpy, tenon
    >>> q = tenon.quantize(numpy.ones((2, 32), "f4"), "mxfp4")
    >>> {role: part.shape for role, part in q.parts.items()}
    {'data': (2, 16), 'scale': (2, 1)}
    >>> float(tenon.dequantize(q).sum())
    64.0
    """
    name, shape, data = _values(array)
    text, _ = _core.datatype(datatype)
    rows = []
    for role, kind, extents in _core.shapes(text, shape, unpacked):
        size = 1
        for extent in extents:
            size *= extent
        rows.append((role, kind, extents, _memory((size * _arrays.TYPES[kind][0] + 7) // 8)))
    _core.quantize(
        data,
        name,
        shape,
        tuple(row[3] for row in rows),
        text,
        unpacked,
        _choice(round, _ROUND, "rounding"),
        _choice(mode, _SCALES, "mode"),
        _choice(nan, _NAN, "NaN mode"),
        seed,
        rotate,
        percentile,
        jobs,
    )
    form = "blocks" if text.startswith("ggml:") else "scaled"
    return _core.tensor(
        "", form, name, shape, tuple(rows), (None, (0, 0), text, unpacked, rotate, None), None
    )


def _memory(size: int) -> Any:
    """Bytes that nobody has filled yet."""
    np = sys.modules.get("numpy")
    return np.empty(size, "u1") if np is not None else bytearray(size)


def dequantize(scaled: Tensor, dtype: str | None = None) -> np.ndarray[Any, np.dtype[Any]]:
    """The values of a tensor of form "scaled", as a NumPy array; of the type it had, or another."""
    return scaled.values(dtype or scaled._known())


def concat(tensors: Iterable[Any], axis: int | None = None, stack: int | None = None) -> Tensor:
    """Join tensors along a dimension, or along a new one (stack).  Nothing is read before the result is.

    >>> import tenon
    >>> t = tenon.open(sample)["embed.weight"]
    >>> tenon.concat([t, t], axis=1).shape
    (4, 12)
    """
    if axis is not None and stack is not None:
        raise ValueError("expected axis or stack, not both")
    text = "" if stack is None and axis is None else f"axis={axis}" if stack is None else f"stack={stack}"
    return _core.concat(tuple(_arrays.as_tensor(t) for t in tensors), text)


def tensor(array: Any, name: str = "") -> Tensor:
    """Any array as a Tensor, to which steps can be applied; no copy where the array is dense.

    >>> import tenon
    >>> tenon.tensor([[1, 2], [3, 4]]).transpose().tolist()
    [[1, 3], [2, 4]]
    """
    return _arrays.as_tensor(array, name)


# ---- files ----


def stats(source: Source, *, only: Rules = None, jobs: int = 0, progress: Progress = None) -> Stats:
    """Statistics of the values of each tensor, and of all together.

    >>> import tenon
    >>> tenon.stats(sample).total.max
    23.0
    """
    with _borrowed(source) as file:
        rows = [
            Statistics(*row)
            for row in _core.stats(file._home, _texts(only) or None, jobs, _progress(progress, "stats"))
        ]
        result = Stats(tuple(rows[:-1]), rows[-1])
        file._statistics = result
    return result


def verify(source: Source, *, jobs: int = 0, progress: Progress = None) -> Verified:
    """Check structure, compressed data, indices and every checksum.

    >>> import tenon
    >>> tenon.verify(sample).ok
    True
    """
    words = ("warning", "warning", "not checked", "unreadable", "BAD")
    counts = dict.fromkeys(
        (
            "parts",
            "crc32c",
            "crc32",
            "sha256",
            "without_checksum",
            "not_checked",
            "unreadable",
            "bad",
            "ambiguous",
        ),
        0,
    )
    problems = []
    with _borrowed(source) as file:
        for name, part, verdict, why, offset, kind in _core.verify(
            file._home, jobs, _progress(progress, "verify")
        ):
            if name is None:
                counts["ambiguous"] += verdict
                problems.append(Problem(None, None, "AMBIGUOUS" if verdict else "warning", why, None))
                continue
            checked = {2: "sha256", 3: "crc32"}.get(kind, "crc32c")
            what = (checked, "without_checksum", "not_checked", "unreadable", "bad")[verdict]
            counts["parts"] += 1
            counts[what] += 1
            if why:
                problems.append(Problem(name, part, words[verdict], why, offset))
        return Verified(tuple(problems), len(file), **counts)


_WHAT = {
    1: "only_a",
    2: "only_b",
    4: "form",
    8: "dtype",
    16: "shape",
    32: "metadata",
    64: "values",
    128: "unread",
    256: "layout",
}


def _keys(a: dict[str, Any], b: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """The keys of metadata that differ, with the side that has them."""
    found = [(key, "both" if key in b else "a") for key in a if key not in b or a[key] != b[key]]
    return (*found, *((key, "b") for key in b if key not in a))


def diff(
    a: Source,
    b: Source,
    *,
    only: Rules = None,
    rename: Rules = None,
    tolerance: float = 0,
    relative: float = 0,
    ignore_metadata: bool = False,
    jobs: int = 0,
    progress: Progress = None,
) -> Diff:
    """Compare two files of any formats, tensor by tensor, scaled ones by the values they stand for.

    rename: what tensors of `a` are called in `b`, as convert() takes it
    tolerance, relative: values are equal if |a - b| <= tolerance + relative * |a|

    >>> import tenon
    >>> tenon.diff(sample, sample).equal
    True
    """
    found, tensors, elements, unread = [], 0, 0, 0
    with _borrowed(a) as first, _borrowed(b) as second:
        for name, other, what, left, right, values, why in _core.diff(
            first._home,
            second._home,
            ignore_metadata,
            _texts(only) or None,
            _texts(rename) or None,
            tolerance,
            relative,
            jobs,
            _progress(progress, "diff"),
        ):
            tensors += name is not None
            elements += values[1]
            unread += bool(what & 128)
            if not what:
                continue
            keys: tuple[tuple[str, str], ...] = ()
            if what & 32:
                keys = _keys(
                    first.metadata if name is None else first[name].metadata,
                    second.metadata if name is None else second[other].metadata,
                )
            found.append(
                Difference(
                    name,
                    tuple(word for bit, word in _WHAT.items() if what & bit),
                    left and Side(*left),
                    right and Side(*right),
                    Values(*values) if what & 64 else None,
                    keys,
                    why or None,
                )
            )
    different = sum(set(d.what) != {"unread"} for d in found)
    return Diff(tuple(found), different == 0 and unread == 0, different, tensors, elements)


def compare_types(
    source: Source,
    types: Iterable[str],
    *,
    only: Rules = None,
    nan: str | None = None,
    mode: str | None = None,
    rotate: str | None = None,
    importance: Path | None = None,
    jobs: int = 0,
    progress: Progress = None,
) -> Compared:
    """What each datatype would do to the float tensors of a file; nothing is written.

    >>> import tenon
    >>> [row.type for row in tenon.compare_types(sample, ["mxfp4", "mxint8"])]
    ['mxfp4', 'mxint8']
    """
    names = tuple(types)
    path = None if importance is None else os.fspath(importance)
    keys = {"nan": nan, "mode": mode, "rotate": rotate, "importance": path}
    defaults = ",".join(f"{key}={value}" for key, value in keys.items() if value is not None) or None
    with _borrowed(source) as file:
        rows = _core.compare_types(
            file._home, names, _texts(only) or None, defaults, jobs, _progress(progress, "compare_types")
        )
    groups = [rows[i : i + len(names)] for i in range(0, len(rows), len(names))] if names else []
    rated = sum(any(row[1] is not None for row in group) for group in groups)
    made = tuple(
        _rating(name, [group[k] for group in groups if group[k][1] is not None], rated)
        for k, name in enumerate(names)
    )
    return Compared(made, rated, len(groups) - rated)


def _rating(name: str, rows: list[Any], tensors: int) -> TypeRating:
    values = sum(row[2] for row in rows)
    bits = sum(row[1] * row[2] for row in rows) / values if values else 0.0
    each = [(sqnr(row[5], row[6]), row[0]) for row in rows if row[2]]
    worst = min(each, key=lambda pair: pair[0], default=(None, None))
    return TypeRating(
        name,
        _core.datatype(name)[0],
        values,
        bits,
        sqnr(sum(row[5] for row in rows), sum(row[6] for row in rows)),
        max((row[7] for row in rows), default=0.0),
        sum(row[3] for row in rows),
        sum(row[4] for row in rows),
        len(rows),
        tensors - len(rows),
        worst[1],
        worst[0],
    )


def report(
    source: Source,
    path: Path | None = None,
    *,
    types: Iterable[str] = (),
    against: Source | None = None,
    only: Rules = None,
    replace: bool = False,
    jobs: int = 0,
    progress: Progress = None,
) -> Report:
    """A file as pictures: writes a page to `path`, or only gathers what it would show.

    The result shows its summary in a notebook.  types: what these datatypes would cost.  against: another file,
    to see what has changed.

    >>> import tenon
    >>> tenon.report(sample, types=["mxfp4"]).marked
    ()
    """
    name = None if path is None else os.fspath(path)
    with _borrowed(source) as file, _borrowed(file if against is None else against) as other:
        data, html = _core.report(
            file._home,
            name,
            tuple(types),
            None if against is None else other._home,
            _texts(only) or None,
            replace,
            jobs,
            _progress(progress, "report"),
        )
    return Report(name, json.loads(data), html)


def describe(source: Source, name: str | None = None) -> Any:
    """WIA-AI-011 descriptors of a file's tensors, or of one, as json.loads() gives them.

    >>> import tenon
    >>> tenon.describe(sample, "norm.weight")["shape"]["dimensions"]
    [3]
    """
    with _borrowed(source) as file:
        return json.loads(_core.describe(file._home, name, name is None))


def check(document: Any, *, strict: bool = False) -> tuple[Finding, ...]:
    """What is wrong with descriptors: JSON text, bytes, or what describe() gives.

    >>> import tenon
    >>> [finding.text for finding in tenon.check(tenon.describe(sample)) if not finding.remark]
    []
    """
    if not isinstance(document, (str, bytes)):
        document = json.dumps(document)
    return tuple(Finding(*row) for row in _core.check(document, strict))


def datatypes() -> dict[str, str]:
    """The predefined datatypes: their names, and what they stand for."""
    return {name: text for name, text, _ in _core.datatypes()}


def formats() -> tuple[str, ...]:
    """The names of the formats this build has."""
    return tuple(row[0] for row in _core.formats())


def set_window_memory(size: int | str) -> None:
    """How much memory decoding compressed data may take in all; 0: 256 MiB."""
    _core.set_window_memory(_size(size))


__all__ = [
    "cast",
    "check",
    "compare_types",
    "concat",
    "convert",
    "datatypes",
    "dequantize",
    "describe",
    "diff",
    "formats",
    "quantize",
    "report",
    "rule",
    "save",
    "set_window_memory",
    "stats",
    "tensor",
    "verify",
]
