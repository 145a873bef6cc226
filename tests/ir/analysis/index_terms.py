"""Random index terms over one outer and two inner variables."""

from __future__ import annotations

from hypothesis import strategies as st

from tilewright.ir.analysis import Interval
from tilewright.ir.symbolic import as_expr, maximum, minimum, var

OUTER = var("o", lower=0, upper=20)
A, B = var("a", lower=0, upper=3), var("b", lower=0, upper=2)
INNER = {A: Interval.full(as_expr(4)), B: Interval.full(as_expr(3))}
LOADED = var("loaded", lower=-2, upper=1)
"""An integer loaded from memory, in [-2, 2)."""
LOADED_INNER = {
    LOADED: Interval(as_expr(-2), as_expr(4), exhaustive=False),
    B: Interval.full(as_expr(3)),
}


@st.composite
def indices(draw, depth=2):
    """Draw terms over one outer and two inner variables."""
    kind = draw(st.integers(0, 4)) if depth else 0
    if kind == 0:
        return draw(st.sampled_from([OUTER, A, B, as_expr(draw(st.integers(-3, 5)))]))
    if kind in (1, 2):
        scale = draw(st.integers(-3, 4))
        return draw(indices(depth - 1)) * scale + draw(indices(depth - 1))
    if kind == 3:
        divisor = draw(st.integers(1, 6))
        term = draw(indices(depth - 1))
        return term // divisor if draw(st.booleans()) else term % divisor
    return draw(st.sampled_from([minimum, maximum]))(
        draw(indices(depth - 1)), draw(indices(depth - 1))
    )
