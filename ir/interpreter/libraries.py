"""NumPy references of the library functions called by ``call_dps_library``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...errors import TilewrightError
from ..loop.nodes import Attributes

Array: TypeAlias = NDArray[Any]
Reference: TypeAlias = Callable[[Sequence[Array], Sequence[Array], Attributes], None]


class UnknownLibraryFunctionError(TilewrightError):
    """A library function without a registered reference."""

    title = "Unknown library function"


def _gemm(inputs: Sequence[Array], outputs: Sequence[Array], _: Attributes) -> None:
    outputs[0][...] = np.matmul(inputs[0], inputs[1])


_REFERENCES: dict[str, Reference] = {"cblas.sgemm": _gemm, "cblas.dgemm": _gemm}


def register_library_reference(symbol: str, reference: Reference) -> None:
    """Register the NumPy reference of a library function.

    Parameters
    ----------
    symbol : str
        The name of the library function.
    reference : callable
        Called as ``reference(inputs, outputs, attributes)``; it writes into the outputs.
    """
    _REFERENCES[symbol] = reference


def library_reference(symbol: str) -> Reference:
    """Return the NumPy reference of a library function.

    Raises
    ------
    UnknownLibraryFunctionError
        If no reference is registered; the hint lists the registered ones.

    Examples
    --------
    >>> a, out = np.eye(2), np.empty((2, 2))
    >>> library_reference("cblas.dgemm")([a, a], [out], ())
    >>> out.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if symbol not in _REFERENCES:
        raise UnknownLibraryFunctionError(
            f"library function {symbol!r} has no registered reference",
            hint=f"registered library functions: {', '.join(sorted(_REFERENCES))}",
        )
    return _REFERENCES[symbol]
