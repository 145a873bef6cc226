"""Machine code between Python and native functions: calls with NumPy arrays and integers.

:func:`call_direct` is the code of a built-in function of Python. It reads the fields of NumPy
arrays, calls the entry point of a native function, and copies small results to new arrays, without
executing Python code. It does not report errors: for arguments that it does not read, and for calls
that fail, it returns ``NotImplemented``, and the caller makes the call in Python.

The functions are in the subset of :mod:`..rtlib.language`, and are compiled as the run-time library
is, but are not a part of it, because executables and exports do not use them. They run with the
interpreter's lock, except for the call of the native function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from ..rtlib import layout
from ..rtlib.language import (
    NULL,
    Ptr,
    call_code,
    call_int,
    call_nothing,
    call_ptr,
    load_i32,
    load_i64,
    load_ptr,
    load_u8,
    move,
    stack,
    store_i32,
    store_i64,
    store_ptr,
    store_u8,
    widen,
)

DIRECT_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {}
"""All functions of this module by symbol name, in the order of definition."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


def direct_function(function: _Function) -> _Function:
    """Register a function; its symbol has the prefix ``tw_``."""
    DIRECT_FUNCTIONS[f"tw_{function.__name__}"] = function
    return function


# Fields of objects of CPython, and of arrays of NumPy. `direct.py` checks them.

OBJECT_TYPE: Final = object.__basicsize__ - 8
BYTES_CONTENT: Final = bytes.__basicsize__ - 1
ARRAY_DATA: Final = object.__basicsize__
ARRAY_RANK: Final = ARRAY_DATA + 8
ARRAY_SHAPE: Final = ARRAY_DATA + 16
ARRAY_STRIDES: Final = ARRAY_DATA + 24
ARRAY_DTYPE: Final = ARRAY_DATA + 40
ARRAY_FLAGS: Final = ARRAY_DATA + 48

# The record of a native function, which is the content of a `bytes` object.

ENTRY: Final = 0
"""The entry point and its instance."""
INSTANCE: Final = 8
TABLE: Final = 16
"""The runtime table."""
PARAMS: Final = 24
"""The number of parameters, and of results."""
RESULTS: Final = 32
NOT_IMPLEMENTED: Final = 40
"""The object ``NotImplemented``, and the types of arrays and of integers."""
ARRAY_TYPE: Final = 48
INTEGER_TYPE: Final = 56
INCREMENT: Final = 64
"""Functions of the C interfaces of Python and NumPy."""
DECREMENT: Final = 72
SAVE: Final = 80
RESTORE: Final = 88
TO_INTEGER: Final = 96
OCCURRED: Final = 104
CLEAR: Final = 112
FROM_INTEGER: Final = 120
NEW_TUPLE: Final = 128
SET_ITEM: Final = 136
EMPTY: Final = 144
FIRST_PARAM: Final = 152
"""The records of the parameters, then of the results."""

ARGUMENT_FORM: Final = 0
"""The form of the argument in the call record, without flags."""
ARGUMENT_DTYPE: Final = 8
"""The dtype of NumPy of an array."""
ARGUMENT_KIND: Final = 16
"""The code of the type kind in NumPy, and the size of an element in bytes."""
ARGUMENT_SIZE: Final = 24
ARGUMENT_BYTES: Final = 32

MOST_PARAMS: Final = 8
MOST_RESULTS: Final = 4
MOST_RANK: Final = 8
"""The largest numbers of parameters, results, and dimensions of a direct call."""
COPIED_BYTES: Final = 4096
"""The size up to which a result is copied to memory of NumPy.

A larger result owns native memory, and is returned as the address of its managed tensor.
"""

_RECORD = layout.CALL_OPERANDS + 16 * MOST_PARAMS + 8 * MOST_RESULTS
_INTERFACE = 56 + 16 * MOST_RANK
"""The size of a ``PyArrayInterface``, followed by copies of the shape and the strides."""
_INTERFACES = _INTERFACE * MOST_PARAMS
_NOT_SWAPPED = 0x200


@direct_function
def decline(record: Ptr) -> Ptr:
    """Return ``NotImplemented``."""
    result = load_ptr(record, NOT_IMPLEMENTED)
    call_nothing(load_ptr(record, INCREMENT), result)
    return result


@direct_function
def write_integer(record: Ptr, argument: Ptr, operand: Ptr) -> int:
    """Write an integer of 64 bits to a call record; return whether it is one."""
    if load_i64(argument, OBJECT_TYPE) != load_i64(record, INTEGER_TYPE):
        return 0
    value = call_int(load_ptr(record, TO_INTEGER), argument)
    if value == -1:
        raised = call_ptr(load_ptr(record, OCCURRED))
        if raised != NULL:
            call_nothing(load_ptr(record, CLEAR))
            return 0
    store_i64(operand, 0, layout.FORM_INTEGER)
    store_i64(operand, 8, value)
    return 1


@direct_function
def write_array(record: Ptr, param: Ptr, argument: Ptr, operand: Ptr, interface: Ptr) -> int:
    """Write an array to a call record; return whether it is one with the dtype of the parameter.

    The shape and the strides are copied, because another thread may assign them during the call.
    """
    if load_i64(argument, OBJECT_TYPE) != load_i64(record, ARRAY_TYPE):
        return 0
    if load_i64(argument, ARRAY_DTYPE) != load_i64(param, ARGUMENT_DTYPE):
        return 0
    rank = load_i32(argument, ARRAY_RANK)
    if rank > MOST_RANK:
        return 0
    shape = move(interface, 56)
    strides = move(shape, 8 * MOST_RANK)
    for k in range(rank):
        store_i64(shape, 8 * k, load_i64(load_ptr(argument, ARRAY_SHAPE), 8 * k))
        store_i64(strides, 8 * k, load_i64(load_ptr(argument, ARRAY_STRIDES), 8 * k))
    store_i32(interface, 0, 2)
    store_i32(interface, 4, rank)
    store_u8(interface, 8, load_i64(param, ARGUMENT_KIND))
    store_i32(interface, 12, load_i64(param, ARGUMENT_SIZE))
    store_i32(interface, 16, load_i32(argument, ARRAY_FLAGS) | _NOT_SWAPPED)
    store_ptr(interface, 24, shape)
    store_ptr(interface, 32, strides)
    store_ptr(interface, 40, load_ptr(argument, ARRAY_DATA))
    store_i64(operand, 0, load_i64(param, ARGUMENT_FORM))
    store_ptr(operand, 8, interface)
    return 1


@direct_function
def release_block(block: Ptr) -> None:
    """Free a managed tensor."""
    call_nothing(load_ptr(block, 16), block)


@direct_function
def new_object(record: Ptr, result: Ptr, block: Ptr) -> Ptr:
    """Return a new array with the elements of a managed tensor, or its address as an integer.

    Null if an exception was raised; the tensor is freed unless its address is returned.
    """
    rank = load_i32(block, 48)
    shape = load_ptr(block, 56)
    size = load_i64(result, ARGUMENT_SIZE)
    for k in range(rank):
        size = size * load_i64(shape, 8 * k)
    if size > COPIED_BYTES:
        return call_ptr(load_ptr(record, FROM_INTEGER), block)
    dtype = load_ptr(result, ARGUMENT_DTYPE)
    call_nothing(load_ptr(record, INCREMENT), dtype)
    array = call_ptr(load_ptr(record, EMPTY), rank, shape, dtype, 0)
    if array != NULL:
        source = load_ptr(block, 32)
        target = load_ptr(array, ARRAY_DATA)
        words = size // 8
        for k in range(words):
            store_i64(target, 8 * k, load_i64(source, 8 * k))
        for k in range(8 * words, size):
            store_u8(target, k, load_u8(source, k))
    release_block(block)
    return array


@direct_function
def new_objects(record: Ptr, results: Ptr, blocks: Ptr, count: int) -> Ptr:
    """Return a tuple with an object per managed tensor; null if an exception was raised."""
    made = call_ptr(load_ptr(record, NEW_TUPLE), count)
    for k in range(count):
        block = load_ptr(blocks, 8 * k)
        if made == NULL:
            release_block(block)
        else:
            item = new_object(record, move(results, ARGUMENT_BYTES * k), block)
            if item == NULL:
                call_nothing(load_ptr(record, DECREMENT), made)
                made = NULL
            else:
                call_code(load_ptr(record, SET_ITEM), made, k, item)
    return made


@direct_function
def call_direct(own: Ptr, arguments: Ptr, count: int) -> Ptr:
    """Call a native function: the code of a built-in function of kind ``METH_FASTCALL``.

    ``own`` is a ``bytes`` object with the record of the native function.
    """
    record = move(own, BYTES_CONTENT)
    if count != load_i64(record, PARAMS):
        return decline(record)
    call = stack(_RECORD)
    interfaces = stack(_INTERFACES)
    for k in range(layout.CALL_OPERANDS // 8):
        store_i64(call, 8 * k, 0)
    store_ptr(call, layout.CALL_TABLE, load_ptr(record, TABLE))
    param = move(record, FIRST_PARAM)
    operand = move(call, layout.CALL_OPERANDS)
    for k in range(count):
        argument = load_ptr(arguments, 8 * k)
        if load_i64(param, ARGUMENT_FORM) == layout.FORM_INTEGER:
            written = write_integer(record, argument, operand)
        else:
            written = write_array(record, param, argument, operand, interfaces)
        if written == 0:
            return decline(record)
        param = move(param, ARGUMENT_BYTES)
        operand = move(operand, 16)
        interfaces = move(interfaces, _INTERFACE)
    results = load_i64(record, RESULTS)
    for k in range(results):
        store_i64(operand, 8 * k, 0)
    state = call_ptr(load_ptr(record, SAVE))
    code = widen(call_code(load_ptr(record, ENTRY), load_ptr(record, INSTANCE), call))
    call_nothing(load_ptr(record, RESTORE), state)
    if code != 0:
        return decline(record)
    if results == 1:
        return new_object(record, param, load_ptr(operand, 0))
    return new_objects(record, param, operand, results)
