"""Conversion of arguments and results between Python and native code, without copies.

NumPy arrays are passed by their array interface, other tensors by DLPack. A result is a NumPy array
that owns native memory, which is freed without Python; other libraries can import it by DLPack. A
direct call (:mod:`.direct`) copies a small result to memory of NumPy.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...ir.dtype import BYTE, DType, dtype as dtype_named, from_numpy, u8
from ...ir.module import Constant, MissingConstantError
from ...ir.packing import PackedArray, storage_of, unpack
from ...ir.sizes import storage_bytes
from ..errors import ArgumentTypeError, SizeError
from ..lower.host.context import dtype_code
from ..manifest import FunctionSpec, ParamSpec, ResultSpec
from ..messages import Message
from ..rtlib import layout
from .device_tensor import DLTensor, Versioned
from .explain import NO_MEMORY, parameter_location, signature_excerpt

_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype = ctypes.c_int
_is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

_VERSIONED = b"dltensor_versioned"
_PLAIN = b"dltensor"
READ_ONLY = 256
"""The flag in the form of an argument that marks it as read-only."""

_MAJOR = 1
"""The major version of DLPack whose structures are read."""

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_SHOWN_BITS = 128
"""The largest integer that error messages write in full, in bits."""

Words = ctypes.Array[ctypes.c_int64]
Array = NDArray[Any]
ArgumentWriter = Callable[[Words, int, Any], object]
"""A function that writes the native description of an argument and returns its owner."""


class RejectedError(TypeError):
    """A tensor that native code cannot read; the hint states the fix."""

    def __init__(self, message: str, hint: str) -> None:
        """Store message and hint."""
        super().__init__(message)
        self.hint = hint


def pass_tensor(words: Words, at: int, argument: Any) -> object:
    """Write the native description of a tensor; keep the returned object alive during the call."""
    if type(argument) is np.ndarray:
        capsule = argument.__array_struct__
        words[at + 1] = _get_pointer(capsule, None)
        return capsule
    return _pass_other(words, at, argument)


def pass_extension(dtype: DType) -> ArgumentWriter:
    """Return the writer of the native description of a tensor of an extension type in NumPy."""
    form = layout.FORM_EXTENSION + layout.FORM_DTYPE * dtype_code(dtype)

    def write(words: Words, at: int, argument: Any) -> object:
        if isinstance(argument, np.ndarray):
            array = plain_array(argument)
            if array.dtype == dtype.numpy:
                words[at] = form
                capsule = array.__array_struct__
                words[at + 1] = _get_pointer(capsule, None)
                return capsule
        return pass_tensor(words, at, argument)

    return write


class PackedArgument:
    """An argument of a packed dtype during a call, and the array that receives its elements."""

    def __init__(self, given: PackedArray, target: Array | None) -> None:
        """Describe the packed bytes as a DLPack tensor."""
        self.given = given
        self.target = target
        rank = len(given.shape)
        self._shape = (ctypes.c_int64 * max(rank, 1))(*given.shape)
        code, bits = divmod(dtype_code(given.dtype), 256)
        start = ctypes.addressof(self._shape)
        self._tensor = DLTensor(
            given.data.ctypes.data, layout.HOST, 0, rank, code, bits, 1, start, None, 0
        )

    @property
    def description(self) -> int:
        """The address of the DLPack tensor."""
        return ctypes.addressof(self._tensor)

    def finish(self) -> None:
        """Copy the elements to the array after the call."""
        if self.target is not None:
            self.target[...] = self.given.unpack()


def pass_packed(dtype: DType, *, written: bool) -> ArgumentWriter:
    """Return the writer of the native description of a packed tensor.

    An array of ``ml_dtypes`` with one element per item is packed into a copy; if the parameter is
    written, the result is copied back.
    """

    def write(words: Words, at: int, argument: Any) -> object:
        target: Array | None = None
        writable = True
        if isinstance(argument, np.ndarray) and plain_array(argument).dtype == dtype.numpy:
            target = plain_array(argument)
            writable = target.flags.writeable
            argument = PackedArray.of(target, dtype)
        if not isinstance(argument, PackedArray):
            return pass_tensor(words, at, argument)
        made = PackedArgument(argument, target if written and writable else None)
        writable = writable and argument.data.flags.writeable
        words[at] = layout.FORM_DLPACK | (0 if writable else READ_ONLY)
        words[at + 1] = made.description
        return made

    return write


def plain_array(argument: Any) -> NDArray[Any]:
    """Return an array of type ``ndarray`` itself of the same memory; reject a masked array."""
    if isinstance(argument, np.ma.MaskedArray):
        raise RejectedError(
            "masked arrays are not supported", "x.filled(value) replaces the masked elements"
        )
    return np.asarray(argument)


def _pass_other(words: Words, at: int, argument: Any) -> object:
    if isinstance(argument, np.ndarray | np.generic):
        array = plain_array(argument)
        return pass_tensor(words, at, array), array
    check_bits(argument)
    export = getattr(argument, "__dlpack__", None)
    if export is None:
        raise TypeError(f"type {type(argument).__name__} does not support DLPack")
    try:
        capsule = export(max_version=(1, 0))
    except TypeError:
        capsule = export()
    if _is_valid(capsule, _VERSIONED):
        managed = _get_pointer(capsule, _VERSIONED)
        major = ctypes.c_uint32.from_address(managed).value
        if major != _MAJOR:
            raise TypeError(f"DLPack version {major} is not supported, only version {_MAJOR}")
        flags = ctypes.c_uint64.from_address(managed + 24).value
        words[at] = layout.FORM_DLPACK | (READ_ONLY if flags & 1 else 0)
        words[at + 1] = managed + 32
    else:
        words[at] = layout.FORM_DLPACK
        words[at + 1] = _get_pointer(capsule, _PLAIN)
    _check_memory(words[at + 1], argument)
    return capsule


def check_bits(argument: Any) -> None:
    """Check that the memory of a PyTorch tensor contains its values, not their negatives."""
    negative = getattr(argument, "is_neg", None)
    if negative is not None and negative():
        raise RejectedError("its negative bit is set", "x.resolve_neg() returns its values")
    conjugate = getattr(argument, "is_conj", None)
    if conjugate is not None and conjugate():
        raise RejectedError("its conjugate bit is set", "x.resolve_conj() returns its values")


def _check_memory(tensor: int, argument: Any) -> None:
    """Check that a part of a PyTorch tensor without memory is not passed.

    Its address is the offset of the part, which is not null.
    """
    start = getattr(argument, "storage_offset", None)
    if start is None or not (first := start()):
        return
    address = ctypes.c_uint64.from_address(tensor).value
    if address == first * argument.element_size():
        raise RejectedError(Message.NULL_DATA.format(), NO_MEMORY)


def pass_integer(words: Words, at: int, argument: Any) -> object:
    """Write the native description of an integer.

    Raises
    ------
    OverflowError
        If it does not fit into 64 bits.
    """
    value = operator.index(argument)
    if not _LEAST <= value <= _MOST:
        raise OverflowError
    words[at] = layout.FORM_INTEGER
    words[at + 1] = value
    return None


def argument_type_error(
    spec: FunctionSpec, param: ParamSpec, argument: Any, cause: Exception
) -> Exception:
    """Return the error of an argument that is not an integer, an array, or a DLPack tensor."""
    if param.form == "integer" and isinstance(cause, OverflowError):
        return _integer_range_error(spec, param, argument)
    hint = "np.asarray(x) converts to an array"
    if param.form != "tensor":
        hint = "int(x) converts to an integer"
    elif isinstance(cause, RejectedError):
        hint = cause.hint
    expected = "an integer" if param.form == "integer" else "an array or a DLPack tensor"
    return ArgumentTypeError(
        Message.ARGUMENT_TYPE.format(
            kind=expected,
            actual_type=type(argument).__name__,
            reason="" if param.form == "integer" else f" ({cause})",
        ),
        where=parameter_location(spec.name, param),
        hint=hint,
        details={"function": spec.name, "parameter": param.name},
        excerpts=signature_excerpt(spec, param),
    )


def _integer_range_error(spec: FunctionSpec, param: ParamSpec, argument: Any) -> Exception:
    value = operator.index(argument)
    shown = str(value) if value.bit_length() <= _SHOWN_BITS else f"one of {value.bit_length()} bits"
    return SizeError(
        Message.INTEGER_RANGE.format(actual=shown),
        where=parameter_location(spec.name, param),
        hint=f"pass an integer from {_LEAST} to {_MOST}",
        details={"function": spec.name, "parameter": param.name, "bits": value.bit_length()},
        excerpts=signature_excerpt(spec, param),
    )


class _Managed:
    """A DLPack producer of one managed tensor, which can be consumed once."""

    __slots__ = ("_capsule",)

    def __init__(self, address: int) -> None:
        self._capsule: object = _new_capsule(address, _VERSIONED, None)

    def __dlpack__(self, **_: object) -> object:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def take_result(address: int) -> NDArray[Any]:
    """Return a managed tensor as a NumPy array, which frees it when it is destroyed."""
    managed: Any = _Managed(address)
    return np.from_dlpack(managed)


def address_of(array: Array) -> tuple[int, object]:
    """Return the address of the elements of an array, packed if its dtype is, and their owner."""
    dtype = from_numpy(array.dtype)
    memory = storage_of(array, dtype) if dtype.is_packed else array
    return memory.ctypes.data, memory


def take_extension(address: int, dtype: DType) -> Array:
    """Return a managed tensor of an extension type of NumPy as a NumPy array."""
    return _take_bits(address).view(dtype.numpy)


def _take_bits(address: int) -> NDArray[Any]:
    """Return a managed tensor of a dtype that NumPy cannot import as unsigned integers."""
    tensor: DLTensor = Versioned.from_address(address).tensor
    tensor.code, tensor.bits = u8.dlpack, max(tensor.bits, BYTE)
    return take_result(address)


def take_packed(address: int, dtype: DType) -> Array:
    """Return a managed tensor of a packed dtype as an array with one element per item."""
    managed = _take_bits(address)
    size = storage_bytes(managed.size, dtype)
    # The array has one byte per element, the memory only those of the packed elements.
    data: NDArray[np.uint8] = np.lib.stride_tricks.as_strided(managed, (size,), (1,))
    return unpack(data, managed.shape, dtype)


def as_result(argument: Any) -> Any:
    """Return an argument that was written in place as an array of the same memory."""
    if isinstance(argument, np.ndarray):
        return plain_array(argument)
    if isinstance(argument, PackedArray):
        return argument
    return np.from_dlpack(argument)


def result_converter(result: ResultSpec) -> Any:
    """Return the function that converts a managed tensor to a result."""
    dtype = dtype_named(result.dtype)
    if dtype.is_packed:
        return partial(take_packed, dtype=dtype)
    if dtype.is_extension:
        return partial(take_extension, dtype=dtype)
    return take_result


def load_compact(constant: Constant) -> Array:
    """Load a constant; copy it if it is not compact or not aligned to its elements."""
    array = np.asarray(constant.load())
    expected = constant.dtype.numpy
    if array.dtype != expected or tuple(array.shape) != tuple(constant.shape):
        raise MissingConstantError(
            f"constant {constant.source or '?'}: expected {expected}{tuple(constant.shape)} "
            f"as declared, got {array.dtype}{array.shape}"
        )
    fits = array.flags.c_contiguous and array.ctypes.data % constant.dtype.alignment == 0
    return array if fits else np.array(array, order="C")
