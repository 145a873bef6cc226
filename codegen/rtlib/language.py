"""The Python subset of the run-time library: intrinsic functions for memory, atomics, and calls.

Functions of the library are normal Python functions with the decorator :func:`rtlib_function`.
They use only this subset, which :mod:`.translate` translates to host IR:

- parameters and results of type ``int`` (64 bits), :data:`Ptr`, :data:`Code`, or None
- assignments to names, ``if``, ``while``, ``return``, and ``for`` over ``range(stop)`` or
  ``range(start, stop)``
- integer arithmetic, comparisons, ``and``, ``or``, ``not``, ``min``, and ``max``
- integer constants of modules
- calls of library functions and of the intrinsic functions of this module

Integer arithmetic wraps around at 64 bits in compiled code. ``and`` and ``or`` evaluate both
operands. A condition of ``while`` contains no calls except loads and :func:`move`.

Every intrinsic function also has a Python implementation on real memory. So the same source runs
interpreted, which is the reference for its compiled form. The interpreted atomics are not atomic.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any, NewType, TypeVar, get_type_hints

Ptr = NewType("Ptr", int)
"""An address."""

Code = NewType("Code", int)
"""An error code: 0 for success, else the number of the error."""

NULL = Ptr(0)

_Function = TypeVar("_Function", bound=Callable[..., Any])

RTLIB_FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""All functions of the run-time library by symbol name, in the order of definition."""

_KEPT: list[ctypes.Array[ctypes.c_char]] = []


def rtlib_function(function: _Function) -> _Function:
    """Register a function of the run-time library; its symbol has the prefix ``tw_``."""
    RTLIB_FUNCTIONS[f"tw_{function.__name__}"] = function
    return function


def load_u8(base: Ptr, offset: int) -> int:
    """Load a byte."""
    return ctypes.c_uint8.from_address(base + offset).value


def load_u16(base: Ptr, offset: int) -> int:
    """Load an unsigned 16-bit integer."""
    return ctypes.c_uint16.from_address(base + offset).value


def load_i32(base: Ptr, offset: int) -> int:
    """Load a signed 32-bit integer."""
    return ctypes.c_int32.from_address(base + offset).value


def load_i64(base: Ptr, offset: int) -> int:
    """Load a signed 64-bit integer."""
    return ctypes.c_int64.from_address(base + offset).value


def load_ptr(base: Ptr, offset: int) -> Ptr:
    """Load an address."""
    return Ptr(ctypes.c_uint64.from_address(base + offset).value)


def store_u8(base: Ptr, offset: int, value: int) -> None:
    """Store a byte."""
    ctypes.c_uint8.from_address(base + offset).value = value & 0xFF


def store_u16(base: Ptr, offset: int, value: int) -> None:
    """Store an unsigned 16-bit integer."""
    ctypes.c_uint16.from_address(base + offset).value = value & 0xFFFF


def store_i32(base: Ptr, offset: int, value: int) -> None:
    """Store a signed 32-bit integer."""
    ctypes.c_int32.from_address(base + offset).value = value


def store_i64(base: Ptr, offset: int, value: int) -> None:
    """Store a signed 64-bit integer."""
    ctypes.c_int64.from_address(base + offset).value = value


def store_ptr(base: Ptr, offset: int, value: Ptr) -> None:
    """Store an address."""
    ctypes.c_uint64.from_address(base + offset).value = value


def move(base: Ptr, offset: int) -> Ptr:
    """Return an address plus an offset in bytes."""
    return Ptr(base + offset)


def number(base: Ptr) -> int:
    """Return an address as an integer."""
    return int(base)


def stack(size: int) -> Ptr:
    """Allocate memory that is freed when the function returns (interpreted: never freed)."""
    memory = ctypes.create_string_buffer(size)
    _KEPT.append(memory)
    return Ptr(ctypes.addressof(memory))


def exchange(base: Ptr, offset: int, expected: int, desired: int) -> int:
    """Atomically replace ``expected`` in memory by ``desired``; return the old value."""
    current = load_i64(base, offset)
    if current == expected:
        store_i64(base, offset, desired)
    return current


def publish(base: Ptr, offset: int, value: int) -> None:
    """Store an integer atomically with release ordering."""
    store_i64(base, offset, value)


def observe(base: Ptr, offset: int) -> int:
    """Load an integer atomically with acquire ordering."""
    return load_i64(base, offset)


def pause() -> None:
    """Pause for some cycles in a spin loop."""
    time.sleep(0)


def call_int(function: Ptr, *args: int) -> int:
    """Call a function by address that returns a 64-bit integer."""
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *([ctypes.c_int64] * len(args)))
    return prototype(function)(*args)


def call_ptr(function: Ptr, *args: int) -> Ptr:
    """Call a function by address that returns an address."""
    return Ptr(call_int(function, *args))


def call_code(function: Ptr, *args: int) -> Code:
    """Call a function by address that returns an error code."""
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32, *([ctypes.c_int64] * len(args)))
    return Code(prototype(function)(*args))


def call_nothing(function: Ptr, *args: int) -> None:
    """Call a function by address that returns no value."""
    prototype = ctypes.CFUNCTYPE(None, *([ctypes.c_int64] * len(args)))
    prototype(function)(*args)


def widen(code: Code) -> int:
    """Return an error code as an integer."""
    return int(code)


def function(callee: Callable[..., Any]) -> Ptr:
    """Return the address of a function of the run-time library."""
    native = callback(callee)
    _CALLBACKS.append(native)
    return Ptr(ctypes.cast(native, ctypes.c_void_p).value or 0)


_CALLBACKS: list[Any] = []
_C_TYPES: dict[object, Any] = {
    int: ctypes.c_int64,
    Ptr: ctypes.c_int64,
    Code: ctypes.c_int32,
    type(None): None,
}


def callback(callee: Callable[..., Any]) -> Any:
    """Return a ctypes callback that runs a function of the run-time library interpreted."""
    hints = get_type_hints(callee)
    returns = _C_TYPES[hints.pop("return")]
    return ctypes.CFUNCTYPE(returns, *(_C_TYPES[h] for h in hints.values()))(callee)
