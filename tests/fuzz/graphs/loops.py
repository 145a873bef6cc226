"""Loops of the graph: counted loops, scans, while loops, and carried values that grow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tilewright.ir.symbolic import as_expr, to_text

from tests.fuzz.graphs import operators, selection, structures
from tests.fuzz.graphs.maker import LARGEST, STATE, WHOLE, Scope, Tensor, annotation, largest
from tests.fuzz.program import Indices

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tilewright.ir.symbolic import Expr

    from tests.fuzz.graphs.maker import GraphMaker
    from tests.fuzz.graphs.operators import Draw

TRIPS = 4
"""The largest number of iterations of a loop with a condition."""

DEPTH = 2
"""The largest number of loops around each other."""


@dataclass
class Carried:
    """A carried value of a loop in construction, and the state whose value it is."""

    given: Tensor
    inside: Tensor
    state: str = ""
    after: Tensor | None = None


@dataclass
class LoopText:
    """The parts of a loop in construction."""

    index: Expr
    count: Expr | None
    carried: list[Carried] = field(default_factory=list)
    params: list[str] = field(default_factory=list)
    head: list[str] = field(default_factory=list)
    condition: str = ""


def start(m: GraphMaker) -> LoopText:
    """Return a loop with a new index, which counts to a constant or to a dimension."""
    index = m.symbol(m.name("k"), least=0)
    count = m.dim()
    if m.chance(0.6) or not m.scope.defines((count,)):
        count = as_expr(m.rng.choice([0, 1, 2, 3]))
    return LoopText(index, count)


def carry(m: GraphMaker, made: LoopText, given: Tensor, state: str = "") -> Tensor:
    """Add a carried value with the annotation of its first value."""
    limit = STATE if given.is_float else float(WHOLE.get(given.dtype, 2.0**31))
    inside = Tensor(m.name("c"), *given.key, limit)
    made.carried.append(Carried(given, inside, state))
    made.params.append(f"{inside.text}: {inside.info} = {given.text}")
    return inside


def fits(t: Tensor) -> bool:
    """Return whether a value may be carried: its elements remain exact in every iteration."""
    return t.exact and t.rank <= 3 and (not t.is_float or t.bound <= STATE)


def is_stack(t: Tensor) -> bool:
    """Return whether a value has slices, which are a whole number of bytes."""
    return t.rank > 0 and t.exact and t.dtype not in ("i4", "u4", "i2", "u2")


def stack(m: GraphMaker, x: Tensor) -> Tensor | None:
    """Pick a stacked input: sometimes a value that the loop carries, or a view of it."""
    latest = [t for t in m.latest.values() if t in m.scope.values]
    own = m.rng.choice([x, *latest])
    if not is_stack(own) or m.chance(0.6):
        return m.pick(is_stack)
    if own.rank == 2 and m.chance(0.3):
        viewed = m.emit("reshape", own, own.shape[::-1])
        return viewed or own
    return own


def repeated(m: GraphMaker) -> object:
    """Add a loop: counted, a scan, or a while loop."""
    x = operators.some(m, fits)
    if x is None or m.depth >= DEPTH or (m.scope.closed and not m.depth):
        return None
    made, latest = start(m), dict(m.latest)
    scanned = stack(m, x) if m.chance(0.4) else None
    limit = None if scanned or m.chance(0.6) else bound_of_trips(m)
    zero = limit and m.emit("full", (), 0, dtype="i64", bound=1)
    made.count = scanned.shape[0] if scanned else made.count
    if limit is not None and m.chance(0.7):
        made.count = None
    outer = m.scope
    symbols = {*outer.symbols, made.index}
    m.scope = Scope(list(outer.values), [], outer.params, symbols, closed=True)  # type: ignore[arg-type]
    m.scope.index = made.index
    m.scope.values.append(carry(m, made, x))
    for name, present in latest.items():
        if present in outer.values and m.chance(0.5):
            m.latest[name] = carry(m, made, present, name)
            m.scope.values.append(m.latest[name])
    if scanned is not None:
        slice_ = Tensor(m.name("e"), scanned.shape[1:], scanned.dtype, scanned.bound)
        made.params.append(f"{slice_.text}: {slice_.info} = each({scanned.text})")
        m.scope.values.append(slice_)
    if limit is not None and zero is not None:
        counter = carry(m, made, zero)
        made.condition = m.name("b")
        made.head.append(f"{made.condition} = less({counter.text}, {limit.text})")
    trips = made.count if made.count is not None else as_expr(TRIPS)
    m.defined[to_text(made.index)] = to_text(trips)
    base = len(m.scope.values)
    grown(m, trips)
    stacked = finish(m, made, base)
    lines, inner = m.scope.lines, m.scope
    m.scope, m.latest = outer, latest
    if inner.symbols - symbols:
        return None
    return bound(m, made, lines, stacked)


def bound_of_trips(m: GraphMaker) -> Tensor | None:
    """Return an input that ends a while loop."""
    return m.param((), "i64", indices=Indices("0", str(TRIPS + 1)))


def grown(m: GraphMaker, trips: Expr) -> None:
    """Add the operators of an iteration, and note how often they run."""
    mark = len(m.work)
    draws = {
        **operators.ELEMENTWISE, operators.matmul: 1, operators.reduction: 1,
        operators.broadcast: 1, operators.created: 1, selection.ordered: 1,
        structures.call: 1, structures.fork: 1, repeated: 1, **m.updates,
    }  # fmt: skip
    m.depth += 1
    structures.grow(m, m.rng.randint(1, 4), draws)
    m.depth -= 1
    m.work[mark:] = [w * trips for w in m.work[mark:]]


def finish(m: GraphMaker, made: LoopText, base: int) -> list[Tensor]:
    """Choose the next values and the stacked outputs of an iteration."""
    for own in made.carried:
        key = own.inside.key
        if own.state:
            own.after = m.latest[own.state]
        elif own.given.text == made.carried[-1].given.text and made.condition:
            own.after = m.emit("add", own.inside, 1, bound=TRIPS + 1)
        else:
            found = [t for t in m.scope.values[base:] if t.key == key and t.exact]
            own.after = m.rng.choice(found) if found and m.chance(0.9) else own.inside
        if own.after is not None and own.after.is_float and own.after.bound > STATE:
            low = m.emit("minimum", own.after, STATE)
            own.after = low and m.emit("maximum", low, -STATE, bound=STATE)
        if own.after is None or own.after.key != key:
            own.after = own.inside
    options = [
        t for t in m.scope.values[base - 1 :]
        if t.exact and t.dtype not in operators.NARROW and made.index not in _symbols(t)
    ]  # fmt: skip
    return m.rng.sample(options, min(len(options), m.rng.choice([0, 0, 1, 1, 2])))


def _symbols(t: Tensor) -> set:
    return {v for d in t.shape for v in d.free}


def bound(m: GraphMaker, made: LoopText, lines: list[str], stacked: list[Tensor]) -> object:
    """Add the loop and its results."""
    if any(own.after is None for own in made.carried):
        return None
    varies = made.condition and stacked
    count = made.count if made.count is not None and not made.condition else None
    if stacked and count is None:
        count = selection.measured(m, as_expr(TRIPS) if made.count is None else made.count)
    after = [own.after for own in made.carried if own.after is not None]
    results = [Tensor(m.name(), *own.inside.key, own.inside.bound) for own in made.carried]
    for t in stacked:
        assert count is not None
        results.append(Tensor(m.name(), (count, *t.shape), t.dtype, t.bound))
    infos = [annotation(t.shape, t.dtype) for t in results]
    shown = infos[0] if len(infos) == 1 else f"Tuple[{', '.join(infos)}]"
    arrow = f" -> {shown}" if varies or m.chance(0.3) else ""
    whole = results[0].text if len(results) == 1 else m.name("y")
    bodies = [line for text in lines for line in text.split("\n")]
    returned = f"return {', '.join(t.text for t in [*after, *stacked])}"
    inside = [*bodies, returned]
    if made.condition:
        inside = [*made.head, f"while {made.condition}:", *(f"    {line}" for line in inside)]
    counted = "" if made.count is None else f", count={to_text(made.count)}"
    text = [
        f"@loop({to_text(made.index)}{counted})",
        f"def {whole}({', '.join(made.params)}){arrow}:",
        *(f"    {line}" for line in inside),
    ]
    if len(results) == 1:
        m.bind(results[0], "\n".join(text))
    else:
        m.scope.lines.append("\n".join(text))
        for k, t in enumerate(results):
            m.bind(t, f"{t.text} = {whole}[{k}]")
    for own, result in zip(made.carried, results, strict=False):
        if own.state:
            m.latest[own.state] = result
        else:
            m.remember(own.given, result)
    return results


def growing(m: GraphMaker) -> object:
    """Add a loop that carries a value with more rows after each iteration."""
    x = m.pick(lambda t: fits(t) and 0 < t.rank <= 2 and largest(t.shape[0]) <= LARGEST)
    if x is None or m.scope.closed or m.depth:
        return None
    made, tail = start(m), x.shape[1:]
    trips = m.rng.randint(0, TRIPS)
    made.count = as_expr(trips)
    row = m.pick(lambda t: t.key == ((as_expr(1), *tail), x.dtype) and fits(t)) or x
    most = x.shape[0] + row.shape[0] * trips
    rows, last = selection.measured(m, most), selection.measured(m, most)
    m.defined[to_text(made.index)] = str(trips)
    c, d, y = (m.name() for _ in range(3))
    info = annotation((rows, *tail), x.dtype)
    parts = m.rng.choice([(c, row.text), (row.text, c)])
    lines = [
        f"@loop({to_text(made.index)}, count={trips})",
        f"def {y}({c}: {info} = {x.text}) -> {annotation((last, *tail), x.dtype)}:",
        f"    {d} = concat({', '.join(parts)}, axis=0)",
        f"    return {d}",
    ]
    result = Tensor(y, (last, *tail), x.dtype, max(x.bound, row.bound))
    m.bind(result, "\n".join(lines))
    return result


LOOPS: Mapping[Draw, int] = {repeated: 5, growing: 1}
