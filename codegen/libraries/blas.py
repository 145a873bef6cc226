"""BLAS matrix products, from the library of NumPy or of the system."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from ..build.rtlib_object import rtlib_address
from ..rtlib import gemm
from . import registry

_SYSTEM = ("libopenblas.so.0", "libblas.so.3")
_ROUTINES = ("scipy_{}_64_", "scipy_{}_", "{}_64_", "{}_")


def _candidates() -> Iterator[str]:
    """Yield libraries that may contain BLAS, NumPy's first, because it is loaded already."""
    bundled = Path(np.__file__).parent.parent / "numpy.libs"
    yield from (str(path) for path in sorted(bundled.glob("*openblas*")))
    yield from _SYSTEM


@cache
def blas_routine(name: str) -> int | None:
    """Return the address of a Fortran BLAS routine such as ``sgemm``; None without BLAS."""
    for candidate in _candidates():
        try:
            library = ctypes.CDLL(candidate)
        except OSError:
            continue
        for pattern in _ROUTINES:
            function = getattr(library, pattern.format(name), None)
            if function is not None:
                return ctypes.cast(function, ctypes.c_void_p).value
    return None


def register() -> None:
    """Register ``blas.sgemm`` and ``blas.dgemm`` if BLAS is found."""
    for name, adapter in (("sgemm", gemm.sgemm), ("dgemm", gemm.dgemm)):
        routine = blas_routine(name)
        if routine is not None:
            registry.register_address(f"blas.{name}", rtlib_address(adapter), user=routine)
