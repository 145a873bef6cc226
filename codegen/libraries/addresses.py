"""Native addresses of library functions: symbols of shared libraries, and Python callbacks.

A native function has the signature ``i32 f(user, operands, count)``, and returns 0 for success.
``operands`` are ``count`` descriptors of four words: address of the data, rank, address of the
dimensions, dtype (DLPack code * 256 + bits). Inputs precede outputs; a workspace is the last
output. After the descriptors follow three words: the address of the attributes (one 64-bit word
each), the number of attributes, and the number of inputs.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import TilewrightError
from ...ir.dtype import DTYPES
from ...ir.graph.libraries import (
    LibraryFunction,
    PythonFunction,
    SharedSymbol,
    UnknownLibraryFunctionError,
    get_library_function,
)
from ...ir.interpreter.libraries import read_only, store_results
from ..build.rtlib_object import rtlib_address
from ..rtlib.language import RTLIB_FUNCTIONS

FAILED = -1
"""The error code of a Python function that raised an exception."""

_PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
_WORDS = ctypes.c_int64 * 2
_DESCRIPTOR = 32


class MissingSymbolError(TilewrightError):
    """A shared library that cannot be loaded, or that does not define a function."""

    title = "Missing library function"


class _Raised(threading.local):
    """The last exception of a Python function on this thread, with the name of the function."""

    name = ""
    error: BaseException | None = None


_RAISED = _Raised()
_LOADED: dict[str, tuple[LibraryFunction, ctypes.Array[ctypes.c_int64]]] = {}
_OWNERS: list[Any] = []
"""Callbacks and addresses, which loaded executables may refer to until the process exits."""


def raised_error(name: str) -> BaseException | None:
    """Return the exception of the last call of a Python function on this thread, and clear it."""
    error = _RAISED.error if _RAISED.name == name else None
    _RAISED.name, _RAISED.error = "", None
    return error


def library_address(name: str) -> int:
    """Return the address of two words: the address of a library function, and its first argument.

    Raises
    ------
    UnknownLibraryFunctionError
        If no library function has this name, or it has no native function for CPUs.
    MissingSymbolError
        If the shared library cannot be loaded, or does not define the function.
    """
    function = get_library_function(name)
    known = _LOADED.get(name)
    if known is None or known[0] is not function:
        words = _WORDS(*_resolve(function))
        _OWNERS.append(words)
        known = _LOADED[name] = function, words
    return ctypes.addressof(known[1])


def _resolve(function: LibraryFunction) -> tuple[int, int]:
    address = function.addresses.get("cpu")
    match address:
        case SharedSymbol(adapter=""):
            return _symbol(function.name, address), 0
        case SharedSymbol(adapter=adapter):
            return rtlib_address(RTLIB_FUNCTIONS[adapter]), _symbol(function.name, address)
        case PythonFunction():
            return _callback(function, address), 0
        case _:
            raise UnknownLibraryFunctionError(
                f"library function {function.name!r} has no native function for CPUs",
                hint="add an address for 'cpu' to its registration",
            )


def _symbol(name: str, address: SharedSymbol) -> int:
    loaded: list[str] = []
    failed: list[str] = []
    for path in address.candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            failed.append(f"{path}: {error}")
            continue
        loaded.append(path)
        for symbol in address.symbols:
            found = getattr(library, symbol, None)
            if found is not None:
                return ctypes.cast(found, ctypes.c_void_p).value or 0
    symbols = " or ".join(map(repr, address.symbols))
    if loaded:
        raise MissingSymbolError(
            f"{', '.join(loaded)} does not define {symbols}",
            where=f"library function {name!r}",
            hint="pass the exported name as symbol; C++ functions need extern 'C'",
        )
    raise MissingSymbolError(
        f"no library that may define {symbols} can be loaded: {'; '.join(failed)}",
        where=f"library function {name!r}",
        hint="install the library, or pass its full path",
    )


def _callback(function: LibraryFunction, address: PythonFunction) -> int:
    """Return the address of a callback that keeps the exception of the Python function."""

    def call(_user: int, operands: int, count: int) -> int:
        try:
            arrays = [_array(operands + _DESCRIPTOR * k) for k in range(count)]
            words, number, inputs = (ctypes.c_int64 * 3).from_address(
                operands + _DESCRIPTOR * count
            )
            values = function.decoded((ctypes.c_int64 * number).from_address(words))
            found = address.function(*map(read_only, arrays[:inputs]), **values)
            store_results(function.name, found, arrays[inputs:])
        except BaseException as error:  # noqa: BLE001  # exceptions must not cross native frames
            _RAISED.name, _RAISED.error = function.name, error
            return FAILED
        return 0

    native = _PROTOTYPE(call)
    _OWNERS.append(native)
    return ctypes.cast(native, ctypes.c_void_p).value or 0


_DTYPES = {d.dlpack * 256 + d.bits: d.numpy for d in DTYPES.values() if not d.is_packed}


def _array(descriptor: int) -> NDArray[Any]:
    data, rank, dims, dtype = (ctypes.c_int64 * 4).from_address(descriptor)
    shape = tuple((ctypes.c_int64 * rank).from_address(dims)) if rank else ()
    element = _DTYPES[dtype]
    size = int(np.prod(shape, dtype=np.int64)) * element.itemsize
    memory = memoryview((ctypes.c_char * size).from_address(data)).cast("B")
    return np.frombuffer(memory, element).reshape(shape)
