"""Operators that keep all elements in their order and change only the shape."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from ...loop.nodes import Element
from ...symbolic import Expr, as_expr, const_value, product
from ..nodes import Info, TensorInfo
from .creation import require_sizes
from .errors import OperandError
from .evaluation import Array, Evaluation
from .inference import CallFacts, shape_text
from .lowering import Lowering
from .operator import Operator, operator
from .reindexing import grouped, reshaped_index
from .signature import AttributeSpec, OperandSpec, Signature


class View(Operator):
    """The same bytes under another shape."""

    is_view: ClassVar[bool] = True

    @abstractmethod
    def concrete_shape(self, run: Evaluation) -> tuple[int, ...]:
        """Give the shape of the result."""

    def evaluate(self, run: Evaluation) -> Array:
        """Change the shape."""
        return run.array(0).reshape(self.concrete_shape(run))

    def define(self, low: Lowering) -> None:
        """One block that copies, for where the result cannot share the storage."""
        x = low.sources[0]

        def value(*indices: Expr) -> Element:
            return x(*reshaped_index(indices, low.out.shape, x.shape))

        low.builder.compute(low.out, value, name=self.name)


@operator
class Reshape(View):
    """Another shape of as many elements. :func:`resolved_shape` computes a dimension left open."""

    name = "reshape"
    signature = Signature((OperandSpec("x"), OperandSpec("shape", ("dims",))))

    def deduce(self, call: CallFacts) -> Info:
        """Require that the numbers of elements are equal."""
        x, shape = call.tensor(0), call.dims(1)
        require_sizes(call, shape)
        if product(shape) != product(x.shape):
            _require_same_count(call, shape, x.shape)
        return TensorInfo(shape, x.dtype, elements=x.elements)

    def concrete_shape(self, run: Evaluation) -> tuple[int, ...]:
        """Take the given one."""
        return run.dims(1)


def _require_same_count(call: CallFacts, shape: tuple[Expr, ...], source: tuple[Expr, ...]) -> None:
    """Require equal products run by run, so that the check is as simple as can be."""
    reason = f"cannot reshape {shape_text(source)} to {shape_text(shape)}: elements are"
    runs = grouped(shape, source)
    for left, right in runs:
        want, have = _product_at(shape, left), _product_at(source, right)
        call.require_equal(have, want, reason)
    rest = _product_beside(shape, [k for left, _ in runs for k in left])
    rest_of_source = _product_beside(source, [k for _, right in runs for k in right])
    call.require_equal(rest_of_source, rest, reason)


def _product_at(dims: tuple[Expr, ...], positions: Sequence[int]) -> Expr:
    return product(dims[k] for k in positions)


def _product_beside(dims: tuple[Expr, ...], positions: Sequence[int]) -> Expr:
    return product(d for k, d in enumerate(dims) if k not in positions)


def resolved_shape(source: Sequence[Expr], dims: Sequence[Expr]) -> tuple[Expr, ...]:
    """Replace a dimension of -1 by what the number of elements of ``source`` leaves for it.

    Equal dimensions of both cancel, so that this holds for empty tensors too where it can.

    Raises
    ------
    OperandError
        If several dimensions are -1.

    Examples
    --------
    >>> resolved_shape((as_expr(4), as_expr(6)), (as_expr(4), as_expr(-1), as_expr(2)))[1]
    3
    """
    unknown = [k for k, d in enumerate(dims) if const_value(d) == -1]
    if not unknown:
        return tuple(dims)
    if len(unknown) > 1:
        text = f"{len(unknown)} dimensions of {shape_text(dims)} are -1; one may be"
        raise OperandError(text, where="operand 'shape' of reshape")
    have, want = list(source), list[Expr]()
    for dim in (d for k, d in enumerate(dims) if k != unknown[0]):
        if dim in have:
            have.remove(dim)
        else:
            want.append(dim)
    total, rest = product(have), product(want)
    missing = total if const_value(rest) == 1 else total // rest
    return (*dims[: unknown[0]], missing, *dims[unknown[0] + 1 :])


@operator
class ExpandDims(View):
    """Insert dimensions of 1; ``axes`` count in the result."""

    name = "expand_dims"
    signature = Signature((OperandSpec("x"),), (AttributeSpec("axes", "ints"),))

    def deduce(self, call: CallFacts) -> Info:
        """Insert."""
        x = call.tensor(0)
        rank = x.rank + len(call.attributes.integers("axes"))
        axes = call.attributes.axes("axes", rank)
        dims = iter(x.shape)
        shape = tuple(as_expr(1) if k in axes else next(dims) for k in range(rank))
        return TensorInfo(shape, x.dtype, elements=x.elements)

    def concrete_shape(self, run: Evaluation) -> tuple[int, ...]:
        """Insert."""
        x = run.array(0)
        rank = x.ndim + len(run.attributes.integers("axes"))
        axes = run.attributes.axes("axes", rank)
        dims = iter(x.shape)
        return tuple(1 if k in axes else next(dims) for k in range(rank))


@operator
class Squeeze(View):
    """Drop dimensions that are 1."""

    name = "squeeze"
    signature = Signature((OperandSpec("x"),), (AttributeSpec("axes", "ints"),))

    def deduce(self, call: CallFacts) -> Info:
        """Drop; a dropped dimension is required to be 1."""
        x = call.tensor(0)
        axes = call.attributes.axes("axes", x.rank)
        for axis in axes:
            reason = f"cannot drop axis {axis} of {shape_text(x.shape)}: dimensions are"
            call.require_equal(x.shape[axis], as_expr(1), reason)
        shape = tuple(d for k, d in enumerate(x.shape) if k not in axes)
        return TensorInfo(shape, x.dtype, elements=x.elements)

    def concrete_shape(self, run: Evaluation) -> tuple[int, ...]:
        """Drop."""
        x = run.array(0)
        axes = run.attributes.axes("axes", x.ndim)
        return tuple(d for k, d in enumerate(x.shape) if k not in axes)
