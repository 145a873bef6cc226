"""Calls of operators in the interpreter: their requirements and reference implementations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..graph.nodes import Call
from ..graph.operators import get_operator
from ..graph.operators.shape_inference import Requirement
from ..symbolic import Expr, Facts, evaluate, free_vars
from .frame import Array, Datum, Frame, GraphCheckError
from .rounding_count import count_roundings


def integers(datum: tuple[Datum, ...]) -> tuple[int, ...]:
    """Return the integers of a tuple."""
    return tuple(int(d) for d in datum if isinstance(d, int | np.integer))


def _argument(frame: Frame, datum: Datum) -> Array | float | tuple[int, ...]:
    if isinstance(datum, bytearray):
        raise GraphCheckError(
            "expected a tensor operand, got the value of alloc_storage",
            where=f"function {frame.function.name!r}",
        )
    if isinstance(datum, np.generic):  # NumPy returns scalars for tensors of rank 0
        return np.asarray(datum)
    return integers(datum) if isinstance(datum, tuple) else datum


@lru_cache(maxsize=4096)
def _requirements(call: Call, facts: Facts) -> tuple[Requirement, ...]:
    """Return the requirements of an operator that the facts do not prove."""
    return get_operator(call.op).infer(call.args, call.attributes, facts).requirements


def call_operator(frame: Frame, call: Call, operands: Sequence[Datum]) -> Datum:
    """Return the result of an operator, by its reference implementation.

    Raises
    ------
    GraphCheckError
        If the symbols violate a requirement of the operator.
    """
    operator = get_operator(call.op)
    for required in _requirements(call, frame.function.facts):
        if not evaluate(required.predicate, frame.symbols):
            given = (f"{v.name} = {frame.symbols[v]}" for v in free_vars(required.predicate))
            raise GraphCheckError(
                f"check failed for {', '.join(sorted(given))}: {required.reason}",
                where=f"function {frame.function.name!r}",
            )
    args = [_argument(frame, a) for a in operands]
    attributes = {
        key: frame.size(value) if isinstance(value, Expr) else value
        for key, value in call.attributes
    }
    with np.errstate(all="ignore"):
        if frame.rounding is None:
            return operator.reference(args, attributes, wide=frame.precise)
        return _rounded_operator(frame, call, args, attributes)


def _rounded_operator(
    frame: Frame,
    call: Call,
    args: Sequence[Array | float | tuple[int, ...]],
    attributes: Mapping[str, Any],
) -> Datum:
    """Evaluate an operator with operands and results perturbed by its rounding error.

    Operators are backward stable: a computed result is the exact result for slightly perturbed
    operands. The perturbation grows with the number of summed terms. Others also keep the rounding
    of intermediate values that are larger than the result.
    """
    rounding, operator = frame.rounding, get_operator(call.op)
    if rounding is None:
        return ()
    count = count_roundings(call, frame.symbols)
    given = [
        np.asarray(rounding.array(a, count.inner, count.units))  # not a scalar if it has rank 0
        if count.units and isinstance(a, np.ndarray)
        else a
        for a in args
    ]
    made = operator.reference(given, attributes, wide=frame.precise)
    if not count.units:
        return made
    several = made if isinstance(made, tuple) else (made,)
    perturbed = tuple(
        rounding.array(rounding.array(r, count.inner, count.units), count.outer) for r in several
    )
    larger = operator.canceled(tuple(args))
    if larger is not None:
        error = rounding.array(larger, count.inner) - larger
        perturbed = tuple(p + error for p in perturbed)
    return perturbed if isinstance(made, tuple) else perturbed[0]
