"""The registry of library functions: names and addresses.

A library function has the signature ``i32 f(user, operands, count)``; ``user`` is the pointer it
was registered with. An operand consists of four words: address of the data, rank, address of the
dimensions, dtype (DLPack code * 256 + bits). Inputs precede outputs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...ir.interpreter.libraries import UnknownLibraryFunctionError

Operand: TypeAlias = NDArray[Any]

_PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
_KINDS = {0: "i", 1: "u", 2: "f", 6: "b"}


@dataclass(frozen=True, slots=True)
class _Entry:
    """Function address and user pointer for native code, and the object that owns them."""

    words: ctypes.Array[ctypes.c_int64]
    owner: Any


_REGISTRY: dict[str, _Entry] = {}


def register_address(name: str, address: int, *, user: int = 0, owner: Any = None) -> None:
    """Register a native function by its address, which must stay valid until the process exits.

    Parameters
    ----------
    name : str
        Name of the library function; an existing function of this name is replaced.
    address : int
        Address of the function.
    user : int
        First argument of every call.
    owner : object, optional
        Object that keeps the function alive; it is never released.
    """
    _REPLACED.append(_REGISTRY.get(name))
    _REGISTRY[name] = _Entry((ctypes.c_int64 * 2)(address, user), owner)


_REPLACED: list[_Entry | None] = []
"""Replaced entries, which loaded functions may still refer to."""


def register_callback(name: str, function: Callable[[Sequence[Operand]], int | None]) -> None:
    """Register a Python function, for tests and prototypes.

    It is called with the GIL held and one array per operand, inputs first; it writes the outputs.
    It returns the error code of the call, 0 or None for success. An exception becomes code -1.
    """

    def call(_user: int, operands: int, count: int) -> int:
        try:
            return int(function([_array(operands + 32 * k) for k in range(count)]) or 0)
        except Exception:  # noqa: BLE001  # exceptions must not cross native frames
            return -1

    native = _PROTOTYPE(call)
    register_address(name, ctypes.cast(native, ctypes.c_void_p).value or 0, owner=native)


def _array(operand: int) -> Operand:
    data, rank, dims, dtype = (ctypes.c_int64 * 4).from_address(operand)
    shape = tuple((ctypes.c_int64 * rank).from_address(dims)) if rank else ()
    element = np.dtype(f"{_KINDS.get(dtype // 256, 'u')}{dtype % 256 // 8}")
    size = int(np.prod(shape, dtype=np.int64)) * element.itemsize
    memory = memoryview((ctypes.c_char * size).from_address(data)).cast("B")
    return np.frombuffer(memory, element).reshape(shape)


def library_address(name: str) -> int:
    """Return the address of two words: the address of a library function and its user pointer.

    Raises
    ------
    UnknownLibraryFunctionError
        If no library function has this name; the hint lists the registered names.
    """
    if name not in _REGISTRY:
        from . import blas

        blas.register()
    if name not in _REGISTRY:
        known = ", ".join(map(repr, library_names()))
        raise UnknownLibraryFunctionError(
            f"no library function {name!r}",
            hint=f"registered library functions are {known}" if known else "none is registered",
        )
    return ctypes.addressof(_REGISTRY[name].words)


def library_names() -> tuple[str, ...]:
    """Return the registered names, sorted."""
    return tuple(sorted(_REGISTRY))
