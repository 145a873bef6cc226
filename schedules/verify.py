"""Verification of schedules: the interpreter's results before and after all steps.

The data are small integers, which floats represent exactly: sums and products are the same in
every order, so most programs compare bit for bit. Otherwise (roots, exponentials), both programs
run again in float64, and their results must agree up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..display import Table
from ..errors import TilewrightError
from ..ir.analysis import tree_of
from ..ir.dtype import from_numpy
from ..ir.graph.nodes import GraphFunc, TensorInfo
from ..ir.interpreter import call_prim, run_graph
from ..ir.loop.nodes import BufferParam, For, Let, PrimFunc
from ..ir.loop.visit import walk
from ..ir.module import Module
from ..ir.symbolic import (
    Bounds,
    Const,
    Eq,
    Expr,
    Fact,
    Facts,
    Mod,
    Var,
    bounds,
    evaluate,
    free_vars,
)
from ..progress import ProgressOption, progress_of
from .problem import ScheduleError

Array = NDArray[np.generic]

ROUNDING = 1e-9
"""The largest relative difference in float64 that reordered arithmetic may cause."""


class VerificationError(ScheduleError):
    """A scheduled function whose results differ from the original ones."""

    title = "Different results"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of one function at one choice of sizes.

    Parameters
    ----------
    function : str
        The name of the function.
    sizes : Mapping[str, int]
        The values of its symbols.
    exact : bool
        Whether all results are equal bit for bit.
    difference : float
        The largest relative difference in float64; 0 if ``exact``.
    """

    function: str
    sizes: Mapping[str, int]
    exact: bool
    difference: float

    @property
    def ok(self) -> bool:
        """True if the results are equal bit for bit, or up to rounding."""
        return self.exact or self.difference <= ROUNDING

    @property
    def at(self) -> str:
        """The sizes as text."""
        return ", ".join(f"{k} = {v}" for k, v in self.sizes.items()) or "constant sizes"

    @property
    def result(self) -> str:
        """The result of the comparison as text."""
        how = "bit for bit" if self.exact else f"relative difference {self.difference:.1e}"
        return how if self.ok else f"{how}, WRONG"

    def __str__(self) -> str:
        """Return the comparison as one line of text."""
        return f"{self.function} at {self.at}: {self.result}"


@dataclass(frozen=True, slots=True, repr=False)
class Verification:
    """The result of :meth:`~.schedule.Schedule.verify`.

    Parameters
    ----------
    compared : tuple of Comparison
        One comparison per function and choice of sizes.
    skipped : tuple of (str, str)
        The functions that were not run, or not at some sizes, with the reason.
    """

    compared: tuple[Comparison, ...]
    skipped: tuple[tuple[str, str], ...] = ()

    @property
    def ok(self) -> bool:
        """True if all comparisons agree."""
        return all(c.ok for c in self.compared)

    def table(self) -> Table:
        """Return the comparisons and the skipped functions as a table."""
        rows = [(c.function, c.at, c.result) for c in self.compared]
        rows += [(name, "", f"not run, {reason}") for name, reason in self.skipped]
        return Table(("function", "sizes", "results"), tuple(rows))

    def _repr_html_(self) -> str:
        """Return the table as static HTML."""
        return self.table().to_html()

    def __repr__(self) -> str:
        """Return the number of comparisons, and of those that disagree."""
        wrong = sum(not c.ok for c in self.compared)
        skipped = f", {len(self.skipped)} not run" if self.skipped else ""
        agree = f"{len(self.compared) - wrong} of {len(self.compared)} comparisons agree"
        return f"<Verification: {agree}{skipped}>"

    def __str__(self) -> str:
        """Return one line per comparison."""
        lines = [str(c) for c in self.compared]
        lines += [f"{name}: not run, {reason}" for name, reason in self.skipped]
        return "\n".join(lines) or "nothing changed"

    def required(self) -> Verification:
        """Return itself.

        Raises
        ------
        VerificationError
            If any comparison disagrees.
        """
        wrong = [c for c in self.compared if not c.ok]
        if wrong:
            raise VerificationError("\n".join(map(str, wrong)), where=wrong[0].function)
        return self


_SizeKind: TypeAlias = Literal["zero", "one", "prime", "large"]

_KINDS: Final[tuple[_SizeKind, ...]] = ("prime", "zero", "one", "large")
"""The sizes of consecutive runs: each is drawn in the default number of runs.

In runs at 0 and 1, some symbols have this size, and the others are prime. A large size is a prime
of more than two vectors of the widest targets.
"""

_PRIMES: Final[Mapping[_SizeKind, tuple[int, ...]]] = {
    "zero": (0,),
    "one": (1,),
    "prime": (2, 3, 5, 7, 11, 13),
    "large": (37, 41, 43),
}

_EDGES: Final = ("zero", "one")


def verify(
    before: Module,
    after: Module,
    *,
    runs: int = 4,
    seed: int = 0,
    limit: float = 3e6,
    progress: ProgressOption = None,
) -> Verification:
    """Return the comparison of every changed function that both modules contain.

    Parameters
    ----------
    before : Module
        The original program.
    after : Module
        The scheduled program.
    runs : int
        The number of runs per function, at different sizes if it has symbols: a prime, 0, 1, a
        prime above 32, and so on, as far as they are legal. Runs at the same sizes with different
        data count as one comparison, the worst.
    seed : int
        The seed of the random sizes and data.
    limit : float
        The largest number of innermost iterations of one run; functions with more are reported as
        skipped.
    progress : bool or callable, optional
        Whether to show a progress bar, or a function of a fraction and a message, as in
        :func:`~tilewright.codegen.compile`.
    """
    rng = np.random.default_rng(seed)
    compared: list[Comparison] = []
    skipped: list[tuple[str, str]] = []
    changed = [name for name in before.functions if _is_changed(before, after, name)]
    with progress_of("verifying", progress) as report:
        for k, name in enumerate(changed):
            old, new = before.functions[name], after.functions[name]
            tried: dict[tuple[int, ...], Comparison] = {}
            for run in range(runs):
                report((k + run / runs) / len(changed), name)
                facts, kind = _facts_of(old, new), _KINDS[run % len(_KINDS)]
                sizes = _other_sizes(old, facts, rng, tried, kind)
                whole = after if isinstance(new, GraphFunc) else new
                if kind in _EDGES and (reason := _rejection(before, name, sizes, rng)):
                    at = ", ".join(f"{v.name} = {n}" for v, n in sizes.items())
                    skipped.append((name, f"{at} is rejected before the steps: {reason}"))
                    sizes = _other_sizes(old, facts, rng, tried, "prime")
                if kind == "large" and _work(whole, sizes) > limit:
                    sizes = _other_sizes(old, facts, rng, tried, "prime")
                work = _work(whole, sizes)
                if work > limit:
                    skipped.append((name, f"{work:.0e} iterations exceed the limit of {limit:.0e}"))
                    break
                found = _compare(before, after, name, sizes, rng)
                key = tuple(sizes.values())
                tried[key] = max(tried.get(key, found), found, key=_wrongness)
            compared.extend(tried.values())
    return Verification(tuple(compared), tuple(dict.fromkeys(skipped)))


def _is_changed(before: Module, after: Module, name: str) -> bool:
    """Return whether a function of both modules may have other results."""
    old, new = before.functions[name], after.functions.get(name)
    if isinstance(old, GraphFunc):
        return new is not None and before is not after
    return new is not None and new is not old


def _wrongness(comparison: Comparison) -> tuple[bool, float]:
    return not comparison.exact, comparison.difference


def _rejection(
    module: Module, name: str, sizes: Mapping[Var, int], rng: np.random.Generator
) -> str:
    """Return why a program does not run at sizes of 0 or 1, as with an index into no elements."""
    inputs = _inputs(module.functions[name], sizes, rng)
    try:
        _run(module, name, inputs, {v.name: n for v, n in sizes.items()}, precise=False)
    except TilewrightError as error:
        return str(error).splitlines()[0]
    return ""


def _compare(
    before: Module, after: Module, name: str, sizes: Mapping[Var, int], rng: np.random.Generator
) -> Comparison:
    inputs = _inputs(before.functions[name], sizes, rng)
    shown = {v.name: value for v, value in sizes.items()}
    old, new = (_run(m, name, inputs, shown, precise=False) for m in (before, after))
    if all(np.array_equal(a, b, equal_nan=_is_float(a)) for a, b in zip(old, new, strict=True)):
        return Comparison(name, shown, exact=True, difference=0.0)
    old, new = (_run(m, name, inputs, shown, precise=True) for m in (before, after))
    difference = max(_difference(a, b) for a, b in zip(old, new, strict=True))
    return Comparison(name, shown, exact=False, difference=difference)


def _is_float(array: Array) -> bool:
    return array.dtype.kind not in "biu"


def _difference(a: Array, b: Array) -> float:
    if a.shape != b.shape:
        return float("inf")
    if not _is_float(a):
        return 0.0 if np.array_equal(a, b) else float("inf")
    wide = from_numpy(a.dtype).wide.numpy
    left, right = np.asarray(a, wide), np.asarray(b, wide)
    if not np.array_equal(np.isfinite(left), np.isfinite(right)):
        return float("inf")
    finite = np.isfinite(left)
    gap = np.abs(np.subtract(left[finite], right[finite]))
    return float(np.max(gap / np.maximum(np.abs(left[finite]), 1.0), initial=0.0))


def _run(
    module: Module, name: str, inputs: Sequence[Array], sizes: Mapping[str, int], *, precise: bool
) -> tuple[Array, ...]:
    function = module.functions[name]
    if precise:
        inputs = [a.astype(from_numpy(a.dtype).wide.numpy) for a in inputs]
    if isinstance(function, PrimFunc):
        return call_prim(function, inputs, dict(sizes), precise=precise)
    passed = [np.array(a) for a in inputs]
    results = run_graph(module, passed, function=name, precise=precise)
    written = (a for p, a in zip(function.params, passed, strict=False) if p.access != "in")
    return tuple(r for result in (*results, *written) for r in _arrays(result))


def _arrays(result: object) -> Iterator[Array]:
    if isinstance(result, tuple):
        for item in result:  # pyright: ignore[reportUnknownVariableType]
            yield from _arrays(item)  # pyright: ignore[reportUnknownArgumentType]
    else:
        yield np.asarray(result)


def _dimensions(function: PrimFunc | GraphFunc) -> list[tuple[Expr, ...]]:
    """Return the terms of the shapes of parameters, and of their elements."""
    if isinstance(function, PrimFunc):
        return [b.shape for b in function.buffer_params]
    infos = (p.value.info for p in function.params)
    tensors = [i for i in infos if isinstance(i, TensorInfo) and i.shape is not None]
    return [(*(i.shape or ()), *(i.elements or ())) for i in tensors]


def _facts_of(old: PrimFunc | GraphFunc, new: PrimFunc | GraphFunc) -> tuple[Fact, ...]:
    """Return the facts of both functions; a step may have added assumptions."""
    return tuple(dict.fromkeys((*old.facts, *new.facts)))


def _sizes(
    function: PrimFunc | GraphFunc,
    facts: tuple[Fact, ...],
    rng: np.random.Generator,
    kind: _SizeKind | None,
) -> dict[Var, int]:
    """Return random values of the symbols that satisfy the facts.

    Later attempts draw any sizes, because few may be of the requested kind.
    """
    shapes = _dimensions(function)
    symbols = {v for shape in shapes for dim in shape for v in free_vars(dim)}
    if isinstance(function, PrimFunc):
        symbols.update(function.scalar_params)
    ordered = sorted(symbols, key=lambda v: v.serial)
    for attempt in range(200):
        kinds = _kinds_of(ordered, rng, kind if attempt < 50 else None)
        drawn = {v: _value(v, facts, rng, kinds[v]) for v in ordered}
        if all(evaluate(fact.predicate, drawn) for fact in _known(facts, symbols)):
            return drawn
    raise ScheduleError(
        f"found no sizes that satisfy all facts of {function.name!r}",
        hint="run the interpreter at sizes of your choice",
    )


def _kinds_of(
    symbols: list[Var], rng: np.random.Generator, kind: _SizeKind | None
) -> dict[Var, _SizeKind | None]:
    """Return the kind of the size of each symbol; of several symbols, some are 0 or 1."""
    kinds: dict[Var, _SizeKind | None] = dict.fromkeys(symbols, kind)
    if kind in _EDGES and symbols:
        for k in rng.permutation(len(symbols))[: rng.integers(0, len(symbols))]:
            kinds[symbols[k]] = "prime"
    return kinds


def _other_sizes(
    function: PrimFunc | GraphFunc,
    facts: tuple[Fact, ...],
    rng: np.random.Generator,
    tried: Mapping[tuple[int, ...], Comparison],
    kind: _SizeKind,
) -> dict[Var, int]:
    """Return random sizes that were not tried yet, or repeated ones if none are found."""
    for attempt in range(30):
        drawn = _sizes(function, facts, rng, kind if attempt < 10 else None)
        if not drawn or tuple(drawn.values()) not in tried:
            return drawn
    return _sizes(function, facts, rng, kind)


def _known(facts: tuple[Fact, ...], symbols: set[Var]) -> list[Fact]:
    return [f for f in facts if f.predicate.free <= symbols]


def _value(
    symbol: Var, facts: tuple[Fact, ...], rng: np.random.Generator, kind: _SizeKind | None
) -> int:
    found = bounds(symbol, Facts(facts))
    low = max(0 if kind == "zero" else 1, found.lower or 0)
    step = math.lcm(symbol.multiple_of, *_divisors(symbol, facts))
    listed = () if kind is None else _PRIMES[kind]
    legal = [
        number * step
        for number in listed
        if number * step >= low and (found.upper is None or number * step <= found.upper)
    ]
    return legal[int(rng.integers(0, len(legal)))] if legal else _any_value(found, low, step, rng)


def _any_value(found: Bounds, low: int, step: int, rng: np.random.Generator) -> int:
    """Return a random legal size near the lower bound."""
    high = low + 12 if found.upper is None else min(found.upper, low + 12)
    high = high if found.upper is not None else max(high, low + 3 * step)
    least = -(-low // step) * step
    choices = max(1, (max(high, least) - least) // step + 1)
    return least + step * int(rng.integers(0, min(choices, 13)))


def _divisors(symbol: Var, facts: tuple[Fact, ...]) -> Iterator[int]:
    """Yield the numbers that a symbol is a multiple of according to facts."""
    for fact in facts:
        match fact.predicate:
            case Eq(left=Mod(numerator=numerator, divisor=Const(value=value)), right=rest) if (
                numerator is symbol and rest == 0 and value > 0
            ):
                yield value
            case _:
                pass


def _inputs(
    function: PrimFunc | GraphFunc, sizes: Mapping[Var, int], rng: np.random.Generator
) -> list[Array]:
    if isinstance(function, PrimFunc):
        params = [p for p in function.params if isinstance(p, BufferParam) and p.access != "out"]
        limits = _index_limits(function, sizes)
        return [
            _data(p.buffer.shape, p.buffer.dtype.numpy, sizes, rng, limits.get(p.buffer.uid))
            for p in params
        ]
    infos = [p.value.info for p in function.params]
    return [
        _data(i.shape, i.dtype.numpy, sizes, rng, (0, 2))
        if i.elements is None
        else _given(i.elements, i.shape, i.dtype.numpy, sizes)
        for i in infos
        if isinstance(i, TensorInfo) and i.shape is not None
    ]


def _index_limits(function: PrimFunc, sizes: Mapping[Var, int]) -> dict[int, tuple[int, int]]:
    """Return the valid ranges of integers that are read as indices, by buffer."""
    found: dict[int, tuple[int, int]] = {}
    for statement in walk(function.body):
        if isinstance(statement, Let):
            lower, upper = evaluate(statement.lower, sizes), evaluate(statement.upper, sizes)
            low, high = found.get(statement.load.buffer.uid, (lower, upper))
            found[statement.load.buffer.uid] = (max(low, lower), min(high, upper))
    return found


def _given(
    elements: tuple[Expr, ...],
    shape: tuple[Expr, ...],
    dtype: np.dtype[np.generic],
    sizes: Mapping[Var, int],
) -> Array:
    """Return a tensor whose elements are symbolic integers."""
    values = np.array([evaluate(e, sizes) for e in elements], dtype)
    return values.reshape([evaluate(d, sizes) for d in shape])


def _data(
    shape: tuple[Expr, ...],
    dtype: np.dtype[np.generic],
    sizes: Mapping[Var, int],
    rng: np.random.Generator,
    limits: tuple[int, int] | None,
) -> Array:
    dims = [evaluate(dim, sizes) for dim in shape]
    if dtype.kind == "b":
        return rng.integers(0, 2, dims).astype(dtype)
    low, high = (limits if limits and dtype.kind in "iu" else None) or (-4, 5)
    if dtype.kind == "u":
        low = max(low, 0)
    drawn = rng.integers(low, max(high, low + 1), dims)
    if dtype.kind == "c":
        return (drawn + 1j * rng.integers(low, high, dims)).astype(dtype)
    return drawn.astype(dtype)


def _work(program: Module | PrimFunc | GraphFunc, sizes: Mapping[Var, int]) -> float:
    """Return the number of innermost iterations of a function or a module."""
    if isinstance(program, Module):
        by_name = {v.name: value for v, value in sizes.items()}
        return sum(_work(f, _named(f, by_name)) for f in program.prims)
    if isinstance(program, GraphFunc):
        return 0.0
    tree = tree_of(program)
    total = 0.0
    for block in tree.leaf_blocks():
        count = 1.0
        for loop in (s for s in tree.ancestors(block) if isinstance(s, For)):
            count *= _count(loop.extent, sizes)
        total += count
    return total


def _named(function: PrimFunc, values: Mapping[str, int]) -> dict[Var, int]:
    return {v: values.get(v.name, 8) for v in tree_of(function).symbols()}


def _count(extent: Expr, sizes: Mapping[Var, int]) -> float:
    if free_vars(extent) <= sizes.keys():
        return float(evaluate(extent, sizes))
    upper = bounds(extent).upper
    return 1.0 if upper is None else float(upper)
