"""Checks of the properties that reducers declare, on random values."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..dtype import DType, bool_
from ..loop.builder import Builder
from ..loop.combiners import is_named
from ..loop.nodes import Block, Buffer, Element, PrimFunc, Reducer
from ..loop.reducers import combined
from ..loop.visit import walk
from ..symbolic import Expr
from .loops import call_prim

SAMPLES = 64
"""The number of operands on which a property is checked."""

_TOLERANCE = {16: 0.1, 32: 1e-3, 64: 1e-6}


class ReducerPropertyWarning(UserWarning):
    """A reducer that is not associative or commutative, or whose identity changes an operand."""


def broken_properties(reducer: Reducer) -> tuple[str, ...]:
    """Return the properties that a reducer does not have on random operands.

    The operands are positive. Whether the identity changes an operand is also tried for operands
    that may be negative. The entries of the table of combiners have all properties.

    Examples
    --------
    >>> from ..script import parse
    >>> f = parse('''
    ... @prim_func
    ... def f(x: Buffer[(8,), f32], y: Out[(), f32]):
    ...     for k in range(8):
    ...         with block("y"):
    ...             vk = reduce(k)
    ...             @reducer(identity=1.0)
    ...             def difference(a: f32, b: f32):
    ...                 return a - b
    ...             with init(): y[()] = 0.0
    ...             y[()] = difference(x[vk])
    ... ''').prim("f")
    >>> broken_properties(f.body.body.reducer)
    ('not associative', 'not commutative', 'not neutral for its identity')
    """
    if is_named(reducer):
        return ()
    return tuple(_broken(reducer))


def warn_of_reducers(func: PrimFunc) -> None:
    """Warn of each reducer in a function that does not have a property that it declares."""
    for block in (s for s in walk(func.body) if isinstance(s, Block)):
        broken = () if block.reducer is None else broken_properties(block.reducer)
        if block.reducer is not None and broken:
            warnings.warn(
                ReducerPropertyWarning(
                    f"reducer {block.reducer.name!r} of block {block.name!r} in function "
                    f"{func.name!r} is {', and '.join(broken)}, on random values; results depend "
                    "on the schedule"
                ),
                stacklevel=3,
            )


def _broken(reducer: Reducer) -> Iterator[str]:
    a, b, c = range(3)
    if not _agree(reducer, ((a, b), c), (a, (b, c))):
        yield "not associative"
    if reducer.commutative and not _agree(reducer, (a, b), (b, a)):
        yield "not commutative"
    for signed, ending in ((False, ""), (True, " and negative values")):
        sides = ((a, None), (None, a))
        if not all(_agree(reducer, side, a, signed=signed) for side in sides):
            yield f"not neutral for its identity{ending}"
            return


_Tree: TypeAlias = "int | tuple[_Tree, _Tree] | None"
"""An expression of numbered operands; None is the identity."""


def _agree(reducer: Reducer, left: _Tree, right: _Tree, *, signed: bool = False) -> bool:
    """Return whether two expressions are equal for positive or for signed operands."""
    builder = Builder("reducer")
    operands = tuple(
        tuple(
            builder.param(f"x{k}_{j}", (SAMPLES,), local.dtype)
            for j, local in enumerate(reducer.left)
        )
        for k in range(3)
    )
    outputs = [
        tuple(
            builder.param(f"{side}{j}", (SAMPLES,), local.dtype, "out")
            for j, local in enumerate(reducer.left)
        )
        for side in ("left", "right")
    ]
    for tree, made in zip((left, right), outputs, strict=True):
        for position, out in enumerate(made):
            results = partial(_results, reducer, operands, tree)
            builder.compute(out, partial(_at, results, position))
    rng = np.random.default_rng(0)
    inputs = [_data(local.dtype, rng, signed=signed) for _ in range(3) for local in reducer.left]
    results = call_prim(builder.finish(), inputs)
    half = len(reducer.left)
    pairs = zip(results[:half], results[half:], reducer.left, strict=True)
    return all(_close(x, y, local.dtype) for x, y, local in pairs)


def _results(
    reducer: Reducer, operands: tuple[tuple[Buffer, ...], ...], tree: _Tree, index: Expr
) -> tuple[Element, ...]:
    """Return the values of an expression of operands at an index."""
    loaded = tuple(tuple(Builder.load(buffer, index) for buffer in each) for each in operands)
    return _value(reducer, tree, loaded)


def _at(results: Callable[[Expr], tuple[Element, ...]], position: int, index: Expr) -> Element:
    return results(index)[position]


def _value(
    reducer: Reducer, tree: _Tree, operands: tuple[tuple[Element, ...], ...]
) -> tuple[Element, ...]:
    match tree:
        case None:
            return reducer.identities
        case (first, second):
            left, right = _value(reducer, first, operands), _value(reducer, second, operands)
            return combined(reducer, left, right)
        case int():
            return operands[tree]


def _data(dtype: DType, rng: np.random.Generator, *, signed: bool) -> NDArray[np.generic]:
    if dtype == bool_:
        return rng.integers(0, 2, SAMPLES).astype(bool)
    if dtype.is_inexact:
        drawn = rng.uniform(-4.0 if signed else 0.25, 4.0, (2, SAMPLES))
        return (drawn[0] + 1j * drawn[1] if dtype.is_complex else drawn[0]).astype(dtype.numpy)
    lowest = -4 if signed and dtype.kind == "int" else 0
    return rng.integers(lowest, 4, SAMPLES).astype(dtype.numpy)


def _close(x: NDArray[np.generic], y: NDArray[np.generic], dtype: DType) -> bool:
    if not dtype.is_inexact:
        return bool(np.array_equal(x, y))
    limit = _TOLERANCE.get(dtype.part.bits, 0.5)
    left, right = x.astype(dtype.wide.numpy), y.astype(dtype.wide.numpy)
    return bool(np.allclose(left, right, rtol=limit, atol=limit, equal_nan=True))
