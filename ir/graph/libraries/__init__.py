"""Library functions: computations by functions outside of the program, by registered name.

Importing this package imports every module in it, and so registers the functions.

Examples
--------
>>> get_library_function("blas.sgemm").signature.attributes[0].name
'alpha'
"""

import importlib
import pkgutil

from .function import (
    LIBRARY_FUNCTIONS,
    Address,
    LibraryFunction,
    PythonFunction,
    RunTimeFunction,
    SharedSymbol,
    UnknownLibraryFunctionError,
    get_library_function,
    library_function,
    register_library_function,
)

__all__ = [
    "LIBRARY_FUNCTIONS",
    "Address",
    "LibraryFunction",
    "PythonFunction",
    "RunTimeFunction",
    "SharedSymbol",
    "UnknownLibraryFunctionError",
    "get_library_function",
    "is_built_in",
    "library_function",
    "register_library_function",
]

for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_module.name)

_BUILT_IN = dict(LIBRARY_FUNCTIONS)


def is_built_in(name: str) -> bool:
    """Return whether a library function is one of Tilewright, which every process knows.

    Examples
    --------
    >>> is_built_in("std.sort"), is_built_in("user.scale")
    (True, False)
    """
    return name in _BUILT_IN and LIBRARY_FUNCTIONS[name] is _BUILT_IN[name]
