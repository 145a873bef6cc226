"""Branches, calls of graph functions and of loop-level functions, and refined annotations."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

from tilewright.ir.symbolic import to_text, var

from tests.fuzz.graphs import kernels, operators
from tests.fuzz.graphs.maker import PARAMS, Scope, Tensor, shape_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.fuzz.graphs.maker import GraphMaker
    from tests.fuzz.graphs.operators import Draw


def grow(m: GraphMaker, count: int, draws: Mapping[Draw, int]) -> None:
    """Add about a number of operators."""
    options, weights = list(draws), list(draws.values())
    wanted = len(m.scope.lines) + count
    for _ in range(6 * count):
        if len(m.scope.lines) >= wanted:
            return
        m.rng.choices(options, weights)[0](m)


def fork(m: GraphMaker) -> object:
    """Add a branch on an input, or on a computed condition; both sides have the same annotation."""
    x = operators.some(m, operators.number)
    flag = condition(m)
    if x is None or flag is None:
        return None
    name, outer, latest = m.name(), m.scope, dict(m.latest)
    sides: list[tuple[list[str], Tensor]] = []
    for _ in range(2):
        m.scope = Scope(list(outer.values), [], outer.params, outer.symbols, closed=True)
        last = x
        if m.chance(0.85):
            draws = {**operators.ELEMENTWISE, operators.matmul: 1, call: 1, **m.updates}
            grow(m, m.rng.randint(1, 3), draws)
            made = [t for t in m.scope.values[len(outer.values) :] if t.key == x.key]
            last = m.rng.choice(made) if made else x
        sides.append((m.scope.lines, last))
        m.latest = dict(latest)
    m.scope = outer
    if any(not side.text.isidentifier() for _, side in sides):
        return None
    both = [side for _, side in sides]
    made = Tensor(name, *x.key, max(t.bound for t in both), all(t.exact for t in both))
    lines = [f"if {flag.text}:"]
    for k, (inner, last) in enumerate(sides):
        lines += ["else:"] * k + [f"    {line}" for text in inner for line in text.split("\n")]
        lines.append(f"    {name}: {made.info} = {last.text}")
    m.bind(made, "\n".join(lines))
    m.remember(x, made)
    return made


def condition(m: GraphMaker) -> Tensor | None:
    """Return a truth value: a value, an input, or one that is computed from a value."""
    known = m.pick(lambda t: t.dtype == "bool" and t.rank == 0)
    if known is not None and m.chance(0.6):
        return known
    if m.chance(0.5):
        made = m.param((), "bool")
        if made is not None:
            return made
    x = m.pick(lambda t: operators.number(t) and t.exact and t.rank > 0)
    flags = x and m.emit("greater", x, 0.0 if x.is_float else 0, bound=1)
    made = flags and m.emit(m.rng.choice(["any", "all"]), flags, bound=1)
    return made or known  # type: ignore[return-value]


def layers(m: GraphMaker) -> object:
    """Add a graph function and several calls of it, with different or the same arguments."""
    x = operators.some(m, lambda t: operators.number(t) and t.exact and t.bound <= 50)
    if x is None:
        return None
    outer, name = m.scope, m.name("layer")
    m.scope = Scope([], [], [f"a: {x.info}"])
    inner = [Tensor("a", *x.key, x.bound)]
    m.scope.values.append(inner[0])
    if m.chance(0.5):
        inner.append(Tensor("b", *x.key, x.bound))
        m.scope.params.append(f"b: {x.info}")
        m.scope.values.append(inner[1])
    m.scope.define(x.shape)
    if not m.scope.defines(x.shape):
        m.scope = outer
        return None
    m.scope.closed = True
    grow(m, m.rng.randint(1, 4), operators.ELEMENTWISE | operators.DENSE | operators.MOVEMENT)
    made = m.scope.values[len(inner) :]
    if not made:
        m.scope = outer
        return None
    results = m.rng.sample(made[-3:], m.rng.randint(1, min(2, len(made))))
    if m.chance(0.1):
        results.append(inner[0])
    m.functions.append(m.function(name, m.scope, [t.text for t in results]))
    m.scope = outer
    for _ in range(m.rng.choice([1, 2, 2, 3])):
        args = [m.pick(lambda t: t.key == x.key and t.exact and t.bound <= x.bound) or x
                for _ in inner]  # fmt: skip
        called(m, f"call({name}, {', '.join(t.text for t in args)})", results, args)
    return results


def called(m: GraphMaker, call: str, results: list[Tensor], args: list[Tensor]) -> None:
    """Bind the results of a call, as a tuple if there are several."""
    copies = [Tensor(m.name(), *t.key, t.bound, t.exact) for t in results]
    if len(copies) == 1:
        m.bind(copies[0], f"{copies[0].text}: {copies[0].info} = {call}")
        return
    whole = m.name("t")
    infos = ", ".join(t.info for t in copies)
    m.scope.lines.append(f"{whole}: Tuple[{infos}] = {call}")
    for k, made in enumerate(copies):
        m.bind(made, f"{made.text} = {whole}[{k}]")


def again(m: GraphMaker) -> object:
    """Add the same operators several times: identical layers, or the same call twice."""
    x = operators.some(m, lambda t: operators.number(t) and t.exact and t.bound <= 50)
    if x is None:
        return None
    seed, own = m.rng.randrange(1 << 30), m.rng
    for _ in range(m.rng.randint(2, 3)):
        source = x if m.chance(0.5) else m.pick(
            lambda t: t.key == x.key and t.exact and t.bound <= 50) or x  # fmt: skip
        outer = m.scope
        m.scope = Scope([source], outer.lines, outer.params, outer.symbols, closed=True)
        m.rng = random.Random(seed)
        grow(m, 3, operators.ELEMENTWISE | {operators.matmul: 3, operators.reduction: 1})
        outer.values += m.scope.values[1:]
        m.scope, m.rng = outer, own
    return x


def duplicate(m: GraphMaker) -> object:
    """Add a call of an operator that the program has, and combine both results."""
    lines = [x for x in m.scope.lines if re.match(r"\w+ = (?!match_cast|nonzero)\w+\(.*\)$", x)]
    found = [(t, x) for t in m.scope.values for x in lines if x.startswith(f"{t.text} = ")]
    if not found:
        return None
    x, line = m.rng.choice(found[-4:])
    made = Tensor(m.name(), *x.key, x.bound, x.exact)
    m.bind(made, f"{made.text} = {line.partition(' = ')[2]}")
    return m.emit("maximum", x, made) if operators.number(x) else made


def pair(m: GraphMaker) -> object:
    """Add a tuple of values, and some of its fields."""
    parts = [t for t in (m.pick(lambda t: t.text.isidentifier()) for _ in range(2)) if t]
    if len(parts) < 2:
        return None
    whole = m.name("t")
    infos = ", ".join(t.info for t in parts)
    m.scope.lines.append(f"{whole}: Tuple[{infos}] = ({parts[0].text}, {parts[1].text})")
    k = m.rng.randrange(2)
    made = Tensor(m.name(), *parts[k].key, parts[k].bound, parts[k].exact)
    m.bind(made, f"{made.text} = {whole}[{k}]")
    return made


def refine(m: GraphMaker) -> object:
    """Add a ``match_cast``: new symbols for dimensions, or a dimension that must equal another."""
    x = m.pick(lambda t: t.rank > 0 and t.text.isidentifier())
    if x is None or m.scope.closed:
        return None
    shape = list(x.shape)
    axis = m.rng.randrange(x.rank)
    fresh = m.name("p")
    m.symbols[fresh] = var(fresh, lower=0)
    m.defined[fresh] = to_text(shape[axis])
    shape[axis] = m.symbols[fresh]
    m.scope.define(shape)
    made = Tensor(m.name(), tuple(shape), x.dtype, x.bound, x.exact)
    m.bind(made, f"{made.text} = match_cast({x.text}, {made.info})")
    return made


def unknown_shape(m: GraphMaker) -> object:
    """Add an input without a shape, and a ``match_cast`` that binds its dimensions."""
    if m.scope.closed or len(m.scope.params) >= PARAMS:
        return None
    rank, dtype = m.rng.randint(1, 2), m.dtype()
    shape = [m.dim() for _ in range(rank)]
    for axis in range(rank):
        if m.chance(0.7) or not m.scope.defines([shape[axis]]):
            fresh = m.name("q")
            shape[axis] = m.symbol(fresh)
    shown = f"Tensor(None, {dtype}, rank={rank})"
    made = m.param(tuple(shape), dtype, shown=shown)
    if made is None:
        return None
    m.scope.values.remove(made)
    m.unknown[made.text] = shape_text(shape)
    m.scope.define(shape)
    refined = Tensor(m.name(), *made.key, made.bound)
    m.bind(refined, f"{refined.text} = match_cast({made.text}, {refined.info})")
    return refined


def call(m: GraphMaker) -> object:
    """Add a call of a hand-written loop-level function, sometimes twice with other arguments."""
    kernel = m.rng.choice(kernels.KERNELS)
    for _ in range(m.rng.choice([1, 1, 2])):
        kernel(m)


STRUCTURES: Mapping[Draw, int] = {
    fork: 2, layers: 2, again: 2, pair: 1, refine: 1, unknown_shape: 1, call: 4,
}  # fmt: skip
