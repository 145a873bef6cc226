"""Tensors in device memory, which other libraries can import by DLPack."""

from __future__ import annotations

import ctypes
import math
import weakref
from typing import Any, Protocol

from numpy.typing import NDArray

from ...ir.dtype import DTYPES, DType
from ...ir.sizes import storage_bytes
from ..rtlib import layout

_BY_CODE = {(row.dlpack, row.bits): row for row in DTYPES.values()}

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class DLTensor(ctypes.Structure):
    """``DLTensor`` of DLPack: the description of a tensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


class Versioned(ctypes.Structure):
    """``DLManagedTensorVersioned``, of DLPack 1.0 and later."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", _DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


class _Plain(ctypes.Structure):
    """``DLManagedTensor``, of DLPack before 1.0."""

    _fields_ = (("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", _DELETER))


_EXPORTED: dict[int, tuple[object, object]] = {}
"""Exported managed tensors and the tensors they share memory with, by address."""


def _forget(address: int) -> None:
    _EXPORTED.pop(address, None)


_FORGET = _DELETER(_forget)


class TensorDevice(Protocol):
    """A device that stores tensors."""

    @property
    def kind(self) -> str:
        """The kind of the device: ``cuda`` or ``webgpu``."""
        ...

    @property
    def ordinal(self) -> int:
        """The index among the devices of the same type."""
        ...

    def download(self, tensor: DeviceTensor) -> NDArray[Any]:
        """Copy a tensor to a new host array."""
        ...

    def wait(self) -> None:
        """Wait until all launched kernels have finished."""
        ...


class DeviceTensor:
    """A compact tensor in device memory.

    An executable accepts it as an argument without a copy. Libraries that support DLPack share its
    memory, for example ``torch.from_dlpack(t)``. :meth:`numpy` copies it to the host.

    Parameters
    ----------
    address : int
        Address of the first element.
    shape : tuple of int
        Shape, in elements.
    dtype : DType
        Type of the elements.
    holder : TensorDevice
        The device.
    owner : object
        Object that keeps the memory alive.
    """

    __slots__ = (
        "__weakref__",
        "_description",
        "_holder",
        "_keep",
        "device",
        "dtype",
        "owner",
        "read_only",
        "shape",
    )

    def __init__(
        self,
        address: int,
        shape: tuple[int, ...],
        dtype: DType,
        holder: TensorDevice,
        owner: object,
    ) -> None:
        """Describe memory that ``owner`` keeps alive."""
        self._holder = holder
        self.read_only = False
        self.shape = shape
        self.dtype = dtype
        self.device = f"{holder.kind}:{holder.ordinal}"
        self.owner = owner
        rank = len(shape)
        words = (ctypes.c_int64 * max(2 * rank, 1))(*shape, *compact_strides(shape))
        start = ctypes.addressof(words)
        bits = dtype.bits
        self._keep = words
        self._description = DLTensor(
            address,
            layout.DEVICE_TYPES[holder.kind],
            holder.ordinal,
            rank,
            dtype.dlpack,
            bits,
            1,
            start,
            start + 8 * rank,
            0,
        )

    @property
    def address(self) -> int:
        """The address of the first element."""
        return self._description.data or 0

    @property
    def description(self) -> int:
        """The address of the DLPack description of the tensor."""
        return ctypes.addressof(self._description)

    @property
    def nbytes(self) -> int:
        """The size of the elements in bytes."""
        return storage_bytes(math.prod(self.shape), self.dtype)

    def as_read_only(self) -> DeviceTensor:
        """Return the same tensor marked as read-only."""
        tensor = DeviceTensor(self.address, self.shape, self.dtype, self._holder, self.owner)
        tensor.read_only = True
        return tensor

    def numpy(self) -> NDArray[Any]:
        """Copy to the host after all kernels that write the tensor have finished."""
        return self._holder.download(self)

    def __repr__(self) -> str:
        """Return shape, dtype and device as text, without the elements."""
        return f"DeviceTensor(shape={self.shape}, dtype={self.dtype}, device={self.device!r})"

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._description.device_type, self._description.device_id

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        if self._holder.kind != "cuda":
            raise BufferError(
                f"a tensor on {self.device} has no address that other libraries can use; use "
                "numpy() to copy it to the host"
            )
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError(
                f"cannot export a tensor on {self.device} with copy={copy}, dl_device={dl_device}; "
                "use numpy() to copy it to the host"
            )
        if stream not in (None, -1, 0, 1):
            # Kernels run on the legacy default stream; other streams may not synchronize with it.
            self._holder.wait()
        if max_version is not None and max_version[0] >= 1:
            managed = Versioned(1, 0, None, _FORGET, 0, self._description)
            name = b"dltensor_versioned"
        else:
            managed = _Plain(self._description, None, _FORGET)
            name = b"dltensor"
        address = ctypes.addressof(managed)
        _EXPORTED[address] = (managed, self)
        return _new_capsule(address, name, None)


def compact_strides(shape: tuple[int, ...]) -> list[int]:
    """Return the strides of a compact row-major tensor, in elements.

    Examples
    --------
    >>> compact_strides((2, 3, 4))
    [12, 4, 1]
    """
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return strides[::-1]


def element_type(code: int, bits: int) -> DType:
    """Return the element type of a DLPack type code and number of bits.

    Examples
    --------
    >>> str(element_type(2, 32)), str(element_type(4, 16)), str(element_type(6, 8))
    ('f32', 'bf16', 'bool')
    """
    return _BY_CODE[code, bits]


def from_managed(managed: int, holder: TensorDevice, element: DType) -> DeviceTensor:
    """Return a managed tensor of native code as a tensor that frees it when it is destroyed."""
    head = Versioned.from_address(managed)
    tensor: DLTensor = head.tensor
    shape = (
        tuple((ctypes.c_int64 * tensor.ndim).from_address(tensor.shape or 0)) if tensor.ndim else ()
    )
    owner = Owner()
    release = _DELETER(ctypes.cast(head.deleter, ctypes.c_void_p).value or 0)
    weakref.finalize(owner, release, managed)
    return DeviceTensor(tensor.data or 0, shape, element, holder, owner)


class Owner:
    """An owner of device memory; finalizers of this object free the memory."""

    __slots__ = ("__weakref__",)
