"""The words of the run-time support: memory, addresses, atomics and calls of the machine.

Support functions are written in a small subset of Python (integers, addresses, ``if``, ``while``,
``for`` over a range) and translated to host IR by :mod:`.translate`. The words below also *work*
in Python, on real memory, so the same source runs interpreted and is the oracle of its own
compiled form.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any, NewType, TypeVar, get_type_hints

Ptr = NewType("Ptr", int)
"""An address."""

Code = NewType("Code", int)
"""What a function that may fail returns: 0, or the number of the error."""

NULL = Ptr(0)

_Function = TypeVar("_Function", bound=Callable[..., Any])

SUPPORT: dict[str, Callable[..., Any]] = {}
"""Every support function by its native name, in the order of definition."""

_KEPT: list[ctypes.Array[ctypes.c_char]] = []


def support(function: _Function) -> _Function:
    """Register a function that is compiled into every executable."""
    SUPPORT[f"tw_{function.__name__}"] = function
    return function


def load_u8(base: Ptr, offset: int) -> int:
    """Read a byte."""
    return ctypes.c_uint8.from_address(base + offset).value


def load_u16(base: Ptr, offset: int) -> int:
    """Read an unsigned 16-bit integer."""
    return ctypes.c_uint16.from_address(base + offset).value


def load_i32(base: Ptr, offset: int) -> int:
    """Read a signed 32-bit integer."""
    return ctypes.c_int32.from_address(base + offset).value


def load_i64(base: Ptr, offset: int) -> int:
    """Read a signed 64-bit integer."""
    return ctypes.c_int64.from_address(base + offset).value


def load_ptr(base: Ptr, offset: int) -> Ptr:
    """Read an address."""
    return Ptr(ctypes.c_uint64.from_address(base + offset).value)


def store_u8(base: Ptr, offset: int, value: int) -> None:
    """Write a byte."""
    ctypes.c_uint8.from_address(base + offset).value = value & 0xFF


def store_u16(base: Ptr, offset: int, value: int) -> None:
    """Write an unsigned 16-bit integer."""
    ctypes.c_uint16.from_address(base + offset).value = value & 0xFFFF


def store_i32(base: Ptr, offset: int, value: int) -> None:
    """Write a signed 32-bit integer."""
    ctypes.c_int32.from_address(base + offset).value = value


def store_i64(base: Ptr, offset: int, value: int) -> None:
    """Write a signed 64-bit integer."""
    ctypes.c_int64.from_address(base + offset).value = value


def store_ptr(base: Ptr, offset: int, value: Ptr) -> None:
    """Write an address."""
    ctypes.c_uint64.from_address(base + offset).value = value


def move(base: Ptr, offset: int) -> Ptr:
    """Move an address by a number of bytes."""
    return Ptr(base + offset)


def number(base: Ptr) -> int:
    """Give an address as an integer."""
    return int(base)


def stack(size: int) -> Ptr:
    """Give memory that lives until the function returns (interpreted: as long as the process)."""
    memory = ctypes.create_string_buffer(size)
    _KEPT.append(memory)
    return Ptr(ctypes.addressof(memory))


def exchange(base: Ptr, offset: int, expected: int, desired: int) -> int:
    """Write ``desired`` where memory holds ``expected``, at once, and give what it held."""
    held = load_i64(base, offset)
    if held == expected:
        store_i64(base, offset, desired)
    return held


def publish(base: Ptr, offset: int, value: int) -> None:
    """Write an integer; who observes it sees all that was written before."""
    store_i64(base, offset, value)


def observe(base: Ptr, offset: int) -> int:
    """Read an integer that another thread may have published."""
    return load_i64(base, offset)


def pause() -> None:
    """Let a processor that waits in a loop rest for some cycles."""
    time.sleep(0)


def call_int(function: Ptr, *args: int) -> int:
    """Call an address that returns a 64-bit integer."""
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *([ctypes.c_int64] * len(args)))
    return prototype(function)(*args)


def call_ptr(function: Ptr, *args: int) -> Ptr:
    """Call an address that returns an address."""
    return Ptr(call_int(function, *args))


def call_code(function: Ptr, *args: int) -> Code:
    """Call an address that returns an error code."""
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32, *([ctypes.c_int64] * len(args)))
    return Code(prototype(function)(*args))


def call_nothing(function: Ptr, *args: int) -> None:
    """Call an address that returns nothing."""
    prototype = ctypes.CFUNCTYPE(None, *([ctypes.c_int64] * len(args)))
    prototype(function)(*args)


def widen(code: Code) -> int:
    """Give an error code as an integer."""
    return int(code)


def function(callee: Callable[..., Any]) -> Ptr:
    """Give the address of a support function."""
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
    """Make a support function, interpreted, callable from native code."""
    hints = get_type_hints(callee)
    returns = _C_TYPES[hints.pop("return")]
    return ctypes.CFUNCTYPE(returns, *(_C_TYPES[h] for h in hints.values()))(callee)
