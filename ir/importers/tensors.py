"""Tensors of a source model during import, including those that need no computation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ..dtype import DType
from ..graph.nodes import ConstantRef, Value
from ..symbolic import Expr


@dataclass(frozen=True, slots=True)
class Uniform:
    """Known elements that all equal one number."""

    value: float | int | bool


@dataclass(frozen=True, slots=True)
class Iota:
    """Known elements that increase by 1 from ``start`` along ``axis`` and equal along others."""

    axis: int
    start: Expr


@dataclass(frozen=True, slots=True)
class Stacked:
    """Index tensors stacked along the last dimension, the form of ``GatherND`` indices."""

    parts: tuple[Imported, ...]


Known: TypeAlias = "Uniform | Iota | Stacked"


@dataclass(frozen=True, slots=True)
class Imported:
    """A tensor of the source model.

    Parameters
    ----------
    shape : tuple of Expr
        The shape in the source model.
    dtype : DType
        The element type.
    operand : Value or ConstantRef, optional
        The emitted value, if there is one. It may have size 1 in dimensions along which all
        elements are equal; most consumers broadcast, so it is expanded only on demand.
    known : Uniform, Iota, or Stacked, optional
        The known elements of masks and positions, which then need no computation.
    """

    shape: tuple[Expr, ...]
    dtype: DType
    operand: Value | ConstantRef | None = None
    known: Known | None = None

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)


@dataclass(frozen=True, slots=True)
class TensorSequence:
    """A sequence of tensors of the source model, whose length is a constant."""

    items: tuple[Imported, ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class StackedSequence:
    """The sequence of the tensors that the iterations of a loop append.

    Parameters
    ----------
    stack : Imported
        The tensors, which have one shape, along a new axis 0.
    """

    stack: Imported

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.stack.dtype
