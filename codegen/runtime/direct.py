"""Direct calls of native functions: built-in functions of Python whose code is compiled here.

A call of a small kernel takes less time than Python takes to describe its arguments. A direct call
does that in machine code (:mod:`.direct_code`). It is for functions that only read NumPy arrays and
integers and return new tensors, on CPython with the array layout of NumPy's C interface, which is
checked once.
"""

from __future__ import annotations

import ctypes
import dataclasses
import struct
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, Final, cast

import numpy as np

from ...ir.dtype import DType, dtype as dtype_named
from ...ir.thread import runtime_table
from ...target.target import Target
from ..build.build_objects import own_object
from ..build.native_library import Library
from ..build.rtlib_object import rtlib_address
from ..lower.host.context import dtype_code
from ..manifest import FunctionSpec
from ..rtlib import layout, providers
from . import direct_code as code
from .table import RuntimeTable

DirectCall = Callable[..., Any]
"""A built-in function of the arguments of a native function.

It returns ``NotImplemented`` if the call must be made in Python. Otherwise it returns the new
result, or a tuple of several: an array, or the address of a managed tensor.
"""

_FASTCALL: Final = 0x80
_EMPTY: Final = 184
"""The number of ``PyArray_Empty`` in NumPy's C interface."""
_POINTER: Final = ctypes.c_void_p


class _Method(ctypes.Structure):
    """``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("code", _POINTER),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    )


def direct_call(
    spec: FunctionSpec, entry: int, instance: int, table: RuntimeTable
) -> DirectCall | None:
    """Return the direct call of a native function; None if its calls are made in Python.

    Parameters
    ----------
    spec : FunctionSpec
        The function.
    entry, instance : int
        The addresses of its entry point and of its instance, which the caller keeps alive.
    table : RuntimeTable
        The runtime table of its calls.
    """
    if not _is_direct(spec, table):
        return None
    made = interface()
    if made is None:
        return None
    method, words = made
    addresses = (entry, instance, table.address, len(spec.params), len(spec.results), *words)
    records = [
        struct.pack("<4q", layout.FORM_INTEGER, 0, 0, 0)
        if p.form == "integer"
        else _described(dtype_named(p.dtype))
        for p in spec.params
    ]
    records += [_described(dtype_named(r.dtype)) for r in spec.results]
    record = struct.pack(f"<{len(addresses)}q", *addresses) + b"".join(records)
    return _new_function()(ctypes.byref(method), record, None)


def _is_direct(spec: FunctionSpec, table: RuntimeTable) -> bool:
    """Return whether a function only reads arrays and integers, and returns new tensors."""
    dtypes = [p.dtype for p in (*spec.params, *spec.results) if getattr(p, "form", "") != "integer"]
    return (
        len(spec.params) <= code.MOST_PARAMS
        and 1 <= len(spec.results) <= code.MOST_RESULTS
        and all(p.access == "in" for p in spec.params)
        and all(r.param < 0 for r in spec.results)
        and not any(dtype_named(name).is_packed for name in dtypes)
        and not any(site.kind == "stopped" for site in spec.sites)
        and table.word(runtime_table.ALLOC) == rtlib_address(providers.provide_memory)
        and table.word(runtime_table.DEVICE) == 0
    )


def _described(dtype: DType) -> bytes:
    """Return the record of an array of a dtype."""
    form, own = layout.FORM_NUMPY, np.dtype(dtype.numpy)
    if dtype.is_extension:
        form = layout.FORM_EXTENSION + layout.FORM_DTYPE * dtype_code(dtype)
    _KEPT.setdefault(id(own), own)
    return struct.pack("<4q", form, id(own), ord(own.kind), own.itemsize)


_KEPT: Final[dict[int, object]] = {}
"""The dtypes whose addresses records contain."""


@cache
def _new_function() -> Callable[..., DirectCall]:
    """Return the function of CPython that makes a built-in function."""
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [_POINTER, ctypes.py_object, _POINTER]
    return cast("Callable[..., DirectCall]", new)


@cache
def interface() -> tuple[_Method, tuple[int, ...]] | None:
    """Return the built-in function's code, and the words of records that all functions share.

    None if Python is not CPython with its usual layout of objects, or the layout of NumPy's arrays
    is not the one that the code reads.
    """
    api = numpy_interface()
    if sys.implementation.name != "cpython" or api is None or not has_layout():
        return None
    python = (
        "Py_IncRef", "Py_DecRef", "PyEval_SaveThread", "PyEval_RestoreThread", "PyLong_AsLongLong",
        "PyErr_Occurred", "PyErr_Clear", "PyLong_FromLongLong", "PyTuple_New", "PyTuple_SetItem",
    )  # fmt: skip
    found = [ctypes.cast(getattr(ctypes.pythonapi, name), _POINTER).value or 0 for name in python]
    objects = (id(NotImplemented), id(np.ndarray), id(int))
    address = _library().address("tw_call_direct")
    return _Method(b"call", address, _FASTCALL, None), (*objects, *found, api)


def numpy_interface() -> int | None:
    """Return the address of ``PyArray_Empty``; None if NumPy does not have the C interface of 2."""
    module = getattr(getattr(np, "_core", None), "_multiarray_umath", None)
    capsule = getattr(module, "_ARRAY_API", None)
    if capsule is None or np.lib.NumpyVersion(np.__version__) < "2.0.0":
        return None
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    prototype = ctypes.PYFUNCTYPE(_POINTER, ctypes.py_object, ctypes.c_char_p)
    functions = prototype(ctypes.cast(pointer, _POINTER).value or 0)(capsule, None)
    return _POINTER.from_address(functions + 8 * _EMPTY).value


def has_layout() -> bool:
    """Return whether objects have the fields that the code reads, by reading those of an array."""
    if struct.calcsize("P") != 8 or object.__basicsize__ != 16:
        return False
    array = np.zeros((3, 5), np.float32)[:, ::2]
    start = id(array)

    def word(offset: int) -> int:
        return ctypes.c_int64.from_address(start + offset).value

    def words(offset: int) -> tuple[int, ...]:
        return tuple((ctypes.c_int64 * 2).from_address(word(offset)))

    text = b"content!"
    return (
        word(code.OBJECT_TYPE) == id(np.ndarray)
        and word(code.ARRAY_DATA) == array.ctypes.data
        and ctypes.c_int32.from_address(start + code.ARRAY_RANK).value == 2
        and words(code.ARRAY_SHAPE) == array.shape
        and words(code.ARRAY_STRIDES) == array.strides
        and word(code.ARRAY_DTYPE) == id(array.dtype)
        and ctypes.c_int32.from_address(start + code.ARRAY_FLAGS).value == array.flags.num
        and ctypes.string_at(id(text) + code.BYTES_CONTENT, len(text)) == text
    )


@cache
def _library() -> Library:
    """Return the compiled code, which is never unloaded."""
    return Library([own_object("direct calls", _llvm_text, Target("cpu"))], Target("cpu"))


def _llvm_text() -> str:
    from ..llvm import emit_module
    from ..lower.host.to_thread import lower_host
    from ..rtlib.translate import translate

    translated = [translate(n, f, code.DIRECT_FUNCTIONS) for n, f in code.DIRECT_FUNCTIONS.items()]
    functions = [dataclasses.replace(lower_host(f), exported=True) for f in translated]
    return emit_module(functions, Target("cpu"), sections=True)
