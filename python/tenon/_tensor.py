"""Tensors: of files, in memory, or made by steps when they are read."""

from __future__ import annotations

import html
import json
import operator
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Sequence

from . import _arrays, _core
from ._results import Scaling, Stored

if TYPE_CHECKING:
    import numpy as np
    import torch

    Index = int | slice | EllipsisType
    Indices = Index | tuple[Index, ...]


def metadata(rows: list[tuple[str, str | None, str | None]]) -> dict[str, Any]:
    """Metadata of a file or tensor: texts, or the values that their JSON says."""
    return {key: text if text is not None else json.loads(value or "null") for key, text, value in rows}


class Tensor(_core.Tensor):
    """One tensor.  Nothing is read before its data is asked for.

    >>> import tenon
    >>> f = tenon.open(sample)
    >>> t = f["embed.weight"]
    >>> t.shape, t.dtype, t.form
    ((4, 6), 'float32', 'dense')
    >>> t[1:3, ::2].cast("bf16")
    Tensor('embed.weight', bfloat16, (2, 3), lazy)
    """

    __slots__ = ()

    # ---- data ----

    def numpy(self, copy: bool | None = None) -> np.ndarray[Any, np.dtype[Any]]:
        """The values as a NumPy array: a read-only view where is_view says so, else a new array.

        copy=True always makes a new array; copy=False raises ValueError instead of reading or copying.
        Types that NumPy lacks are those of ml_dtypes; without that package, integers of the same width.

        >>> import tenon
        >>> tenon.open(sample)["embed.weight"].numpy()[0, :3]
        array([0., 1., 2.], dtype=float32)
        """
        np = _arrays.numpy()
        name = self._known()
        if copy is False and not self.is_view:
            raise ValueError(
                f"tensor {self.name!r} must be read or decoded: it cannot be an array without a copy"
            )
        if name in ("tf32",) or not self.is_view:
            array = _arrays.read(self, name)
        else:
            array = np.asarray(self.packed())
            array = array.view(_arrays.numpy_type(name)).reshape(self.shape)
        return np.array(array) if copy and self.is_view else array  # type: ignore[no-any-return]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, np.dtype[Any]]:
        array = self.numpy(copy)
        if dtype is not None and dtype != array.dtype:
            if copy is False:
                raise ValueError("another type cannot be had without a copy")
            return array.astype(dtype)
        return array

    def torch(self, copy: bool | None = None) -> torch.Tensor:
        """The values as a torch tensor on the CPU, without a copy where is_view says so.

        torch does not know read-only memory: do not write into a tensor that shares that of a file.
        """
        import torch

        kind = _arrays.torch_type(self._known())
        if copy is False and not self.is_view:
            raise ValueError(f"tensor {self.name!r} must be read or decoded: it cannot be a view")
        if not self.size:
            return torch.empty(self.shape, dtype=kind)
        if self._strides is not None and self.form == "dense" and not copy and not self._is_strided():
            raw = _core.tensor(
                "",
                "dense",
                "uint8",
                (self.nbytes,),
                (("data", "uint8", (self.nbytes,), self.packed().cast("B")),),
                None,
                None,
            )
            return torch.from_dlpack(_Legacy(raw)).view(kind).reshape(self.shape)
        values = torch.empty(self.shape, dtype=kind)
        self.read_into(values.reshape(-1).view(torch.uint8).numpy())
        return values

    def values(self, dtype: str = "float32") -> np.ndarray[Any, np.dtype[Any]]:
        """All values as a new NumPy array of a type: codes with scales decoded, sparse tensors dense.

        >>> import tenon
        >>> tenon.open(sample)["norm.weight"].values("float64")
        array([1. , 0.5, 2. ])
        """
        return _arrays.read(self, _core.type_name(dtype))  # type: ignore[no-any-return]

    def tolist(self) -> Any:
        """The values as nested lists of Python numbers."""
        return self.numpy().tolist()

    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if dl_device is not None and tuple(dl_device) != (1, 0):
            raise BufferError("tensors are in the memory of the CPU: dl_device=(1, 0)")
        versioned = max_version is not None and max_version[0] >= 1
        return self._dlpack(versioned, copy is not False, copy is True)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    # ---- what it is ----

    @property
    def metadata(self) -> dict[str, Any]:
        """Its own metadata."""
        return metadata(self._meta)

    @property
    def parts(self) -> dict[str, Tensor]:
        """What it consists of, by role: "data"; "values" and "indices"; "data" and "scale" ..."""
        stored = self.load() if self.is_lazy else self
        return {role: stored._part(k) for k, role in enumerate(self._roles)}

    def load(self) -> Tensor:
        """The tensor in memory, with all its parts: nothing more is read from its file."""
        parts = []
        for k in range(len(self._roles)):
            role, kind, shape, size = self._part_info(k)
            data = bytearray(size)
            self._read_part(k, data)
            parts.append((role, kind, shape, data))
        return _core.tensor(
            self.name, self.form, self._known(), self.shape, tuple(parts), self._scaling, self.layout
        )

    @property
    def scaling(self) -> Scaling | None:
        """How codes become values, of a tensor of form "scaled"."""
        row = self._scaling
        return None if row is None else Scaling(*row)

    @property
    def stored(self) -> Stored | None:
        """How its first part lies in its file; None for what is in memory or made by steps."""
        row = self._stored
        return None if row is None else Stored(*row)

    def _known(self) -> str:
        name = self.dtype
        if name is None:
            raise TypeError(f"tensor {self.name!r} is of a type that this build does not know")
        return name

    def _is_strided(self) -> bool:
        step = 1
        for extent, stride in zip(reversed(self.shape), reversed(self._strides or ())):
            if extent > 1 and stride != step:
                return True
            step *= extent
        return False

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("a scalar has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        try:
            form = "" if self.form == "dense" else f", {self.form}"
            how = ", lazy" if self.is_lazy else ""
            return f"Tensor({self.name!r}, {self.dtype}, {self.shape}{form}{how})"
        except ValueError:
            return "Tensor(of a closed file)"

    def _repr_html_(self) -> str:
        rows = {
            "name": self.name,
            "type": self.dtype,
            "shape": self.shape,
            "form": self.form,
            "bytes": f"{self.nbytes:,}",
        }
        if self.size and self.nbytes <= 1 << 24 and self.dtype in _arrays.PLAIN and self.form == "dense":
            values = self.numpy()
            if values.dtype.kind in "fiu":
                rows["range"] = f"{values.min():.5g} to {values.max():.5g}"
        cells = "".join(
            f"<tr><th>{key}</th><td>{html.escape(str(value))}</td></tr>" for key, value in rows.items()
        )
        return f"<table>{cells}</table>"

    # ---- steps ----

    def _dense(self) -> Tensor:
        return self if self.form == "dense" else self.dequantize()

    def __getitem__(self, key: Indices) -> Tensor:
        """Some indices of each dimension, as in NumPy: integers, slices and an ellipsis.

        The result is a view where this one is; otherwise its blocks are computed when they are read.
        """
        base = self._dense()
        indices = _expand(key, base.ndim)
        texts, offset, strides = [], 0, []
        steps = base._strides
        for i, (index, extent) in enumerate(zip(indices, base.shape)):
            step = steps[i] if steps is not None else 0
            if isinstance(index, slice):
                start, stop, by = index.indices(extent)
                count = len(range(start, stop, by))
                if by < 0:
                    raise IndexError("a step below 1 needs an array: use numpy()[...]")
                texts.append(f"{start}:{start + (count - 1) * by + 1 if count else start}:{by}")
                offset += start * step if count else 0
                strides.append(step * by)
            else:
                at = operator.index(index)
                if not -extent <= at < extent:
                    raise IndexError(f"index {at} is out of range for dimension {i} of extent {extent}")
                texts.append(str(at % extent))
                offset += at % extent * step
        text = ",".join(texts)
        return base._step("slice", text, None if steps is None else tuple(strides), offset) if texts else base

    def cast(self, dtype: str, **keys: Any) -> Tensor:
        """The values as another type or datatype, with the keys of a rule: cast("f8e4m3fn", round="even")."""
        return self._step("cast", rule(dtype, keys))

    def quantize(self, datatype: str, **keys: Any) -> Tensor:
        """Small codes with scales, by a datatype such as "mxfp4" or "int8,per=channel,axis=0"."""
        return self._step("cast", rule(datatype, keys))

    def dequantize(self, dtype: str | None = None) -> Tensor:
        """The values of codes with scales, dense; of the type they had before, or another."""
        stored = self.load() if self.is_lazy and self.form != "dense" else self
        return stored._step("values", None if dtype is None else _core.type_name(dtype))

    def reorder(self, layout: str, from_: str | None = None) -> Tensor:
        """Another order of dimensions by their letters: reorder("NHWC", from_="NCHW")."""
        return self._step("layout", rule(layout, {"from": from_}))

    def transpose(self, *axes: int) -> Tensor:
        """Another order of dimensions by their numbers; without any, the reverse one."""
        return self._dense()._step("transpose", ",".join(map(str, axes or reversed(range(self.ndim)))))

    def reshape(self, *shape: int | Sequence[int]) -> Tensor:
        """The same elements in another shape; one extent may be -1."""
        extents = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        return self._dense()._step("reshape", ",".join(map(str, extents)))


class _Legacy:
    """What torch takes without looking for a read-only flag, which it has no use for."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def __dlpack__(self, **unused: Any) -> Any:
        return self.tensor._dlpack(False, True, False)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def rule(text: str, keys: dict[str, Any]) -> str:
    """The text of a rule with further keys: rule("int8", {"per": "tensor"}) is "int8,per=tensor"."""
    return ",".join(
        [text, *(f"{key.rstrip('_')}={value}" for key, value in keys.items() if value is not None)]
    )


def _expand(key: Any, rank: int) -> list[Any]:
    """An index for each dimension."""
    keys = list(key) if isinstance(key, tuple) else [key]
    for item in keys:
        if not isinstance(item, (slice, EllipsisType)) and not hasattr(item, "__index__"):
            raise IndexError("expected integers, slices or an ellipsis; arrays of indices need numpy()[...]")
    dots = [i for i, item in enumerate(keys) if item is ...]
    if len(dots) > 1 or len(keys) - len(dots) > rank:
        raise IndexError(f"too many indices: the tensor has {rank} dimensions")
    at = dots[0] if dots else len(keys)
    rest = keys[at + 1 :]
    return keys[:at] + [slice(None)] * (rank - at - len(rest)) + rest
