"""Windows that slide over the spatial dimensions of an image: the geometry of convolutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...loop.nodes import Condition, Element, Number, Where
from ...symbolic import (
    Bool,
    Expr,
    Facts,
    all_of,
    as_expr,
    ceildiv,
    const_value,
    evaluate,
    is_proved,
    minimum,
)
from .errors import OperatorAttributeError
from .evaluation import Array
from .lowering import Lowering, Source, buffer_source
from .shape_inference import CallFacts
from .signature import AttributeSpec, AttributeValues

LEAD: Final = 2
"""The number of dimensions before the spatial ones: batch and channels."""

WINDOWS: Final = (
    AttributeSpec("strides", "ints", ()),
    AttributeSpec("padding", "ints", ()),
    AttributeSpec("dilation", "ints", ()),
)
"""The attributes of an operator over windows; empty tuples mean 1, 0 and 1 in each dimension."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows over spatial dimensions.

    Parameters
    ----------
    kernel : tuple of Expr
        The number of elements of a window in each dimension.
    strides : tuple of int
        The distance of neighboring windows.
    before, after : tuple of int
        The number of elements outside of the image that windows may contain at either end.
    dilation : tuple of int
        The distance of neighboring elements of a window.
    ceil : bool
        Whether the last window may exceed the padded image, as long as it starts inside the image
        or the padding before it.
    """

    kernel: tuple[Expr, ...]
    strides: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    dilation: tuple[int, ...]
    ceil: bool = False

    @property
    def spans(self) -> tuple[Expr, ...]:
        """The distance between the first and the last element of a window."""
        return tuple((k - 1) * d for k, d in zip(self.kernel, self.dilation, strict=True))

    @property
    def pointwise(self) -> bool:
        """Whether each window is one element of the image, in the same order."""
        whole = all(const_value(k) == 1 for k in self.kernel) and set(self.strides) == {1}
        return whole and not any((*self.before, *self.after))

    def counts(self, sizes: Sequence[Expr]) -> tuple[Expr, ...]:
        """Return the number of windows in each dimension of an image."""
        return tuple(map(self._count, range(len(sizes)), sizes))

    def _count(self, axis: int, size: Expr) -> Expr:
        free = size + (self.before[axis] + self.after[axis]) - self.spans[axis] - 1
        stride = self.strides[axis]
        if not self.ceil or stride == 1:
            return free // stride + 1
        starts = ceildiv(size + self.before[axis], stride)
        return minimum(ceildiv(free, stride) + 1, starts)

    def require(self, call: CallFacts, sizes: Sequence[Expr]) -> None:
        """Require that a window fits into the padded image."""
        for axis, (size, span) in enumerate(zip(sizes, self.spans, strict=True)):
            padded = size + (self.before[axis] + self.after[axis])
            reason = (
                f"a window of {span + 1} elements in spatial dimension {axis} exceeds the image of "
                f"{padded} elements with its padding"
            )
            call.require(span + 1 <= padded, reason, f"{call.op} requires {span + 1} <= {padded}")

    def first(self, window: Sequence[Expr]) -> tuple[Expr, ...]:
        """Return the position of the first element of a window; negative in the padding."""
        return tuple(i * s - b for i, s, b in zip(window, self.strides, self.before, strict=True))

    def extended(self, low: Lowering, x: Source, fill: Number) -> Source:
        """Return an image with its padding; define a temporary unless there is none."""
        sizes = x.shape[LEAD:]
        counts = self.counts(sizes)
        if not any((*self.before, *self.after)) and not self.ceil:
            return x
        shape = tuple(
            (c - 1) * s + span + 1
            for c, s, span in zip(counts, self.strides, self.spans, strict=True)
        )
        padded = low.builder.temporary("padded", (*x.shape[:LEAD], *shape), x.dtype)
        low.builder.compute(
            padded, surrounded(x, self.before, shape, fill, low.call.facts), name="pad"
        )
        return buffer_source(padded)

    def element(
        self, x: Source, lead: Sequence[Expr], window: Sequence[Expr], at: Sequence[Expr]
    ) -> Element:
        """Return an element of a window of an image with its padding."""
        terms = zip(window, self.strides, at, self.dilation, strict=True)
        return x(*lead, *(i * s + k * d for i, s, k, d in terms))

    def patches(self, x: Array, fill: float) -> Callable[[Sequence[int]], Array]:
        """Return a function of a position in the window that returns these elements with NumPy."""
        sizes = x.shape[LEAD:]
        counts = [evaluate(c, {}) for c in self.counts(tuple(map(as_expr, sizes)))]
        spans = [evaluate(s, {}) for s in self.spans]
        ends = [
            (c - 1) * s + span + 1 for c, s, span in zip(counts, self.strides, spans, strict=True)
        ]
        widths = [
            (b, max(end - b - size, 0))
            for b, end, size in zip(self.before, ends, sizes, strict=True)
        ]
        padded = np.pad(x, [(0, 0), (0, 0), *widths], constant_values=fill)

        def patch(at: Sequence[int]) -> Array:
            parts = [
                slice(k * d, k * d + (c - 1) * s + 1, s)
                for k, d, c, s in zip(at, self.dilation, counts, self.strides, strict=True)
            ]
            return padded[(slice(None), slice(None), *parts)]

        return patch


def surrounded(
    x: Source, before: Sequence[int], shape: Sequence[Expr], fill: Number, facts: Facts
) -> Callable[..., Element]:
    """Return the function of an element of an image with elements of one value around it.

    The result has this shape; conditions are omitted where no element is outside of the image.
    """
    sizes = x.shape[LEAD:]

    def value(*indices: Expr) -> Element:
        lead, at = indices[:LEAD], indices[LEAD:]
        own = tuple(i - b for i, b in zip(at, before, strict=True))
        inside: list[Bool] = []
        for i, b, size, whole in zip(own, before, sizes, shape, strict=True):
            if b:
                inside.append(i >= 0)
            if not is_proved(whole <= size + b, facts):
                inside.append(i < size)
        found = x(*lead, *own)
        return Where(Condition(all_of(*inside)), found, fill) if inside else found

    return value


def windows_of(
    op: str, attributes: AttributeValues, kernel: Sequence[Expr], *, ceil: bool = False
) -> Windows:
    """Return the windows of a call from its attributes.

    Raises
    ------
    OperatorAttributeError
        If an attribute has a wrong number of values, or a value that is out of range.
    """
    rank = len(kernel)

    def values(name: str, count: int, default: int, least: int) -> tuple[int, ...]:
        found = attributes.integers(name) or (default,) * count
        if len(found) != count or any(v < least for v in found):
            raise OperatorAttributeError(
                f"{name} must be {count} integers of at least {least}, got {found}",
                where=f"operator {op}",
                hint=f"an image of {rank} spatial dimensions has {count} values",
            )
        return found

    padding = values("padding", 2 * rank, 0, 0)
    return Windows(
        tuple(kernel),
        values("strides", rank, 1, 1),
        padding[:rank],
        padding[rank:],
        values("dilation", rank, 1, 1),
        ceil,
    )
