"""The threads of a block, numbered, and the shared memory of reductions across them."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ...ir.symbolic import Expr, as_expr, const_value
from ...ir.thread.function import ThreadAxis
from ...target.gpus import THREAD_AXES, WARP


@dataclass(frozen=True, slots=True)
class Threads:
    """The threads of a block, numbered along x, then y, then z.

    Parameters
    ----------
    axes : tuple of ThreadAxis
        The thread axes of the launch.
    warps : bool
        Whether the GPU executes threads in warps of a known size, which exchange registers.

    Examples
    --------
    >>> from ...ir.symbolic import var
    >>> axes = (ThreadAxis("threadIdx.x", var("x"), as_expr(8)),)
    >>> Threads(axes).count
    8
    """

    axes: tuple[ThreadAxis, ...]
    warps: bool = True

    def extent(self, tag: str) -> int:
        """Return the extent of an axis, 1 if the kernel does not use the axis."""
        found = (const_value(a.extent) for a in self.axes if a.tag == tag)
        return next((size for size in found if size is not None), 1)

    def position(self, tag: str) -> Expr:
        """Return the index along an axis."""
        return next((a.var for a in self.axes if a.tag == tag), as_expr(0))

    def stride(self, tag: str) -> int:
        """Return the difference between the numbers of neighbors along an axis."""
        return prod(self.extent(t) for t in THREAD_AXES[: THREAD_AXES.index(tag)])

    @property
    def count(self) -> int:
        """The number of threads per block."""
        return prod(self.extent(t) for t in THREAD_AXES)

    @property
    def number(self) -> Expr:
        """The number of the thread in its block."""
        terms = (self.position(t) * self.stride(t) for t in THREAD_AXES)
        return sum(terms, start=as_expr(0))

    def slots(self, tags: tuple[str, ...]) -> int:
        """Return the number of shared-memory elements that a reduction along some axes needs."""
        size = prod(self.extent(t) for t in tags)
        if not self.in_warps(tags):
            return 0 if size == 1 else self.count
        return 0 if size <= WARP else self.count // WARP

    def in_warps(self, tags: tuple[str, ...]) -> bool:
        """Return whether the threads along some axes form whole warps or equal parts of a warp."""
        size = prod(self.extent(t) for t in tags)
        whole = self.warps and self.count % WARP == 0 and self.neighbors(tags)
        return whole and (size % WARP == 0 or (size < WARP and size & (size - 1) == 0))

    def neighbors(self, tags: tuple[str, ...]) -> bool:
        """Return whether the threads along some axes have consecutive numbers."""
        wide = [t for t in THREAD_AXES if self.extent(t) > 1]
        own = [t for t in wide if t in tags]
        return wide[: len(own)] == own
