"""State: parameters that persist, kernels that update an argument, and last values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir.symbolic import as_expr, const_value, product

from tests.fuzz.graphs import kernels, operators, structures
from tests.fuzz.graphs.kernels import block, declared, frame, suffix, written
from tests.fuzz.graphs.maker import STATE, Scope, Tensor, annotation, least
from tests.fuzz.program import at, buffer, nest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.fuzz.graphs.maker import GraphMaker
    from tests.fuzz.graphs.operators import Draw

DTYPES = ("f32", "f32", "f32", "f16", "bf16", "i32", "i8", "i4", "f8_e4m3")
STATES = 3
"""The largest number of states."""


def most(dtype: str) -> float:
    """Return the largest magnitude of the elements of a state."""
    return STATE if dtype.startswith(("f", "bf")) else float("inf")


def keeps(t: Tensor) -> bool:
    """Return whether a value may become the value of a state."""
    return t.dtype in DTYPES and t.exact and (not t.is_float or t.bound <= STATE)


def create(m: GraphMaker) -> object:
    """Add a state or an argument that the caller passes to be updated."""
    if m.scope.closed or len(m.states) >= STATES:
        return None
    known = m.pick(lambda t: t.dtype in DTYPES and t.rank > 0)
    if known is not None and m.chance(0.6):
        shape, dtype = known.key
    else:
        shape, dtype = m.shape(1, 2), m.rng.choice(DTYPES)
    kind = m.rng.choice(["State", "State", "State", "InOut"])
    initial = ""
    if kind == "State" and m.chance(0.3) and all(const_value(d) is not None for d in shape):
        initial = f", {m.constant(shape, dtype).text}"
    m.scope.define(shape)
    if not m.scope.defines(shape):
        return None
    name = m.name("s")
    info = annotation(shape, dtype)
    m.scope.params.append(f"{name}: {kind}[{info}{initial}]")
    made = Tensor(name, shape, dtype, min(most(dtype), 2.0**31))
    m.states[name] = m.latest[name] = made
    m.scope.values.append(made)
    return made


def operand(m: GraphMaker, *ranks: int) -> Tensor | None:
    """Pick a value to update: more often the present value of a state, or a view of it."""
    latest = m.latest.get(m.rng.choice(list(m.states))) if m.states else None
    fits = latest is not None and latest.rank in ranks and latest in m.scope.values
    if fits and m.chance(0.7):
        return latest
    found = m.pick(lambda t: keeps(t) and t.rank in ranks)
    if found is not None and m.chance(0.2):
        viewed = m.emit("reshape", found, (product(found.shape),))
        return viewed if viewed is not None and 1 in ranks else found
    return found


def clamped(value: str, dtype: str) -> str:
    """Return an element whose magnitude is that of the elements of a state."""
    if dtype in ("i32", "i8", "i4"):
        return value
    return f"min(max({value}, {dtype}(-8)), {dtype}(8))"


def updated(m: GraphMaker, c: Tensor, call: str, outputs: list[Tensor] | None = None) -> Tensor:
    """Bind the results of a call: outputs, then the new value of an operand."""
    new = Tensor(m.name(), *c.key, min(most(c.dtype), 2.0**31))
    made = [*(outputs or []), new]
    if len(made) == 1:
        m.bind(new, f"{new.text}: {new.info} = {call}")
    else:
        whole = m.name("t")
        m.scope.lines.append(f"{whole}: Tuple[{', '.join(t.info for t in made)}] = {call}")
        for k, t in enumerate(made):
            m.bind(t, f"{t.text} = {whole}[{k}]")
    m.remember(c, new)
    return new


def beside(m: GraphMaker, c: Tensor) -> Tensor | None:
    """Return another operand of the same shape: a value, the same one, or an input."""
    same = m.pick(lambda t: t.key == c.key and t.exact and (not t.is_float or t.bound <= 1e4))
    return same or m.param(c.shape, c.dtype)


def bump(m: GraphMaker) -> object:
    """Call a function that adds to an argument, in either order of its parameters."""
    c = operand(m, 1, 2, 3)
    x = c and beside(m, c)
    if c is None or x is None:
        return None
    dims = declared(m, c.shape)
    first = m.chance(0.5)
    name = f"bump{int(first)}_{suffix(dims, c.dtype)}"
    loops, head, inside = frame(dims)
    value = clamped(f"{at('c', inside)} + {at('x', inside)}", c.dtype)
    body = nest(loops, block("c", head, f"{at('c', inside)} = {value}"))
    params = [buffer("c", dims, c.dtype, "InOut"), buffer("x", dims, c.dtype)]
    written(m, name, params if first else params[::-1], body)
    args = (c.text, x.text) if first else (x.text, c.text)
    return updated(m, c, f"call_tir({name}, {', '.join(args)}, updates=({int(not first)},))")


def seen(m: GraphMaker) -> object:
    """Call a function that returns a result, and updates an argument."""
    c = operand(m, 1, 2)
    x = c and beside(m, c)
    if c is None or x is None or (y := m.result(*c.key, c.bound + x.bound, (c, x))) is None:
        return None
    dims = declared(m, c.shape)
    name = f"seen_{suffix(dims, c.dtype)}"
    loops, head, inside = frame(dims)
    other = [v.replace("v", "w") for v in inside]
    own, arg = at("c", inside), at("x", inside)
    lines = [
        *block("y", head, f"{at('y', inside)} = {own} + {arg}"),
        *block("c", head.replace("v", "w"),
               f"{at('c', other)} = {clamped(at('x', other), c.dtype)}"),
    ]  # fmt: skip
    params = [buffer("c", dims, c.dtype, "InOut"), buffer("x", dims, c.dtype),
              buffer("y", dims, c.dtype, "Out")]  # fmt: skip
    written(m, name, params, nest(loops, lines))
    return updated(m, c, f"call_tir({name}, {c.text}, {x.text}, updates=(0,))", [y])


def put(m: GraphMaker) -> object:
    """Call a function that writes a row at a position, as a cache of keys and values does."""
    c = operand(m, 1, 2)
    if c is None or least(c.shape[0]) == 0:
        return None
    tail = c.shape[1:]
    row = m.pick(lambda t: t.key == (tail, c.dtype) and keeps(t)) or m.param(tail, c.dtype)
    where = operators.index_source(m, c.shape[0], m.shape(1)[:0])
    if row is None or where is None:
        return None
    dims = declared(m, c.shape)
    name = f"put_{where.dtype}_{suffix(dims, c.dtype)}"
    inside = [f"v{kernels.DIMS[k]}" for k in range(1, c.rank)]
    loops = [("i", "1"), *[(kernels.DIMS[k], dims[k]) for k in range(1, c.rank)]]
    _, head, _ = frame([d for _, d in loops])
    body = nest(loops, block("c", head, f"with checked(at[()], 0, {dims[0]}) as row:",
                             f"    {at('c', ['row', *inside])} = {at('x', inside)}"))  # fmt: skip
    params = [buffer("c", dims, c.dtype, "InOut"), buffer("x", dims[1:], c.dtype),
              f"at: Buffer[(), {where.dtype}]"]  # fmt: skip
    written(m, name, params, body.replace("spatial(i)", "ordered(i)"))
    args = f"{c.text}, {row.text}, {where.text}"
    return updated(m, c, f"call_tir({name}, {args}, updates=(0,))")


def shift(m: GraphMaker) -> object:
    """Call a function that moves the elements of an argument by one row."""
    c = operand(m, 1, 2)
    if c is None:
        return None
    dims = declared(m, c.shape)
    name = f"shift_{suffix(dims, c.dtype)}"
    inner = [(kernels.DIMS[k], dims[k]) for k in range(1, c.rank)]
    loops = [("i", f"max({dims[0]} - 1, 0)"), *inner]
    _, head, inside = frame([d for _, d in loops])
    source = at("c", ["vi + 1", *inside[1:]])
    body = nest(loops, block("c", head.replace("spatial(i)", "ordered(i)"),
                             f"{at('c', inside)} = {source}"))  # fmt: skip
    written(m, name, [buffer("c", dims, c.dtype, "InOut")], body)
    return updated(m, c, f"call_tir({name}, {c.text}, updates=(0,))")


def exchange(m: GraphMaker) -> object:
    """Call a function that updates two arguments; both may be the same value."""
    a = operand(m, 1, 2)
    if a is None:
        return None
    b = m.pick(lambda t: t.key == a.key and keeps(t)) or a
    dims = declared(m, a.shape)
    name = f"exchange_{suffix(dims, a.dtype)}"
    loops, head, inside = frame(dims)
    other = [v.replace("v", "w") for v in inside]
    total = clamped(f"{at('a', inside)} + {at('b', inside)}", a.dtype)
    rest = clamped(f"{at('a', other)} - {at('b', other)}", a.dtype)
    lines = [*block("a", head, f"{at('a', inside)} = {total}"),
             *block("b", head.replace("v", "w"), f"{at('b', other)} = {rest}")]  # fmt: skip
    params = [buffer(p, dims, a.dtype, "InOut") for p in "ab"]
    written(m, name, params, nest(loops, lines))
    call = f"call_tir({name}, {a.text}, {b.text}, updates=(0, 1))"
    first = Tensor(m.name(), *a.key, min(most(a.dtype), 2.0**31))
    made = updated(m, b, call, [first])
    m.remember(a, first)
    return made


def replace(m: GraphMaker) -> object:
    """Make another value the present value of a state: any, or that of another state."""
    if not m.states:
        return None
    name = m.rng.choice(list(m.states))
    own = m.states[name]
    others = [m.latest[s] for s, t in m.states.items() if t.key == own.key and s != name]
    new = m.rng.choice(others) if others and m.chance(0.5) else m.pick(
        lambda t: t.key == own.key and keeps(t))  # fmt: skip
    if new is not None:
        m.latest[name] = new
    return new


def limited(m: GraphMaker) -> object:
    """Compute the next value of a state by ordinary operators."""
    if not m.states:
        return None
    name = m.rng.choice(list(m.states))
    own = m.latest[name]
    if own not in m.scope.values:
        return None
    x = m.like(own)
    bound = own.bound + (abs(x) if isinstance(x, int | float) else x.bound)  # type: ignore[union-attr]
    if not getattr(x, "exact", True):
        return None
    made = m.emit(m.rng.choice(["add", "subtract"]), own, x, bound=bound)
    if made is not None and made.is_float:
        low = m.emit("minimum", made, STATE)
        made = low and m.emit("maximum", low, -STATE, bound=STATE)
    if made is not None and made.key == own.key:
        m.latest[name] = made
    return made


def stored(m: GraphMaker) -> object:
    """Update a slice of a state by an operator: ``update_slice`` or ``index_copy``."""
    c = operand(m, 1, 2)
    if c is None or least(c.shape[0]) == 0:
        return None
    one = (as_expr(1), *c.shape[1:])
    row = m.pick(lambda t: t.key == (one, c.dtype) and keeps(t)) or m.param(one, c.dtype)
    if row is None:
        return None
    if m.chance(0.5):
        begin = (as_expr(0),) * c.rank
        made = m.emit("update_slice", c, row, begin, bound=c.bound)
    else:
        where = operators.index_source(m, c.shape[0], one[:1])
        made = where and m.emit("index_copy", c, where, row, axis=0, bound=c.bound)
    if made:
        m.remember(c, made)
    return made


def accumulated(m: GraphMaker) -> object:
    """Add rows of a state at positions that may be equal; floats are limited afterwards."""
    if not m.states:
        return None
    name = m.rng.choice(list(m.states))
    own = m.latest[name]
    if own not in m.scope.values or least(own.shape[0]) == 0:
        return None
    count = m.dim()
    shape = (count, *own.shape[1:])
    rows = m.pick(lambda t: t.key == (shape, own.dtype) and keeps(t)) or m.param(shape, own.dtype)
    where = rows and operators.index_source(m, own.shape[0], (count,))
    if rows is None or where is None:
        return None
    bound = own.bound + rows.bound * max(1, operators.largest(count))
    made = m.emit("index_add", own, where, rows, axis=0, bound=bound)
    if made is not None and made.is_float:
        low = m.emit("minimum", made, STATE)
        made = low and m.emit("maximum", low, -STATE, bound=STATE)
    if made is not None and made.key == own.key:
        m.latest[name] = made
    return made


def inner(m: GraphMaker) -> object:
    """Call a graph function with a state several times, with the same state or others."""
    c = operand(m, 1, 2)
    if c is None or m.scope.closed:
        return None
    outer, name = m.scope, m.name("cell")
    states, latest = m.states, m.latest
    constant = all(const_value(d) is not None for d in c.shape)
    kind = "State" if constant and m.chance(0.5) else "InOut"
    own = Tensor("s", *c.key, min(most(c.dtype), 2.0**31))
    arg = Tensor("a", *c.key, own.bound)
    m.scope = Scope([own, arg], [], [f"s: {kind}[{own.info}]", f"a: {arg.info}"])
    m.scope.define(c.shape)
    m.scope.closed = True
    m.states, m.latest = {"s": own}, {"s": own}
    if m.scope.defines(c.shape):
        structures.grow(m, m.rng.randint(1, 3), UPDATES | {operators.binary: 3, operators.unary: 2})
    last, results = m.latest["s"], [t for t in m.scope.values[2:] if t.exact][-1:]
    scope, m.scope, m.states, m.latest = m.scope, outer, states, latest
    if not scope.lines or not results:
        return None
    m.functions.append(m.function(name, scope, [results[0].text], {"s": last.text}))
    for _ in range(m.rng.choice([1, 2, 2])):
        x = m.pick(lambda t: t.key == own.key and keeps(t)) or c
        y = Tensor(m.name(), *results[0].key, results[0].bound)
        call = f"call({name}, {c.text}, {x.text}, updates=(0,))"
        updated(m, c, call, [y])
        c = operand(m, c.rank) if m.chance(0.5) else c
        if c is None or c.key != own.key:
            return None
    return results


UPDATES: Mapping[Draw, int] = {
    bump: 3, seen: 2, put: 2, shift: 1, exchange: 1, limited: 2, stored: 2, replace: 1,
    accumulated: 1,
}  # fmt: skip
STATEFUL: Mapping[Draw, int] = {create: 2, inner: 2, **UPDATES}
