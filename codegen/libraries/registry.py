"""The registry: names of library functions, and the addresses behind them.

A library function is ``i32 f(user, operands, count)``; ``user`` is what it was registered with. An
operand is four words: data, rank, address of
the dimensions, dtype (DLPack code * 256 + bits); inputs come first, then outputs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...ir.errors import TilewrightError

Operand: TypeAlias = NDArray[Any]

_PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
_KINDS = {0: "i", 1: "u", 2: "f", 6: "b"}


class UnknownLibraryFunctionError(TilewrightError):
    """A program calls a library function that is not registered here."""

    title = "Unknown library function"


@dataclass(frozen=True, slots=True)
class _Entry:
    """Two words for native code, the address and the user's pointer, and what they rest on."""

    words: ctypes.Array[ctypes.c_int64]
    keep: Any


_REGISTRY: dict[str, _Entry] = {}


def register_address(name: str, address: int, *, user: int = 0, keep: Any = None) -> None:
    """Register a native function by its address.

    ``user`` is handed to it first; ``keep`` lives as long as the process, as the address has to.
    """
    _KEPT.append(_REGISTRY.get(name))
    _REGISTRY[name] = _Entry((ctypes.c_int64 * 2)(address, user), keep)


_KEPT: list[_Entry | None] = []


def register_callback(name: str, function: Callable[[Sequence[Operand]], int | None]) -> None:
    """Register a Python function, for tests and for trying things out.

    It is called under the GIL with one array an operand, the outputs last, which it fills; what
    it returns (0 or None for success) is the code of the call. An exception is code -1.
    """

    def call(_user: int, operands: int, count: int) -> int:
        try:
            return int(function([_array(operands + 32 * k) for k in range(count)]) or 0)
        except Exception:  # noqa: BLE001  # nothing may pass through native frames
            return -1

    native = _PROTOTYPE(call)
    register_address(name, ctypes.cast(native, ctypes.c_void_p).value or 0, keep=native)


def _array(operand: int) -> Operand:
    data, rank, dims, dtype = (ctypes.c_int64 * 4).from_address(operand)
    shape = tuple((ctypes.c_int64 * rank).from_address(dims)) if rank else ()
    wanted = np.dtype(f"{_KINDS.get(dtype // 256, 'u')}{dtype % 256 // 8}")
    size = int(np.prod(shape, dtype=np.int64)) * wanted.itemsize
    memory = memoryview((ctypes.c_char * size).from_address(data)).cast("B")
    return np.frombuffer(memory, wanted).reshape(shape)


def library_address(name: str) -> int:
    """Give where the two words of a library function are: its address and its user's pointer.

    Raises
    ------
    UnknownLibraryFunctionError
        If there is none of that name; the message lists those there are.
    """
    if name not in _REGISTRY:
        from . import blas

        blas.register()
    if name not in _REGISTRY:
        raise UnknownLibraryFunctionError(
            f"no library function {name!r}",
            hint=f"registered are {', '.join(library_names()) or 'none'}",
        )
    return ctypes.addressof(_REGISTRY[name].words)


def library_names() -> tuple[str, ...]:
    """List the registered names."""
    return tuple(sorted(_REGISTRY))
