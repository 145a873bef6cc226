"""The number of roundings of an operator's result, counted in its loop-level definition."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from ...errors import TilewrightError
from ..dtype import DType, bool_
from ..graph.nodes import Call
from ..graph.operators import get_operator
from ..graph.operators.lowering import LoweredGraph, LoweredOperator, accumulator
from ..loop.element_functions import element_function
from ..loop.nodes import Binary, Bind, Block, Cast, Element, Store, Ternary, Unary
from ..loop.visit import walk, walk_element
from ..symbolic import Expr, UnboundSymbolError, Var, evaluate


@dataclass(frozen=True, slots=True)
class RoundingCount:
    """The typical rounding error of the results of a call.

    Parameters
    ----------
    units : float
        The error in units of ``inner``; 0 for operators that only move elements.
    inner : DType
        The dtype of accumulators and intermediate values.
    outer : DType
        The dtype of the results; the final conversion adds one unit of it.
    """

    units: float
    inner: DType
    outer: DType


def count_roundings(call: Call, symbols: Mapping[Var, int]) -> RoundingCount:
    """Return the typical rounding error of a call.

    Roundings have random signs, so n roundings change a result by sqrt(n) units. Their number is
    the length of the longest sum plus the number of operations per element.
    """
    lowered = _definition(call)
    if lowered is None:
        return RoundingCount(1, _widest(call), _widest(call))
    if isinstance(lowered, LoweredGraph):
        return _composed(call, lowered, symbols)
    count, longest = 0, 1
    for statement in walk(lowered.function.body):
        if isinstance(statement, Block):
            longest = max(longest, _length(statement, symbols))
        if isinstance(statement, Store | Bind):
            count += sum(_units(e) for e in walk_element(statement.value))
    outer = next((i.dtype for i in lowered.outputs if i.dtype.is_inexact), _widest(call))
    units = math.sqrt(longest + count) if count else 0.0
    return RoundingCount(units, accumulator(outer) if outer.is_float else outer, outer)


def _composed(call: Call, lowered: LoweredGraph, symbols: Mapping[Var, int]) -> RoundingCount:
    """Return the rounding error of a composition; library calls only move elements."""
    calls = [b.right for b in lowered.bindings if isinstance(b.right, Call)]
    units = [count_roundings(inner, symbols).units for inner in calls]
    return RoundingCount(math.hypot(*units), accumulator(_widest(call)), _widest(call))


def _units(element: Element) -> int:
    if not element.dtype.is_inexact:
        return 0
    match element:
        case Unary(op=op) | Binary(op=op) | Ternary(op=op):
            return element_function(op).rounding_units(element.dtype)
        case Cast():
            return 1
        case _:
            return 0


def _length(block: Block, symbols: Mapping[Var, int]) -> int:
    return math.prod(_size(v.extent, symbols) for v in block.iters if v.kind != "spatial")


def _size(extent: Expr, symbols: Mapping[Var, int]) -> int:
    try:
        return max(int(evaluate(extent, symbols)), 1)
    except UnboundSymbolError:
        return 1


@lru_cache(256)
def _definition(call: Call) -> LoweredOperator | LoweredGraph | None:
    try:
        info = get_operator(call.op).infer(call.args, call.attributes).info
        return get_operator(call.op).lower("rounding_count", call.args, call.attributes, info)
    except TilewrightError:  # not lowerable without more context: count one rounding
        return None


def _widest(call: Call) -> DType:
    floats = [d for a in call.args if isinstance(d := _dtype(a), DType) and d.is_inexact]
    return max(floats, key=lambda d: d.bits) if floats else bool_


def _dtype(operand: object) -> object:
    return getattr(getattr(operand, "info", None), "dtype", None)
