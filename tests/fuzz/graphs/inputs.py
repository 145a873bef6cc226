"""Sizes and arrays for random graph programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilewright.ir.dtype import DType
from tilewright.ir.graph.nodes import GraphFunc, TensorInfo
from tilewright.ir.symbolic import evaluate, free_vars, parse_expr

from tests.fuzz.inputs import GUARD, LARGE, PATTERN, PRIMES, SMALL, NoSizesError

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from tilewright.ir.symbolic import Bool, Expr, Var

    from tests.fuzz.graphs.program import GraphProgram

    Sizes = dict[str, int]

WORK = {"small": 3000, "prime": 3000, "large": 60_000}
"""The largest number of elements that the operators compute, by the kind of the sizes."""


def symbols_of(function: GraphFunc, program: GraphProgram) -> dict[str, Var]:
    """Return the symbols of the inputs of a function by name."""
    found: dict[str, Var] = {}
    for param in function.params:
        info = param.value.info
        for dim in (info.shape or ()) if isinstance(info, TensorInfo) else ():
            found |= {v.name: v for v in free_vars(dim)}
    for binding in function.bindings:
        info = binding.value.info
        if isinstance(info, TensorInfo):
            found |= {v.name: v for d in info.shape or () for v in free_vars(d)}
    return {k: v for k, v in sorted(found.items()) if k not in program.defined}


def sizes(rng: random.Random, program: GraphProgram, function: GraphFunc, kind: str) -> Sizes:
    """Draw a value for every symbol: ``small``, ``prime``, or one ``large``.

    The values satisfy the facts of ``function``, which a step may have extended. If all that were
    tried cause more work than intended, those with the least work are returned.
    """
    symbols = symbols_of(program.function, program)
    least: tuple[int, dict[str, int]] | None = None
    for attempt in range(300):
        found = {k: rng.choice(SMALL if kind == "small" else PRIMES) for k in symbols}
        if kind == "large" and symbols and attempt < 150:
            found = {k: rng.choice(PRIMES[:3]) for k in symbols}
            found[rng.choice(list(symbols))] = rng.choice(LARGE)
        found = {k: _fitting(symbols[k], v, attempt) for k, v in found.items()}
        if legal(program, function, found):
            cost = work(program, found)
            least = min(least or (cost, found), (cost, found), key=lambda known: known[0])
            if cost <= WORK[kind]:
                return found
        if least is not None and attempt > 200:
            return least[1]
    raise NoSizesError(f"found no sizes for {[str(f) for f in function.facts]}")


def _fitting(symbol: Var, value: int, attempt: int) -> int:
    least = max(symbol.lower or 0, value)
    step = (1, 1, 2, 4, 8)[attempt % 5]
    return -(-least // step) * step


def whole(program: GraphProgram, found: Mapping[str, int]) -> Sizes:
    """Return sizes with the symbols that the program binds."""
    made = dict(found)
    for name, text in program.defined.items():
        made[name] = value(text, made)
    return made


def value(term: str | Expr | Bool, found: Mapping[str, int]) -> int:
    """Return the value of a term over symbols by name."""
    if isinstance(term, str):
        from tilewright.ir.symbolic import var

        names = {k: var(k) for k in found}
        term = parse_expr(term, names)
    return int(evaluate(term, {v: found[v.name] for v in free_vars(term)}))


def legal(program: GraphProgram, function: GraphFunc, found: Mapping[str, int]) -> bool:
    """Return whether sizes satisfy the declarations of the symbols and the facts of a function.

    A fact about a size that depends on the data is not satisfied.
    """
    if any({v.name for v in f.predicate.free} & {*program.measured} for f in function.facts):
        return False
    every = whole(program, found)
    symbols = symbols_of(program.function, program)
    declared = all((symbols[k].lower or 0) <= v for k, v in found.items() if k in symbols)
    known = [
        f.predicate for f in function.facts if {v.name for v in f.predicate.free} <= every.keys()
    ]
    return declared and all(value(p, every) for p in known)  # type: ignore[arg-type]


def work(program: GraphProgram, found: Mapping[str, int]) -> int:
    """Return about how many elements the operators compute."""
    every = whole(program, found)
    return sum(value(text, every) for text in program.work)


def arguments(program: GraphProgram, found: Mapping[str, int], seed: int) -> list[np.ndarray]:
    """Return an array for each parameter of ``main``, in guarded allocations; see `intact`."""
    rng = np.random.default_rng(seed)
    every = whole(program, found)
    made = []
    for param in program.function.params:
        info, name = param.value.info, param.value.name
        assert isinstance(info, TensorInfo)
        shape = [value(d, every) for d in info.shape or ()]
        if info.shape is None:
            shape = _shape(program.unknown[name], every)
        indices = program.indices.get(name)
        if indices is None:
            numbers = data(rng, shape, info.dtype)
        else:
            low, high = value(indices.low, every), value(indices.high, every)
            numbers = rng.integers(low, max(high, low + 1), shape)
        made.append(guarded(numbers.astype(info.dtype.numpy)))
    return made


def _shape(text: str, found: Mapping[str, int]) -> list[int]:
    parts = text.strip("()").split(",")
    return [value(p.strip(), found) for p in parts if p.strip()]


def data(rng: np.random.Generator, shape: list[int], dtype: DType) -> np.ndarray:
    """Return random elements: small whole numbers for floats, any for integers."""
    kind = dtype.numpy
    if kind == np.bool_:
        return rng.integers(0, 2, shape)
    if not dtype.is_float:
        low, high = max(dtype.lowest, -128), min(dtype.highest, 127 if dtype.kind == "int" else 255)
        return rng.integers(low, high + 1, shape)
    largest = 1 if kind.itemsize == 2 else 3
    return rng.integers(-largest, largest + 1, shape)


def guarded(array: np.ndarray) -> np.ndarray:
    """Return a copy of an array with `GUARD` bytes before and after it."""
    count = array.nbytes
    memory = np.full(count + 2 * GUARD + 64, PATTERN, np.uint8)
    start = -(memory.ctypes.data + GUARD) % 64 + GUARD
    made = np.ndarray(array.shape, array.dtype, memory.data, start)
    made[...] = array
    return made
