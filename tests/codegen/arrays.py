"""Arrays for the parameters of loop-level functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilewright.ir.loop.nodes import BufferParam
from tilewright.ir.symbolic import evaluate

if TYPE_CHECKING:
    from tilewright.ir.loop.nodes import PrimFunc


def data(func: PrimFunc, sizes: dict[str, int], seed: int = 0) -> list[np.ndarray]:
    """Create arguments of a function: small integers, whose sums are exact."""
    rng = np.random.default_rng(seed)
    made = []
    for param in func.params:
        if isinstance(param, BufferParam):
            buffer = param.buffer
            free = {v for d in buffer.shape for v in d.free}
            known = {v: sizes[v.name] for v in free}
            shape = tuple(int(evaluate(d, known)) for d in buffer.shape)
            made.append(rng.integers(-4, 5, shape).astype(buffer.dtype.numpy))
    return made


def outputs(func: PrimFunc, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Return the arrays that a function writes."""
    params = [p for p in func.params if isinstance(p, BufferParam)]
    return [a for a, p in zip(arrays, params, strict=True) if p.access != "in"]
