"""Parameters and buffers of exported programs as constants, shared where storage is shared."""

from __future__ import annotations

from typing import Any

from ..dtype import DType, dtype as dtype_named
from ..module import Array
from .emitter import Emitter, ImportMismatchError
from .tensors import Imported

_NAMES = {
    "float16": "f16", "float32": "f32", "float64": "f64", "bfloat16": "bf16", "int8": "i8",
    "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16",
    "uint32": "u32", "uint64": "u64", "bool": "bool",
}  # fmt: skip


def torch_dtype(dtype: Any) -> DType:
    """Translate an element type of PyTorch."""
    name = str(dtype).removeprefix("torch.")
    if name not in _NAMES:
        raise ImportMismatchError(
            f"element type {name} has no counterpart", hint=f"there are {', '.join(_NAMES)}"
        )
    return dtype_named(_NAMES[name])


def tensor_array(tensor: Any) -> Array:
    """Give the elements of a PyTorch tensor, shared where it is compact and on the CPU."""
    import torch

    compact = tensor.detach().cpu().contiguous()
    if compact.dtype == torch.bfloat16:
        return compact.view(torch.int16).numpy().view(torch_dtype(torch.bfloat16).numpy)
    return compact.numpy()


class TorchConstants:
    """Makes one constant of all tensors that are the same memory."""

    def __init__(self, emitter: Emitter) -> None:
        """Put constants into an emitter."""
        self._emitter = emitter
        self._keys: dict[tuple[object, ...], str] = {}

    def constant(self, name: str, tensor: Any) -> Imported:
        """Refer to a tensor of the model."""
        identity = (
            tensor.untyped_storage().data_ptr(),
            tensor.storage_offset(),
            tuple(tensor.shape),
            tensor.stride(),
            tensor.dtype,
        )
        key = self._keys.setdefault(identity, name) if tensor.numel() else name
        sizes = tuple(int(d) for d in tensor.shape)
        return self._emitter.constant(
            key,
            sizes,
            torch_dtype(tensor.dtype),
            lambda: tensor_array(tensor),
            source="torch.export",
        )
