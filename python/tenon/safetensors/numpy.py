"""In place of safetensors.numpy."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Mapping

from .. import _arrays
from . import TensorSpec, _numpy_array, deserialize, safe_open, serialize, serialize_file

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]


def _specs(tensor_dict: Mapping[str, Array], kept: list[Any]) -> dict[str, TensorSpec]:
    """Where the bytes of arrays are; `kept` keeps them there."""
    specs = {}
    for name, array in tensor_dict.items():
        kind = _arrays.type_of(array.dtype)
        data = _arrays.numpy().frombuffer(_arrays.packed(array, kind), "u1") if array.size else None
        kept.append(data)
        specs[name] = TensorSpec(
            dtype=kind,
            shape=array.shape,
            data_ptr=0 if data is None else data.ctypes.data,
            data_len=0 if data is None else data.nbytes,
        )
    return specs


def save(tensor_dict: Mapping[str, Array], metadata: Mapping[str, str] | None = None) -> bytes:
    """The bytes of a file with these arrays."""
    kept: list[Any] = []
    return serialize(_specs(tensor_dict, kept), metadata)


def save_file(
    tensor_dict: Mapping[str, Array],
    filename: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write arrays into a file."""
    kept: list[Any] = []
    serialize_file(_specs(tensor_dict, kept), filename, metadata)


def load(data: bytes) -> dict[str, Array]:
    """All arrays of the bytes of a file."""
    return {
        name: _numpy_array(row["data"], 0, row | {"data_offsets": [0, len(row["data"])]})
        for name, row in deserialize(data)
    }


def load_file(filename: str | os.PathLike[str], *, backend: str = "mmap") -> dict[str, Array]:
    """All arrays of a file."""
    with safe_open(filename, framework="np", backend=backend) as file:
        return file.get_tensors()
