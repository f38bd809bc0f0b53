"""Tensor files as mappings of names to arrays without a copy, and everything the tool tenon does.

    f = tenon.open("model.safetensors")
    w = f["model.embed_tokens.weight"].numpy()
    tenon.convert("model.safetensors", "small.zt", cast=["*norm*=bf16", "*=mxfp4"])

NumPy, ml_dtypes, torch and tqdm are used where they are installed; none is needed.
"""

from . import _core, distributed
from ._errors import (
    ArgumentError,
    CancelledError,
    ChangedError,
    Error,
    FormatError,
    LimitError,
    LossError,
    UnsupportedError,
    make as _make,
)
from ._file import File, open
from ._plan import Plan, plan
from ._results import (
    Compared,
    Converted,
    Diff,
    Difference,
    Finding,
    Holder,
    Piece,
    Planned,
    Problem,
    Quantized,
    Report,
    Scaling,
    Side,
    Statistics,
    Stats,
    Stored,
    TypeRating,
    Values,
    Verified,
    WorkState,
)
from ._share import Server, attach, serve
from ._tensor import Tensor
from ._verbs import (
    cast,
    check,
    compare_types,
    concat,
    convert,
    datatypes,
    dequantize,
    describe,
    diff,
    formats,
    quantize,
    report,
    save,
    set_window_memory,
    stats,
    tensor,
    verify,
)

_core.set_classes(Tensor, _make)

__version__ = _core.VERSION

__all__ = [
    "ArgumentError",
    "CancelledError",
    "ChangedError",
    "Compared",
    "Converted",
    "Diff",
    "Difference",
    "Error",
    "File",
    "Finding",
    "FormatError",
    "Holder",
    "LimitError",
    "LossError",
    "Piece",
    "Plan",
    "Planned",
    "Problem",
    "Quantized",
    "Report",
    "Scaling",
    "Server",
    "Side",
    "Statistics",
    "Stats",
    "Stored",
    "Tensor",
    "TypeRating",
    "UnsupportedError",
    "Values",
    "Verified",
    "WorkState",
    "__version__",
    "attach",
    "cast",
    "check",
    "compare_types",
    "concat",
    "convert",
    "datatypes",
    "dequantize",
    "describe",
    "diff",
    "distributed",
    "formats",
    "open",
    "plan",
    "quantize",
    "report",
    "save",
    "serve",
    "set_window_memory",
    "stats",
    "tensor",
    "verify",
]
