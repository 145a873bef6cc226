"""Interpreter of loop-level functions on NumPy arrays.

A function is translated statement by statement into Python loops over NumPy scalars, without
vectorization or reordering. Every index is checked against its buffer, and every iteration
variable against its domain. Temporaries are filled with NaN or a byte pattern, so that a read of
uninitialized memory changes the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..analysis.widths import magnitude, wide_terms
from ..loop.nodes import Buffer, BufferParam, PrimFunc
from ..sizes import SIZE_LIMIT
from ..symbolic import Fact, Var, const_value, evaluate, to_text
from .rounding import Rounding
from .translation import InterpreterInputError, program_of, storage_of, symbols_of, undefined

Array = NDArray[Any]


def bind_symbols(
    func: PrimFunc, shapes: Mapping[Buffer, tuple[int, ...]], scalars: Mapping[str, int]
) -> dict[Var, int]:
    """Return the values of the function's symbols, bound by array shapes and integer arguments.

    Raises
    ------
    InterpreterInputError
        If a rank, dimension, or fact is violated, or a symbol remains unbound.
    """
    env: dict[Var, int] = {v: scalars[v.name] for v in func.scalar_params if v.name in scalars}
    for buffer, shape in shapes.items():
        _check_rank(func, buffer, shape)
        for dim, size in zip(buffer.shape, shape, strict=True):
            if isinstance(dim, Var):
                env.setdefault(dim, size)
    env |= {v: scalars[v.name] for v in symbols_of(func) if v not in env and v.name in scalars}
    missing = [v.name for v in symbols_of(func) if v not in env]
    if missing:
        raise InterpreterInputError(
            f"no array shape or integer argument determines {', '.join(missing)}",
            where=f"function {func.name!r}",
            hint="pass the missing values in `scalars`",
        )
    for symbol, value in env.items():
        problem = bound_problem(symbol, value)
        if problem:
            raise InterpreterInputError(problem, where=f"function {func.name!r}")
    _check_dims(func, shapes, env)
    return env


def bound_problem(symbol: Var, value: int) -> str:
    """Describe which declared bound of a symbol a value violates; empty if it violates none.

    Examples
    --------
    >>> from ..symbolic import var
    >>> bound_problem(var("n", lower=0, upper=8), 9)
    'n <= 8 is false for n = 9'
    """
    name, wrong = symbol.name, ""
    if symbol.lower is not None and value < symbol.lower:
        wrong = f"{name} >= {symbol.lower}"
    elif symbol.upper is not None and value > symbol.upper:
        wrong = f"{name} <= {symbol.upper}"
    elif value % symbol.multiple_of:
        wrong = f"{name} % {symbol.multiple_of} == 0"
    return wrong and f"{wrong} is false for {name} = {value}"


def _bound(fact: Fact, env: Mapping[Var, int]) -> str:
    """Return the values of the symbols of a fact as text."""
    symbols = sorted(fact.predicate.free, key=lambda v: v.serial)
    return ", ".join(f"{v.name} = {env[v]}" for v in symbols)


def _check_rank(func: PrimFunc, buffer: Buffer, shape: tuple[int, ...]) -> None:
    if len(shape) != buffer.rank:
        raise InterpreterInputError(
            f"expected rank {buffer.rank}, got rank {len(shape)}",
            where=f"function {func.name!r}, parameter {buffer.name!r}",
        )


def _check_dims(
    func: PrimFunc, shapes: Mapping[Buffer, tuple[int, ...]], env: Mapping[Var, int]
) -> None:
    for buffer, shape in shapes.items():
        for axis, (dim, size) in enumerate(zip(buffer.shape, shape, strict=True)):
            expected = evaluate(dim, env)
            if expected != size:
                wanted = (
                    f"{expected}"
                    if const_value(dim) is not None
                    else f"{to_text(dim)} = {expected}"
                )
                raise InterpreterInputError(
                    f"dimension {axis}: expected {wanted}, got {size}",
                    where=f"function {func.name!r}, parameter {buffer.name!r}",
                )
    for fact in func.facts:
        if not evaluate(fact.predicate, env):
            raise InterpreterInputError(
                f"fact {to_text(fact.predicate)} does not hold for {_bound(fact, env)}",
                where=f"function {func.name!r}",
            )
    for term in wide_terms(func):
        if magnitude(term, env) >= SIZE_LIMIT:
            raise InterpreterInputError(
                f"the integer term {to_text(term)} reaches the limit of 2**60",
                where=f"function {func.name!r}",
            )


def _garbage(buffer: Buffer, env: Mapping[Var, int], *, precise: bool) -> Array:
    shape = tuple(max(int(evaluate(d, env)), 0) for d in buffer.shape)
    return undefined(shape, buffer.name, buffer.dtype, precise=precise)


def _run(
    func: PrimFunc,
    arrays: Mapping[Buffer, Array],
    env: Mapping[Var, int],
    *,
    precise: bool,
    rounding: Rounding | None,
) -> None:
    program = program_of(func, precise=precise, rounded=rounding is not None)
    temporaries = {b: _garbage(b, env, precise=precise) for b in func.buffers}
    everything = {**arrays, **temporaries}
    with np.errstate(all="ignore"):
        program.run(
            None if rounding is None else rounding.scalar,
            *(everything[b] for b in program.buffers),
            *(env[s] for s in program.symbols),
        )


def run_prim(
    func: PrimFunc,
    arrays: Sequence[Array],
    scalars: Mapping[str, int] | None = None,
    *,
    precise: bool = False,
    rounding: Rounding | None = None,
) -> None:
    """Run a loop-level function in place.

    Parameters
    ----------
    func : PrimFunc
        The function.
    arrays : sequence of arrays
        One array per buffer parameter, in order; outputs are written in place.
    scalars : mapping of str to int, optional
        The values of the integer parameters, by name.
    precise : bool
        Compute all floats in float64; float arrays must have dtype float64.
    rounding : Rounding, optional
        Round every operation on floats randomly, to estimate the effect of rounding.

    Raises
    ------
    InterpreterInputError
        If the arrays or integers do not match the parameters.
    OutOfBoundsError
        If an access is outside of its buffer, or an iteration variable outside of its domain.

    Examples
    --------
    >>> from ..dtype import f32
    >>> from ..loop.builder import Builder
    >>> from ..loop.nodes import Binary
    >>> from ..symbolic import var
    >>> b, n = Builder("double"), var("n", lower=0)
    >>> x, y = b.param("x", (n,), f32), b.param("y", (n,), f32, "out")
    >>> b.compute(y, lambda i: Binary("add", b.load(x, i), b.load(x, i)))
    >>> out = np.empty(3, np.float32)
    >>> run_prim(b.finish(), [np.arange(3, dtype=np.float32), out])
    >>> out
    array([0., 2., 4.], dtype=float32)
    """
    buffers = func.buffer_params
    if len(arrays) != len(buffers):
        raise InterpreterInputError(
            f"number of arrays: expected {len(buffers)}, got {len(arrays)}",
            where=f"function {func.name!r}",
        )
    for buffer, array in zip(buffers, arrays, strict=True):
        storage = storage_of(buffer.dtype, precise=precise)
        if array.dtype != storage:
            raise InterpreterInputError(
                f"expected dtype {storage}, got {array.dtype}",
                where=f"function {func.name!r}, parameter {buffer.name!r}",
            )
    bound = dict(zip(buffers, arrays, strict=True))
    env = bind_symbols(func, {b: a.shape for b, a in bound.items()}, scalars or {})
    _run(func, bound, env, precise=precise, rounding=rounding)


def call_prim(
    func: PrimFunc,
    inputs: Sequence[Array],
    scalars: Mapping[str, int] | None = None,
    *,
    precise: bool = False,
    rounding: Rounding | None = None,
) -> tuple[Array, ...]:
    """Run a loop-level function on its inputs and return the arrays it writes.

    ``inputs`` are the arrays of the in, inout, and state parameters in order; they are not
    modified. The result contains the out, inout, and state arrays in the order of the parameters.
    The other parameters are those of `run_prim`.
    """
    params = [p for p in func.params if isinstance(p, BufferParam)]
    given = [p.buffer for p in params if p.access != "out"]
    if len(inputs) != len(given):
        raise InterpreterInputError(
            f"number of arrays: expected {len(given)}, got {len(inputs)}",
            where=f"function {func.name!r}",
        )
    arrays: dict[Buffer, Array] = {
        b: np.array(a, storage_of(b.dtype, precise=precise), copy=True)
        for b, a in zip(given, inputs, strict=True)
    }
    env = bind_symbols(func, {b: a.shape for b, a in arrays.items()}, scalars or {})
    for param in params:
        if param.access == "out":
            arrays[param.buffer] = _garbage(param.buffer, env, precise=precise)
    _run(func, arrays, env, precise=precise, rounding=rounding)
    return tuple(arrays[p.buffer] for p in params if p.access != "in")
