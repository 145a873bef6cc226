"""Library functions for ``call_dps_library``: native functions with registered names."""

from .registry import (
    Operand,
    UnknownLibraryFunctionError,
    library_address,
    library_names,
    register_address,
    register_callback,
)

__all__ = [
    "Operand",
    "UnknownLibraryFunctionError",
    "library_address",
    "library_names",
    "register_address",
    "register_callback",
]
