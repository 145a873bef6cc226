"""Import handlers of PyTorch operators that read images at the positions of a grid."""

from __future__ import annotations

from functools import reduce
from typing import Final

from ..dtype import f32, f64, i64
from .elementwise import rounded_once
from .formulas import Formula, positions, size_of
from .onnx_sampling import bilinear, looked_up, reflected
from .tensors import Imported
from .torch_context import TorchContext, aten

_LEAD: Final = 2
_NEAREST: Final = 1
_ZEROS, _REFLECTION = 0, 2


@aten("grid_sampler_3d")
def grid_sampler(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, grid: Imported, mode: int, padding: int,
    corners: bool,  # noqa: FBT001
) -> Imported:  # fmt: skip
    """Import the interpolation of an image at positions of a grid, by its number of dimensions."""
    sizes, wide = x.shape[_LEAD:], f64 if x.dtype is f64 else f32
    at: list[Formula] = []
    for k, size in enumerate(sizes):
        length = size_of(t, size).to(wide)
        place = Formula(t, grid).at(grid.rank - 1, len(sizes) - 1 - k).to(wide) + 1.0
        found = place / 2.0 * (length - 1.0) if corners else (place * length - 1.0) / 2.0
        if padding == _REFLECTION:
            found = reflected(found, length - 1.0, corners=corners)
        at.append(found if padding == _ZEROS else found.clip(0.0, length - 1.0))
    batch = positions(t, x.shape[0]).unsqueeze(*range(1, grid.rank - 1))

    def compute(image: Imported) -> Imported:
        read = _nearest if mode == _NEAREST else bilinear
        found = read(Formula(t, image), batch, at, zeros=padding == _ZEROS)
        last = found.rank - 1
        return found.permute(0, last, *range(1, last)).x

    return rounded_once(t, compute, x)


def _nearest(x: Formula, batch: Formula, at: list[Formula], *, zeros: bool) -> Formula:
    """Read the nearest elements of positions; those outside are zeros or the border."""
    near = [p.apply("round").to(i64) for p in at]
    lasts = [size_of(x.e, size) - 1 for size in x.shape[_LEAD:]]
    found = looked_up(x, batch, [p.clip(0, n) for p, n in zip(near, lasts, strict=True)])
    if not zeros:
        return found
    inside = [(p >= 0) & (p <= n) for p, n in zip(near, lasts, strict=True)]
    mask = reduce(lambda a, b: a & b, inside)
    return mask.unsqueeze(mask.rank).choose(found, 0, x.dtype)
