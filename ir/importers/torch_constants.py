"""Import of parameters and buffers of exported programs; tensors that share memory are merged."""

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
    """Return the dtype of a PyTorch element type."""
    name = str(dtype).removeprefix("torch.")
    if name not in _NAMES:
        raise ImportMismatchError(
            f"PyTorch dtype torch.{name} is not supported",
            hint=f"supported PyTorch dtypes: {', '.join(_NAMES)}",
        )
    return dtype_named(_NAMES[name])


def tensor_array(tensor: Any) -> Array:
    """Return the elements of a PyTorch tensor; no copy if it is contiguous and on the CPU."""
    import torch

    compact = tensor.detach().cpu().contiguous()
    if compact.dtype == torch.bfloat16:
        return compact.view(torch.int16).numpy().view(torch_dtype(torch.bfloat16).numpy)
    return compact.numpy()


class TorchConstants:
    """The constants of one program; tensors with the same memory become one constant."""

    def __init__(self, emitter: Emitter) -> None:
        """Create a collection that registers constants with an emitter."""
        self._emitter = emitter
        self._keys: dict[tuple[object, ...], str] = {}

    def constant(self, name: str, tensor: Any) -> Imported:
        """Return a reference to the constant of a tensor."""
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
