"""Tensors across the border: what callers pass, and what they get.

Going in, a NumPy array shows its array interface, anything else its DLPack tensor; no bytes move.
Coming out, a result owns native memory and frees it without Python: it is a NumPy array that
anything which speaks DLPack can take over.
"""

from __future__ import annotations

import ctypes
import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...ir.dtype import bf16
from ...ir.host import layout
from ..manifest import FunctionSpec, ParamSpec, ResultSpec
from .errors import ArgumentTypeError
from .explain import place

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
"""Added to an argument's form: it may not be written."""

Words = ctypes.Array[ctypes.c_int64]


def pass_tensor(words: Words, at: int, argument: Any) -> object:
    """Describe a tensor to native code; what is returned has to live as long as the call."""
    if type(argument) is np.ndarray:
        capsule = argument.__array_struct__
        words[at + 1] = _get_pointer(capsule, None)
        return capsule
    return _pass_other(words, at, argument)


def pass_bfloat(words: Words, at: int, argument: Any) -> object:
    """Describe a tensor to a parameter of bfloat16, which NumPy knows by an extension type."""
    if isinstance(argument, np.ndarray) and (array := _array(argument)).dtype == bf16.numpy:
        words[at] = layout.FORM_BFLOAT
        capsule = array.__array_struct__
        words[at + 1] = _get_pointer(capsule, None)
        return capsule
    return pass_tensor(words, at, argument)


def _array(argument: Any) -> NDArray[Any]:
    return np.asarray(argument)


def _pass_other(words: Words, at: int, argument: Any) -> object:
    if isinstance(argument, np.ndarray | np.generic):
        array = _array(argument)
        return pass_tensor(words, at, array), array
    export = getattr(argument, "__dlpack__", None)
    if export is None:
        raise TypeError(f"a {type(argument).__name__} is no tensor")
    try:
        capsule = export(max_version=(1, 0))
    except TypeError:
        capsule = export()
    if _is_valid(capsule, _VERSIONED):
        managed = _get_pointer(capsule, _VERSIONED)
        flags = ctypes.c_uint64.from_address(managed + 24).value
        words[at] = layout.FORM_DLPACK | (READ_ONLY if flags & 1 else 0)
        words[at + 1] = managed + 32
    else:
        words[at] = layout.FORM_DLPACK
        words[at + 1] = _get_pointer(capsule, _PLAIN)
    return capsule


def pass_integer(words: Words, at: int, argument: Any) -> object:
    """Pass an integer."""
    words[at] = layout.FORM_INTEGER
    words[at + 1] = operator.index(argument)
    return None


def refuse(spec: FunctionSpec, param: ParamSpec, argument: Any, why: Exception) -> Exception:
    """Make the error for an argument that shows neither interface."""
    wanted = "an integer" if param.form == "integer" else "an array, or anything with DLPack"
    return ArgumentTypeError(
        f"expected {wanted}, got {type(argument).__name__}: {why}",
        where=place(spec.name, param),
        hint="np.asarray(x) makes an array" if param.form == "tensor" else "",
        details={"function": spec.name, "parameter": param.name},
    )


class _Managed:
    """Hands a managed tensor to whoever asks for DLPack, once."""

    __slots__ = ("_capsule",)

    def __init__(self, address: int) -> None:
        self._capsule: object = _new_capsule(address, _VERSIONED, None)

    def __dlpack__(self, **_: object) -> object:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def take_result(address: int) -> NDArray[Any]:
    """Give a managed tensor to NumPy, which frees it when the array goes."""
    managed: Any = _Managed(address)
    return np.from_dlpack(managed)


def take_bfloat(address: int) -> NDArray[Any]:
    """The same for bfloat16, whose bits travel as 16-bit integers."""
    return take_result(address).view(bf16.numpy)


def as_result(argument: Any) -> Any:
    """Give back an argument that was written in place, as an array over the same memory."""
    if isinstance(argument, np.ndarray):
        return _array(argument)
    return np.from_dlpack(argument)


def taker(result: ResultSpec) -> Any:
    """Choose how a result is taken over."""
    return take_bfloat if result.dtype == bf16.name else take_result
