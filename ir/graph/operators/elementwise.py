"""The base class of element-wise operators."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dtype import DType
from ...loop.nodes import Binary, Element, Number, Ternary, Unary
from ...loop.visit import walk_element
from ...symbolic import Expr, const_value
from ..nodes import Info, ScalarLiteral, TensorInfo
from .broadcasting import broadcast
from .evaluation import Array, Evaluation, ReferenceArg
from .lowering import Lowering, accumulator, cast_to, literal_number
from .operator import Operator
from .shape_inference import MAX_ELEMENTS, CallFacts
from .signature import kind_of, tensor_info


class Elementwise(Operator):
    """The base class of element-wise operators.

    The operands broadcast and have the same dtype. A number takes the dtype of the tensors.

    Attributes
    ----------
    same : sequence of int, optional
        The positions of the operands that have the same dtype; None means all operands.
    """

    same: Sequence[int] | None = None

    @abstractmethod
    def element(self, call: CallFacts, operands: tuple[Element, ...]) -> Element:
        """Return the loop-level expression of one element."""

    @abstractmethod
    def compute(self, run: Evaluation, operands: tuple[Array, ...]) -> Array:
        """Return the result for operands that broadcast, computed with NumPy."""

    def result_dtype(self, dtype: DType) -> DType:
        """Return the dtype of the result for the common dtype of the operands."""
        return dtype

    def accepts(self, dtype: DType) -> bool:
        """Return whether the operator is defined for a dtype that the signature accepts."""
        del dtype
        return True

    def exact(self, values: tuple[Expr, ...]) -> Expr | None:
        """Return one integer element as a symbolic term, or None if there is no such term."""
        del values
        return None

    def common_dtype(self, call: CallFacts) -> DType:
        """Return the common dtype of the operands.

        Raises
        ------
        OperandError
            If the dtypes differ, if all operands are numbers, or if the operator is not defined
            for the dtype.
        """
        shared = range(len(call.args)) if self.same is None else self.same
        tensors = [k for k in shared if kind_of(call.args[k]) == "tensor"]
        if not tensors:
            raise call.error(0, "expected at least one tensor operand", "use `full` for a number")
        dtype = call.require_same_dtype(tensors)
        if not self.accepts(dtype):
            raise call.error(tensors[0], f"the operator is not defined for dtype {dtype}", _OTHER)
        for k in shared:
            if kind_of(call.args[k]) == "number":
                call.require_number(k, dtype)
        return dtype

    def deduce(self, call: CallFacts) -> Info:
        """Return the broadcast shape, and symbolic element values if they are known."""
        dtype = self.result_dtype(self.common_dtype(call))
        infos = [tensor_info(a) for a in call.args]
        shapes = [i.shape for i in infos if i is not None and i.shape is not None]
        shape = broadcast(call, shapes)
        return TensorInfo(shape, dtype, elements=self._elements(call, shape))

    def _elements(self, call: CallFacts, shape: tuple[Expr, ...]) -> tuple[Expr, ...] | None:
        sizes = [const_value(d) for d in shape]
        columns = [_stretched(call, k, sizes) for k in range(len(call.args))]
        if any(c is None for c in columns):
            return None
        found = [self.exact(row) for row in zip(*(c for c in columns if c), strict=True)]
        return tuple(e for e in found if e is not None) if None not in found else None

    def evaluate(self, run: Evaluation) -> Array:
        """Convert numbers to the dtype of the tensors, then compute the result."""
        shared = range(len(run.args)) if self.same is None else self.same
        dtype = next(a.dtype for k in shared if isinstance(a := run.args[k], np.ndarray))
        arrays = tuple(_as_array(a, dtype) for a in run.args)
        return np.asarray(self.compute(run, arrays))

    def define(self, low: Lowering) -> None:
        """Define one block over the elements of the result.

        A formula of several operations on 16-bit floats is computed in float32 and rounded once.
        """
        dtype = self.common_dtype(low.call)
        wide = accumulator(dtype)

        def operands(indices: tuple[Expr, ...], of: DType) -> tuple[Element, ...]:
            return tuple(
                literal_number(a, of) if isinstance(a, ScalarLiteral) else s.broadcast(indices)
                for a, s in zip(low.call.args, low.sources, strict=True)
            )

        def value(*indices: Expr) -> Element:
            found = self.element(low.call, operands(indices, dtype))
            if wide == dtype or _operations(found) <= 1:
                return found
            widened = (cast_to(wide, x) if x.dtype == dtype else x for x in operands(indices, wide))
            return cast_to(found.dtype, self.element(low.call, tuple(widened)))

        low.builder.compute(low.out, value, name=self.name)


_OTHER = "cast the operands to a dtype that registers of a machine hold"


def _operations(element: Element) -> int:
    """Return the number of arithmetic operations of a formula."""
    return sum(isinstance(e, Unary | Binary | Ternary) for e in walk_element(element))


def _as_array(value: ReferenceArg, dtype: np.dtype[Any]) -> Array:
    if isinstance(value, np.ndarray):
        return value
    return np.asarray(value, dtype=dtype)


def _stretched(
    call: CallFacts, position: int, sizes: Sequence[int | None]
) -> tuple[Expr, ...] | None:
    """Return the symbolic values of an operand broadcast to a constant shape, row-major."""
    known = call.elements(position)
    if known is None or None in sizes:
        return None
    constant = tuple(s for s in sizes if s is not None)
    if int(np.prod(constant)) > MAX_ELEMENTS:
        return None
    number = kind_of(call.args[position]) == "number"
    own = () if number else call.tensor(position).shape
    numbers = np.arange(len(known)).reshape([const_value(d) or 0 for d in own])
    return tuple(known[int(k)] for k in np.broadcast_to(numbers, constant).ravel())


def number_like(value: float, element: Element) -> Number:
    """Return a number in the dtype of an element."""
    return Number(value if element.dtype.is_inexact else int(value), element.dtype)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of operators for the documentation of their class."""
    widths = [max(len(r[k]) for r in (head, *rows)) for k in range(len(head))]
    rule = "  ".join("=" * w for w in widths)
    lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) for r in (head, *rows)]
    body = [rule, lines[0].rstrip(), rule, *(line.rstrip() for line in lines[1:]), rule]
    return "\n    ".join(body)
