"""Concatenation to a carried value of a loop, which memory planning makes a copy of the new part.

``legalize`` calls it where a loop carries the result as the next value of the first operand, which
is not used later. Memory planning replaces every call by copies, so it has no native function.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..appends import APPEND
from ..nodes import TensorInfo
from ..operators import get_operator
from ..operators.shape_inference import CallFacts
from .function import LibraryFunction, register_library_function

_CONCAT = get_operator("concat")


def _append(*parts: NDArray[np.generic], axis: int) -> NDArray[np.generic]:
    return np.concatenate(parts, axis=axis)


def _outputs(call: CallFacts) -> tuple[TensorInfo, ...]:
    info = _CONCAT.deduce(call)
    if not isinstance(info, TensorInfo):
        raise TypeError(f"{APPEND} returns one tensor")
    return (replace(info, elements=None),)


register_library_function(
    LibraryFunction(
        APPEND,
        _append,
        _CONCAT.signature,
        outputs=_outputs,
    )
)
