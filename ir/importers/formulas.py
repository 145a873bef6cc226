"""Formulas over tensors of a source model, written with the operators of Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..dtype import DType, f64, i64
from ..symbolic import Expr, SymInt, as_expr
from .elementwise import convert, elementwise, where
from .emitter import Emitter
from .indexing import take
from .shaping import concat, expand, expand_dims, permute, reshape, slice_exact, squeeze
from .tensors import Imported, Iota

Number: TypeAlias = "float | int | bool"


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """A tensor of a source model; operators broadcast, and numbers take its dtype."""

    e: Emitter
    x: Imported

    @property
    def shape(self) -> tuple[Expr, ...]:
        """The shape."""
        return self.x.shape

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return self.x.rank

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.x.dtype

    def _of(self, x: Imported) -> Formula:
        return Formula(self.e, x)

    def _operand(self, other: Formula | Number) -> Imported:
        return other.x if isinstance(other, Formula) else self.e.uniform(other, (), self.dtype)

    def apply(self, op: str, *others: Formula | Number) -> Formula:
        """Apply an element-wise operator."""
        return self._of(elementwise(self.e, op, [self.x, *map(self._operand, others)]))

    def _reversed(self, op: str, other: Number) -> Formula:
        return self._of(elementwise(self.e, op, [self._operand(other), self.x]))

    def __add__(self, other: Formula | Number) -> Formula:
        """Return the sum."""
        return self.apply("add", other)

    def __radd__(self, other: Number) -> Formula:
        """Return the sum."""
        return self.apply("add", other)

    def __sub__(self, other: Formula | Number) -> Formula:
        """Return the difference."""
        return self.apply("subtract", other)

    def __rsub__(self, other: Number) -> Formula:
        """Return the difference."""
        return self._reversed("subtract", other)

    def __mul__(self, other: Formula | Number) -> Formula:
        """Return the product."""
        return self.apply("multiply", other)

    def __rmul__(self, other: Number) -> Formula:
        """Return the product."""
        return self.apply("multiply", other)

    def __truediv__(self, other: Formula | Number) -> Formula:
        """Return the quotient of floating-point numbers."""
        return self.apply("divide", other)

    def __rtruediv__(self, other: Number) -> Formula:
        """Return the quotient of floating-point numbers."""
        return self._reversed("divide", other)

    def __floordiv__(self, other: Formula | Number) -> Formula:
        """Return the quotient, rounded down."""
        return self.apply("floor_divide", other)

    def __mod__(self, other: Formula | Number) -> Formula:
        """Return the remainder with the sign of the divisor."""
        return self.apply("mod", other)

    def __neg__(self) -> Formula:
        """Return the negative."""
        return self.apply("negative")

    def __lt__(self, other: Formula | Number) -> Formula:
        """Return a mask."""
        return self.apply("less", other)

    def __le__(self, other: Formula | Number) -> Formula:
        """Return a mask."""
        return self.apply("less_equal", other)

    def __gt__(self, other: Formula | Number) -> Formula:
        """Return a mask."""
        return self.apply("greater", other)

    def __ge__(self, other: Formula | Number) -> Formula:
        """Return a mask."""
        return self.apply("greater_equal", other)

    def __and__(self, other: Formula) -> Formula:
        """Return the conjunction of masks."""
        return self.apply("logical_and", other)

    def __or__(self, other: Formula) -> Formula:
        """Return the disjunction of masks."""
        return self.apply("logical_or", other)

    def __invert__(self) -> Formula:
        """Return the negation of a mask."""
        return self.apply("logical_not")

    def equal(self, other: Formula | Number) -> Formula:
        """Return a mask."""
        return self.apply("equal", other)

    def maximum(self, other: Formula | Number) -> Formula:
        """Return the greater element of both."""
        return self.apply("maximum", other)

    def minimum(self, other: Formula | Number) -> Formula:
        """Return the smaller element of both."""
        return self.apply("minimum", other)

    def clip(self, low: Formula | Number, high: Formula | Number) -> Formula:
        """Return the elements limited to an interval; the lower end first."""
        return self.maximum(low).minimum(high)

    def to(self, dtype: DType) -> Formula:
        """Convert to another dtype."""
        return self._of(convert(self.e, self.x, dtype))

    def choose(self, then: Formula | Number, otherwise: Formula | Number, dtype: DType) -> Formula:
        """Select by this mask between tensors or numbers of a dtype."""
        parts = [
            p.x if isinstance(p, Formula) else self.e.uniform(p, (), dtype)
            for p in (then, otherwise)
        ]
        return self._of(where(self.e, self.x, parts[0], parts[1]))

    def reshape(self, *dims: SymInt) -> Formula:
        """Change the shape; one dimension may be -1."""
        return self._of(reshape(self.e, self.x, dims))

    def unsqueeze(self, *axes: int) -> Formula:
        """Insert dimensions of size 1; the axes refer to the result."""
        return self._of(expand_dims(self.e, self.x, axes)) if axes else self

    def squeeze(self, *axes: int) -> Formula:
        """Remove dimensions of size 1."""
        return self._of(squeeze(self.e, self.x, axes))

    def permute(self, *axes: int) -> Formula:
        """Reorder the dimensions."""
        return self._of(permute(self.e, self.x, axes))

    def expand(self, *dims: SymInt) -> Formula:
        """Broadcast to a shape."""
        return self._of(expand(self.e, self.x, [as_expr(d) for d in dims]))

    def cut(self, axis: int, begin: SymInt, end: SymInt) -> Formula:
        """Return a slice along an axis."""
        bounds = (as_expr(begin), as_expr(end))
        return self._of(slice_exact(self.e, self.x, axis % self.rank, bounds))

    def at(self, axis: int, index: SymInt) -> Formula:
        """Return the slice at an index, without the axis."""
        return self.cut(axis, index, as_expr(index) + 1).squeeze(axis)

    def take(self, indices: Formula, axis: int) -> Formula:
        """Look up slices along an axis."""
        return self._of(take(self.e, self.x, indices.x, axis))

    def reduce(self, op: str, *axes: int, keepdims: bool = False) -> Formula:
        """Reduce axes, which are not counted from the end."""
        found = self.e.apply(op, self.e.plain(self.x), axes=axes, keepdims=keepdims)
        return self._of(found)

    def sum(self, *axes: int, keepdims: bool = False) -> Formula:
        """Return the sum over axes."""
        return self.reduce("sum", *axes, keepdims=keepdims)

    def call(self, op: str, *others: Formula, **attributes: int | str | bool) -> Formula:
        """Apply an operator that is not element-wise to materialized tensors."""
        operands = [self.e.plain(f.x) for f in (self, *others)]
        return self._of(self.e.tensor(self.e.emit(op, *operands, name=None, **attributes)))

    def __matmul__(self, other: Formula) -> Formula:
        """Return the matrix product."""
        return self.call("matmul", other)


def number(e: Emitter, value: Number, dtype: DType) -> Formula:
    """Return a number as a tensor of shape ``()``."""
    return Formula(e, e.uniform(value, (), dtype))


def positions(e: Emitter, size: SymInt, start: SymInt = 0) -> Formula:
    """Return the integers from a start on."""
    return Formula(e, Imported((as_expr(size),), i64, known=Iota(0, as_expr(start))))


def sizes_of(e: Emitter, dims: Sequence[SymInt]) -> Formula:
    """Return integers known from shapes as a vector."""
    return Formula(e, e.apply("shape_to_tensor", tuple(map(as_expr, dims))))


def size_of(e: Emitter, size: SymInt) -> Formula:
    """Return an integer known from shapes as a tensor of shape ``()``."""
    return sizes_of(e, (size,)).reshape()


def stacked(parts: Sequence[Formula], axis: int) -> Formula:
    """Join tensors of one shape along a new axis."""
    e = parts[0].e
    shape = e.broadcast_shapes([p.shape for p in parts])
    wide = [p.expand(*shape).unsqueeze(axis) for p in parts]
    return Formula(e, concat(e, [p.x for p in wide], axis))


def joined(parts: Sequence[Formula], axis: int) -> Formula:
    """Concatenate tensors along an axis."""
    e = parts[0].e
    return Formula(e, concat(e, [p.x for p in parts], axis))


def real(x: Formula) -> Formula:
    """Return integers in the dtype that positions between elements are computed in."""
    return x.to(f64)
