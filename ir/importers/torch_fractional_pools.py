"""Import handlers of pooling over windows whose positions PyTorch draws at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..dtype import i64
from ..graph.operators.windows import LEAD
from ..symbolic import Expr, SymInt, product
from .formulas import Formula, number, positions, size_of
from .shaping import expand_dims, squeeze
from .tensors import Imported
from .torch_context import TorchContext, aten
from .torch_window_positions import best_of_rows

_DRAWS: Final = {2: (1, 0), 3: (0, 1, 2)}
"""The draw of each spatial dimension; two dimensions have them in reverse order."""


@aten("fractional_max_pool2d", "fractional_max_pool3d")
def fractional_max_pool(
    t: TorchContext, x: Imported, kernel: Sequence[int], sizes: Sequence[SymInt], draws: Imported
) -> list[Imported]:
    """Import the maxima of windows, and their positions in the flat image.

    One draw per channel and spatial dimension determines the first elements of the windows.
    """
    count = int(t.operator.removesuffix("d")[-1])
    batched = x if x.rank == count + LEAD else expand_dims(t, x, (0,))
    lead, spatial = batched.shape[:LEAD], batched.shape[LEAD:]
    rank = LEAD + 2 * count
    drawn = Formula(t, draws).cut(0, 0, lead[0])
    flat = number(t, 0, i64)
    for k, (size, window, wanted) in enumerate(zip(spatial, kernel, t.dims(sizes), strict=True)):
        first = _starts(drawn.at(2, _DRAWS[count][k]), size, window, wanted)
        at = first.unsqueeze(3) + positions(t, window)
        own = (LEAD + k, LEAD + count + k)
        at = at.unsqueeze(*(axis for axis in range(LEAD, rank) if axis not in own))
        flat = flat * size_of(t, size) + at
    windows, elements = product(t.dims(sizes)), product(t.dims(kernel))
    indices = flat.expand(*lead, *sizes, *kernel).reshape(*lead, windows * elements)
    rows = Formula(t, batched).reshape(*lead, product(spatial))
    values = rows.call("gather_elements", indices, axis=LEAD)
    parts = [v.reshape(*lead, windows, elements) for v in (values, indices)]
    best = Formula(t, best_of_rows(t, parts[0].x))
    found = [p.call("gather_elements", best, axis=LEAD + 1) for p in parts]
    results = [f.reshape(*lead, *sizes).x for f in found]
    return results if batched is x else [squeeze(t, r, (0,)) for r in results]


def _starts(draw: Formula, size: Expr, window: int, count: Expr) -> Formula:
    """Return the first positions of windows ``(batch, channels, count)``; the last is at the end.

    The distance of two windows is the rounded difference of multiples of a fraction.
    """
    t, dtype = draw.e, draw.dtype
    step, last = positions(t, count), size_of(t, size - window)
    gaps = size_of(t, count - 1)
    scale = last.to(dtype) / gaps.maximum(1).to(dtype)
    begin = draw.unsqueeze(LEAD)
    moved = ((step.to(dtype) + begin) * scale).to(i64) - (begin * scale).to(i64)
    return step.equal(gaps).choose(last, moved, i64)
