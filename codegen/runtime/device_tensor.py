"""Tensors in a device's memory, which anything that speaks DLPack can take over."""

from __future__ import annotations

import ctypes
import weakref
from typing import Any, Protocol

from numpy.typing import NDArray

from ...ir.dtype import DType, bf16, dtype as dtype_named
from ...ir.host import layout

_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6}
_KINDS = {0: "i", 1: "u", 2: "f"}

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class DLTensor(ctypes.Structure):
    """DLPack's description of a tensor."""

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


class _Versioned(ctypes.Structure):
    """A managed tensor as DLPack has it since 1.0."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", _DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


class _Plain(ctypes.Structure):
    """A managed tensor as DLPack had it before."""

    _fields_ = (("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", _DELETER))


_EXPORTED: dict[int, tuple[object, object]] = {}
"""What others hold by DLPack: the managed tensor, and the tensor that it shows."""


def _forget(address: int) -> None:
    _EXPORTED.pop(address, None)


_FORGET = _DELETER(_forget)


class Holder(Protocol):
    """The device that a tensor lies on."""

    @property
    def ordinal(self) -> int:
        """Which of its kind it is."""
        ...

    def download(self, tensor: DeviceTensor) -> NDArray[Any]:
        """Copy a tensor to a new array."""
        ...

    def wait(self) -> None:
        """Wait until all that was launched has run."""
        ...


class DeviceTensor:
    """A compact tensor in a device's memory.

    Calls of an executable take it as an argument without a copy; ``torch.from_dlpack(t)`` and the
    like share its memory, :meth:`numpy` copies it to the host.

    Parameters
    ----------
    address : int
        Of the first element.
    shape : tuple of int
        In elements.
    dtype : DType
        Of the elements.
    holder : Holder
        The device.
    owner : object
        Lives as long as the tensor is used.
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
        holder: Holder,
        owner: object,
    ) -> None:
        """Describe memory that ``owner`` holds."""
        self._holder = holder
        self.read_only = False
        self.shape = shape
        self.dtype = dtype
        self.device = f"cuda:{holder.ordinal}"
        self.owner = owner
        rank = len(shape)
        words = (ctypes.c_int64 * max(2 * rank, 1))(*shape, *compact_strides(shape))
        start = ctypes.addressof(words)
        bits = 8 * dtype.bytes
        self._keep = words
        self._description = DLTensor(
            address,
            layout.CUDA,
            holder.ordinal,
            rank,
            _CODES[dtype.kind],
            bits,
            1,
            start,
            start + 8 * rank,
            0,
        )

    @property
    def address(self) -> int:
        """Where the first element lies."""
        return self._description.data or 0

    @property
    def description(self) -> int:
        """Where the DLPack description of the tensor lies."""
        return ctypes.addressof(self._description)

    @property
    def nbytes(self) -> int:
        """How many bytes the elements take."""
        size = self.dtype.bytes
        for extent in self.shape:
            size *= extent
        return size

    def frozen(self) -> DeviceTensor:
        """Give the same tensor, not to be written."""
        made = DeviceTensor(self.address, self.shape, self.dtype, self._holder, self.owner)
        made.read_only = True
        return made

    def numpy(self) -> NDArray[Any]:
        """Copy to the host, once all that writes the tensor has run."""
        return self._holder.download(self)

    def __repr__(self) -> str:
        """Print what it is, not its elements."""
        return f"DeviceTensor(shape={self.shape}, dtype={self.dtype}, device={self.device!r})"

    # ------------------------------------------------------------ DLPack

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
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("a device tensor is shown where it lies; numpy() copies it")
        if stream not in (None, -1, 0, 1):
            # Kernels run on the legacy default stream, which another one does not wait for.
            self._holder.wait()
        if max_version is not None and max_version[0] >= 1:
            made = _Versioned(1, 0, None, _FORGET, 0, self._description)
            name = b"dltensor_versioned"
        else:
            made = _Plain(self._description, None, _FORGET)
            name = b"dltensor"
        address = ctypes.addressof(made)
        _EXPORTED[address] = (made, self)
        return _new_capsule(address, name, None)


def compact_strides(shape: tuple[int, ...]) -> list[int]:
    """Give the strides of elements that lie one after the other, in elements.

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
    """Give the element type that DLPack's code and bits mean.

    Examples
    --------
    >>> str(element_type(2, 32)), str(element_type(4, 16)), str(element_type(6, 8))
    ('f32', 'bf16', 'bool')
    """
    if code == _CODES["bfloat"]:
        return bf16
    return dtype_named("bool" if code == _CODES["bool"] else f"{_KINDS[code]}{bits}")


def adopt(managed: int, holder: Holder, element: DType) -> DeviceTensor:
    """Take over a result: a managed tensor of native code, which is freed with the last user."""
    head = _Versioned.from_address(managed)
    given: DLTensor = head.tensor
    shape = (
        tuple((ctypes.c_int64 * given.ndim).from_address(given.shape or 0)) if given.ndim else ()
    )
    owner = Owner()
    release = _DELETER(ctypes.cast(head.deleter, ctypes.c_void_p).value or 0)
    weakref.finalize(owner, release, managed)
    return DeviceTensor(given.data or 0, shape, element, holder, owner)


class Owner:
    """Holds memory of a device; what frees it is tied to this object's end."""

    __slots__ = ("__weakref__",)
