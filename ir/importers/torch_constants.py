"""Import of parameters and buffers of exported programs; tensors that share memory are merged."""

from __future__ import annotations

from typing import Any

from ..dtype import BYTE, DTYPES, DType
from ..module import Array
from .emitter import Emitter
from .tensors import Imported
from .unsupported import UnsupportedFormError

_NAMES = {row.torch: row for row in DTYPES.values() if row.torch}


def torch_dtype(dtype: Any) -> DType:
    """Return the dtype of a PyTorch element type."""
    name = str(dtype).removeprefix("torch.")
    if name not in _NAMES:
        raise UnsupportedFormError(
            f"PyTorch dtype torch.{name} is not supported",
            hint=f"supported PyTorch dtypes: {', '.join(_NAMES)}",
        )
    return _NAMES[name]


def tensor_array(tensor: Any) -> Array:
    """Return the elements of a PyTorch tensor; no copy if it is contiguous and on the CPU."""
    import torch

    compact = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    dtype = torch_dtype(compact.dtype)
    if dtype.is_extension:  # which NumPy cannot import
        bits = torch.int16 if dtype.bits == 2 * BYTE else torch.uint8
        return compact.view(bits).numpy().view(dtype.numpy)
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
            tensor.is_conj(),
            tensor.is_neg(),
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
