"""What library functions compute, on NumPy: references for ``call_dps_library``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import TilewrightError
from ..loop.nodes import Attributes

Array: TypeAlias = NDArray[Any]
Reference: TypeAlias = Callable[[Sequence[Array], Sequence[Array], Attributes], None]


class UnknownLibraryFunctionError(TilewrightError):
    """No library function of that name is registered."""

    title = "Unknown library function"


def _gemm(inputs: Sequence[Array], outputs: Sequence[Array], _: Attributes) -> None:
    outputs[0][...] = np.matmul(inputs[0], inputs[1])


_REFERENCES: dict[str, Reference] = {"cblas.sgemm": _gemm, "cblas.dgemm": _gemm}


def register_library_reference(symbol: str, reference: Reference) -> None:
    """Tell what a library function computes: ``reference(inputs, outputs, attributes)``."""
    _REFERENCES[symbol] = reference


def library_reference(symbol: str) -> Reference:
    """Look up what a library function computes.

    Raises
    ------
    UnknownLibraryFunctionError
        If it is not registered; the message lists those that are.

    Examples
    --------
    >>> a, out = np.eye(2), np.empty((2, 2))
    >>> library_reference("cblas.dgemm")([a, a], [out], ())
    >>> out.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if symbol not in _REFERENCES:
        raise UnknownLibraryFunctionError(
            f"no library function {symbol!r}",
            hint=f"library functions are {', '.join(sorted(_REFERENCES))}",
        )
    return _REFERENCES[symbol]
