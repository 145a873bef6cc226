"""Values of a source model while it is imported: some need no tensor at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ..dtype import DType
from ..graph.nodes import ConstantRef, Value
from ..symbolic import Expr


@dataclass(frozen=True, slots=True)
class Uniform:
    """All elements are one number."""

    value: float | int | bool


@dataclass(frozen=True, slots=True)
class Iota:
    """Elements count upwards from ``start`` along ``axis``, alike along all other axes."""

    axis: int
    start: Expr


@dataclass(frozen=True, slots=True)
class Stacked:
    """Index tensors side by side in the last dimension, as ``GatherND`` takes them."""

    parts: tuple[Imported, ...]


Known: TypeAlias = "Uniform | Iota | Stacked"


@dataclass(frozen=True, slots=True)
class Imported:
    """A tensor of the source model.

    ``shape`` is the shape it has there. ``operand``, where there is one already, may have 1 in
    place of dimensions along which all elements are equal: expanding is left to the consumer,
    which mostly broadcasts anyway. ``known`` tells the elements of masks and positions, so that
    they need not be computed.
    """

    shape: tuple[Expr, ...]
    dtype: DType
    operand: Value | ConstantRef | None = None
    known: Known | None = None

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)
