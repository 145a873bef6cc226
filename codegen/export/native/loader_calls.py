"""Calls of native functions with NumPy arrays: a part of the Python loader, without other imports.

An export contains the text after the marker; it replaces a line of ``loader.py``.
"""

from __future__ import annotations

# @BEGIN@
import ctypes

_PYTHON_FUNCTIONS = (
    "PyObject_GetAttr", "PyCapsule_GetPointer", "PyCapsule_New", "PyTuple_GetItem",
    "PyTuple_Size", "PyTuple_New", "PyTuple_SetItem", "Py_IncRef", "Py_DecRef",
    "PyEval_SaveThread", "PyEval_RestoreThread", "PyErr_Clear", "PyErr_Occurred",
    "PyLong_AsLongLong", "PyObject_CallFunction", "PyMem_RawMalloc", "PyMem_RawFree",
)  # fmt: skip
_ARRAY_KINDS = (0, 1, 2, 5, 6)
"""The DLPack codes of the dtypes that NumPy itself has."""


class _Memory(ctypes.Structure):
    """The context of the runtime: memory functions of the C library, and the thread pool."""

    _fields_ = [("allocate", ctypes.c_void_p), ("free", ctypes.c_void_p), ("pool", ctypes.c_void_p)]


def _memory(pool: int) -> _Memory:
    process = ctypes.CDLL(None)
    allocate, free = (
        ctypes.cast(getattr(process, name), ctypes.c_void_p).value
        for name in ("aligned_alloc", "free")
    )
    return _Memory(allocate, free, pool)


class _Owned:
    """The owner of a result; the capsule frees the memory after the last array that uses it."""

    __slots__ = ("__array_struct__",)

    def __init__(self, capsule) -> None:
        self.__array_struct__ = capsule


class _Python:
    """The addresses of functions of Python for the library, which is not linked to Python.

    ``fail`` raises the error of a code and a message.
    """

    def __init__(self, fail) -> None:
        functions = getattr(ctypes, "pythonapi", None)
        self.available = all(hasattr(functions, name) for name in _PYTHON_FUNCTIONS)
        self._objects = ("__array_struct__", NotImplemented, fail)
        if self.available:
            addresses = [
                ctypes.cast(getattr(functions, name), ctypes.c_void_p).value
                for name in _PYTHON_FUNCTIONS
            ]
            addresses += map(id, self._objects)
            self._table = (ctypes.c_void_p * len(addresses))(*addresses)

    @property
    def address(self) -> int:
        """The address of the table."""
        return ctypes.addressof(self._table)


def _takes_arrays(facts: dict, dtypes: dict) -> bool:
    """Return whether all tensors of a function are NumPy arrays without conversion."""
    tensors = [p for p in facts["params"] if p["form"] == "tensor"]
    rows = [dtypes[t["dtype"]] for t in (*tensors, *facts["results"])]
    states = any(p["access"] == "state" for p in facts["params"])
    return not states and all(code in _ARRAY_KINDS and bits >= 8 for _, code, bits in rows)
