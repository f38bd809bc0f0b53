"""In place of safetensors.torch."""

# pyright: reportAttributeAccessIssue=false
# Without torch installed, its name leads to this very file.

from __future__ import annotations

import os
from typing import Any, Iterable, Mapping

import torch

from .. import _arrays
from . import _NAMES, TensorSpec, deserialize, safe_open, serialize, serialize_file


def storage_ptr(tensor: torch.Tensor) -> int:
    """Where the memory of a tensor begins; 0: it has none."""
    try:
        return tensor.untyped_storage().data_ptr()
    except NotImplementedError:
        return 0


def storage_size(tensor: torch.Tensor) -> int:
    """Bytes of the memory that a tensor lies in."""
    try:
        return tensor.untyped_storage().nbytes()
    except NotImplementedError:
        return tensor.nelement() * tensor.element_size()


def _end_ptr(tensor: torch.Tensor) -> int:
    """The address behind a tensor's last element."""
    if not tensor.nelement():
        return tensor.data_ptr()
    last = sum((extent - 1) * stride for extent, stride in zip(tensor.shape, tensor.stride()))
    return tensor.data_ptr() + (last + 1) * tensor.element_size()


def _find_shared_tensors(state_dict: Mapping[str, torch.Tensor]) -> list[set[str]]:
    """Names of tensors that share memory, in groups; each tensor without others is a group of its own."""
    storages: dict[Any, list[str]] = {}
    for name, tensor in state_dict.items():
        if tensor.device.type != "meta" and storage_ptr(tensor) and storage_size(tensor):
            storages.setdefault((tensor.device, storage_ptr(tensor), storage_size(tensor)), []).append(name)
    groups: list[set[str]] = []
    for names in storages.values():
        end = -1
        for begin, stop, name in sorted(
            (state_dict[name].data_ptr(), _end_ptr(state_dict[name]), name) for name in names
        ):
            if begin >= end:
                groups.append(set())
            groups[-1].add(name)
            end = stop
    return groups


def _is_complete(tensor: torch.Tensor) -> bool:
    """Whether a tensor has all of its memory."""
    return tensor.data_ptr() == storage_ptr(
        tensor
    ) and tensor.nelement() * tensor.element_size() == storage_size(tensor)


def _remove_duplicate_names(
    state_dict: Mapping[str, torch.Tensor],
    *,
    preferred_names: Iterable[str] | None = None,
    discard_names: Iterable[str] | None = None,
) -> dict[str, list[str]]:
    """Of tensors that share memory one is kept: {its name: [names of the others]}."""
    preferred, discarded = set(preferred_names or ()), set(discard_names or ())
    removed: dict[str, list[str]] = {}
    for shared in _find_shared_tensors(state_dict):
        complete = {name for name in shared if _is_complete(state_dict[name])}
        if not complete:
            raise RuntimeError(
                f"Error while trying to find names to remove to save state dict: none of {shared} covers "
                "the entire storage, so that more would be stored than is needed"
            )
        kept = min(complete & preferred or complete - discarded or complete)
        others = sorted(shared - {kept})
        if others:
            removed[kept] = others
    return removed


def save_model(
    model: torch.nn.Module,
    filename: str,
    metadata: dict[str, str] | None = None,
    force_contiguous: bool = True,
) -> None:
    """Write a model; of tensors that share memory one is written, and metadata names it for the others."""
    state = model.state_dict()
    for kept, others in _remove_duplicate_names(state).items():
        for name in others:
            metadata = {} if metadata is None else metadata
            metadata.setdefault(name, kept)
            del state[name]
    if force_contiguous:
        state = {name: tensor.contiguous() for name, tensor in state.items()}
    try:
        save_file(state, filename, metadata)
    except ValueError as wrong:
        raise ValueError(
            f"{wrong} Or use save_model(..., force_contiguous=True), read the docs for potential caveats."
        ) from None


def load_model(
    model: torch.nn.Module,
    filename: str | os.PathLike[str],
    strict: bool = True,
    device: str | int = "cpu",
    *,
    backend: str = "mmap",
) -> tuple[set[str], list[str]]:
    """Load a file into a model: the names that the file lacks, and those that the model does."""
    state = load_file(filename, device=device, backend=backend)
    removed = _remove_duplicate_names(model.state_dict(), preferred_names=state.keys())
    answer = model.load_state_dict(state, strict=False)
    missing, unexpected = set(answer[0]), list(answer[1])
    for name in (name for names in removed.values() for name in names):
        if name in missing:
            missing.remove(name)
        else:
            unexpected.append(name)
    if strict and (missing or unexpected):
        lines = [f"Error(s) in loading state_dict for {type(model).__name__}:"]
        for title, names in (("Missing", missing), ("Unexpected", unexpected)):
            if names:
                lines.append(
                    f"    {title} key(s) in state_dict: " + ", ".join(f'"{name}"' for name in sorted(names))
                )
        raise RuntimeError("\n".join(lines))
    return missing, unexpected


def _check(tensors: Mapping[str, torch.Tensor]) -> None:
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}")
    sparse = [name for name, tensor in tensors.items() if tensor.layout != torch.strided]
    if sparse:
        raise ValueError(
            f"You are trying to save a sparse tensors: `{sparse}` which this library does not support. You "
            "can make it a dense tensor before saving with `.to_dense()` but be aware this might make a much "
            "larger file than needed."
        )
    shared = [names for names in _find_shared_tensors(tensors) if len(names) > 1]
    if shared:
        raise RuntimeError(
            f"Some tensors share memory, which would be written twice: {shared}. "
            "A way to save your model is `save_model`."
        )


def _specs(tensors: Mapping[str, torch.Tensor], kept: list[Any]) -> dict[str, TensorSpec]:
    """Where the bytes of tensors are; `kept` keeps them there."""
    _check(tensors)
    specs = {}
    for name, tensor in tensors.items():
        if not tensor.is_contiguous():
            raise ValueError(
                f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. It either "
                "means you are trying to save tensors which are reference of each other, of which only "
                "the full ones should be saved, or call `.contiguous()` on it before saving."
            )
        here = tensor.detach().cpu()
        kept.append(here)
        specs[name] = TensorSpec(
            dtype=str(tensor.dtype).removeprefix("torch."),
            shape=tensor.shape,
            data_ptr=here.data_ptr() if here.nelement() else 0,
            data_len=here.nelement() * here.element_size(),
        )
    return specs


def save(tensors: dict[str, torch.Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes of a file with these tensors."""
    kept: list[Any] = []
    return serialize(_specs(tensors, kept), metadata)


def save_file(
    tensors: dict[str, torch.Tensor], filename: str | os.PathLike[str], metadata: dict[str, str] | None = None
) -> None:
    """Write tensors into a file."""
    kept: list[Any] = []
    serialize_file(_specs(tensors, kept), filename, metadata)


def load_file(
    filename: str | os.PathLike[str], device: str | int = "cpu", *, backend: str = "mmap"
) -> dict[str, torch.Tensor]:
    """All tensors of a file."""
    with safe_open(filename, framework="pt", device=device, backend=backend) as file:
        return file.get_tensors()


def load(data: bytes) -> dict[str, torch.Tensor]:
    """All tensors of the bytes of a file."""
    return {
        name: _from_bytes(row["data"], 0, row | {"data_offsets": [0, len(row["data"])]})
        for name, row in deserialize(data)
    }


def _from_bytes(buffer: Any, offset: int, row: dict[str, Any]) -> torch.Tensor:
    """A tensor in a buffer that may be written into."""
    kind = getattr(torch, _arrays.TYPES[_NAMES[row["dtype"]]][3] or "", None)
    if kind is None:
        raise TypeError(f"torch has no type for {row['dtype']}")
    shape = list(row["shape"])
    if str(kind).endswith("_x2") and shape:
        shape[-1] //= 2
    size = row["data_offsets"][1] - row["data_offsets"][0]
    if not size:
        return torch.empty(shape, dtype=kind)
    return torch.frombuffer(buffer, dtype=torch.uint8, count=size, offset=offset).view(kind).reshape(shape)
