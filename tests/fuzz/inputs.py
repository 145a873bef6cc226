"""Sizes and arrays for random programs.

Sizes include 0, 1, primes, and more than two vectors of the widest processor. Floats are small
integers, whose sums and products are exact in every dtype.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from tilewright.ir.dtype import from_numpy
from tilewright.ir.loop.nodes import BufferParam, For
from tilewright.ir.loop.visit import children
from tilewright.ir.symbolic import const_value, evaluate, parse_expr

from tests.strategies import symbols_of

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

    from tilewright.ir.loop.nodes import PrimFunc, Stmt
    from tilewright.ir.symbolic import Bool, Expr, Var

    from tests.fuzz.program import Indices, Program

Env = "Mapping[Var, int]"

SMALL = (0, 1, 2, 3)
PRIMES = (2, 3, 5, 7, 11, 13)
LARGE = (8, 16, 17, 19, 35, 67)
"""The last ones exceed two vectors of 16 and of 32 elements, with a tail."""

WORK = 8000
"""The largest number of statements of one run, which bounds the time of the interpreter."""

GUARD = 64
"""The number of bytes before and after each array that code must not change."""

PATTERN = 0xA5


class NoSizesError(Exception):
    """Assumptions that no choice of small sizes satisfies."""


def sizes(rng: random.Random, program: Program, function: PrimFunc, kind: str) -> dict[Var, int]:
    """Draw a value for every symbol of a function: ``small``, ``prime``, or one ``large``.

    The values satisfy the facts of ``function``, which a step may have extended.
    """
    symbols = symbols_of(function)
    conditions = _conditions(program, function)
    for attempt in range(400):
        found = {v: rng.choice(SMALL if kind == "small" else PRIMES) for v in symbols}
        if kind == "large" and symbols and attempt < 200:
            found = {v: rng.choice(PRIMES[:3]) for v in symbols}
            found[rng.choice(symbols)] = rng.choice(LARGE)
        found = {v: _fitting(v, value, attempt) for v, value in found.items()}
        if all(evaluate(c, found) for c in conditions) and (
            iterations(function.body, found) <= WORK or attempt > 300
        ):
            return found
    raise NoSizesError(f"found no sizes that satisfy {conditions}")


def _conditions(program: Program, function: PrimFunc) -> list[Bool]:
    names = {v.name: v for v in symbols_of(function)}
    relations = [parse_expr(text, names) for text in program.relations]
    return [*(f.predicate for f in function.facts), *relations]


def legal(program: Program, function: PrimFunc, env: Mapping[Var, int]) -> bool:
    """Return whether sizes satisfy the declarations of a function, and its facts."""
    declared = all(
        (v.lower is None or x >= v.lower)
        and (v.upper is None or x <= v.upper)
        and x % v.multiple_of == 0
        for v, x in env.items()
    )
    return declared and all(evaluate(c, env) for c in _conditions(program, function))


def _fitting(symbol: Var, value: int, attempt: int) -> int:
    """Return a value that the declaration of a symbol permits, multiples after some attempts."""
    least = max(symbol.lower or 0, value)
    if symbol.upper is not None:
        least = min(least, symbol.upper)
    step = symbol.multiple_of if symbol.multiple_of > 1 else (1, 1, 2, 4, 8)[attempt % 5]
    return -(-least // step) * step


def iterations(statement: Stmt, env: Mapping[Var, int]) -> int:
    """Return about how many statements an execution runs.

    Extents that depend on variables of loops around are those of the middle iterations.
    """
    extent, inner = 1, env
    if isinstance(statement, For):
        known = statement.extent.free <= env.keys()
        extent = _evaluate(statement.extent, env) if known else max(env.values(), default=1)
        inner = {**env, statement.var: extent // 2}
    if extent <= 0:
        return 1  # extents in it may divide by zero
    return extent * sum(iterations(child, inner) for child in children(statement)) + 1


def copies(statement: Stmt) -> int:
    """Return the largest number of copies of a statement that unrolled loops make."""
    inner = max((copies(child) for child in children(statement)), default=1)
    if isinstance(statement, For) and statement.kind == "unrolled":
        return inner * (const_value(statement.extent) or 1)
    return inner


def arguments(program: Program, function: PrimFunc, env: Mapping[Var, int], seed: int = 0):
    """Return an array for each buffer parameter of a function.

    Every array has its own allocation with `GUARD` bytes before and after it; see `intact`.
    """
    rng = np.random.default_rng(seed)
    made: list[np.ndarray] = []
    for param in function.params:
        if isinstance(param, BufferParam):
            own = param.buffer
            shape = [max(0, _evaluate(d, env)) for d in own.shape]
            numbers = _numbers(rng, shape, own.dtype.numpy, program.indices.get(own.name), env)
            made.append(_laid_out(numbers, param, env))
    return made


def _evaluate(term: Expr, env: Mapping[Var, int]) -> int:
    return int(evaluate(term, env))


def _numbers(
    rng: np.random.Generator,
    shape: list[int],
    kind: np.dtype,
    indices: Indices | None,
    env: Mapping[Var, int],
) -> np.ndarray:
    if indices is not None:
        return _indices(rng, shape[0], indices, env).astype(kind)
    if kind == np.bool_:
        return rng.integers(0, 2, shape).astype(kind)
    row = from_numpy(kind)
    if row.is_integer:
        low, high = max(row.lowest, -128), min(row.highest, 255 if row.kind == "uint" else 127)
        return rng.integers(low, high + 1, shape).astype(kind)
    largest = 1 if kind.itemsize == 2 else 3
    numbers = rng.integers(-largest, largest + 1, shape).astype(kind)
    if row.is_complex:
        numbers.imag = rng.integers(-largest, largest + 1, shape)
    return numbers


def _indices(
    rng: np.random.Generator, count: int, wanted: Indices, env: Mapping[Var, int]
) -> np.ndarray:
    low, high = (_bound(text, env) for text in (wanted.low, wanted.high))
    if wanted.order == "distinct":
        return rng.permutation(np.arange(low, high))[:count]
    found = rng.integers(low, max(high, low + 1), count)
    return np.sort(found) if wanted.order == "sorted" else found


def _bound(text: str, env: Mapping[Var, int]) -> int:
    return int(evaluate(_parsed(text, tuple(env)), env))


@cache
def _parsed(text: str, symbols: tuple[Var, ...]) -> Expr | Bool:
    return parse_expr(text, {v.name: v for v in symbols})


def _laid_out(array: np.ndarray, param: BufferParam, env: Mapping[Var, int]) -> np.ndarray:
    """Return an array with the layout of its buffer, inside a guarded allocation."""
    strides = param.buffer.strides
    if strides is None:
        steps = [s // array.itemsize for s in np.empty(array.shape, array.dtype).strides]
        reach = array.size
    else:
        steps = [_evaluate(s, env) for s in strides]
        reach = sum((d - 1) * s for d, s in zip(array.shape, steps, strict=True)) + 1
        reach = max(reach, 1) if array.size else 1
    count = reach * array.itemsize
    memory = np.full(count + 2 * GUARD + 64, PATTERN, np.uint8)
    start = -(memory.ctypes.data + GUARD) % 64 + GUARD
    scaled = [s * array.itemsize for s in steps]
    view = np.ndarray(array.shape, array.dtype, memory.data, start, scaled)
    view[...] = array
    return view


def snapshot(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return copies with the layouts of guarded arrays, and guards of their own."""
    made = []
    for array in arrays:
        memory = np.array(_memory(array))
        offset = array.ctypes.data - _memory(array).ctypes.data
        shifted = np.full(memory.size + 64, PATTERN, np.uint8)
        start = (array.ctypes.data - offset) % 64
        skip = (start - shifted.ctypes.data) % 64
        shifted[skip : skip + memory.size] = memory
        made.append(
            np.ndarray(array.shape, array.dtype, shifted.data, skip + offset, array.strides)
        )
    return made


def _memory(array: np.ndarray) -> np.ndarray:
    return np.frombuffer(array.base, np.uint8)


def intact(array: np.ndarray) -> bool:
    """Return whether the bytes before and after an array have their initial value."""
    memory = _memory(array)
    start = array.ctypes.data - memory.ctypes.data
    spans = [(d - 1) * s for d, s in zip(array.shape, array.strides, strict=True)]
    length = sum(spans) + array.itemsize if array.size else 0
    before, after = memory[:start], memory[start + length :]
    return bool((before == PATTERN).all() and (after == PATTERN).all())
