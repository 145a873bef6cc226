"""Calls of hand-written loop-level functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir.symbolic import const_value, to_text

from tests.fuzz.graphs.maker import Tensor, largest, least
from tests.fuzz.program import at, buffer, nest, zero

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tilewright.ir.symbolic import Expr

    from tests.fuzz.graphs.maker import GraphMaker

DIMS = "ijkl"


def written(m: GraphMaker, name: str, params: Sequence[str], body: str, local: str = "") -> None:
    """Add a loop-level function unless the program has it."""
    if name in m.kernels:
        return
    m.kernels.add(name)
    lines = [f"    {line}" for line in (*local.splitlines(), *body.splitlines())]
    head = f"@prim_func\ndef {name}({', '.join(params)}):"
    m.functions.append("\n".join([head, *lines, ""]))


def declared(m: GraphMaker, shape: Sequence[Expr]) -> list[str]:
    """Return the dimensions of a parameter: own symbols, or the constants of the argument.

    Symbols of functions are declared once, with lower bound 0, so that every call is legal.
    """
    found = []
    for k, dim in enumerate(shape):
        size = const_value(dim)
        if size is not None and m.chance(0.6):
            found.append(str(size))
        else:
            m.symbol(f"d{k}", least=0)
            found.append(f"d{k}")
    return found


def suffix(dims: Sequence[str], dtype: str) -> str:
    """Return the part of a function's name that its parameters determine."""
    return "_".join([dtype, *dims])


def source(m: GraphMaker, *ranks: int) -> Tensor | None:
    """Pick an argument."""
    from tests.fuzz.graphs.operators import number, some

    return some(m, lambda t: number(t) and t.rank in ranks and t.bound < 1e6)


def frame(dims: Sequence[str]) -> tuple[list[tuple[str, str]], str, list[str]]:
    """Return loops over dimensions, the binding of the block's variables, and these."""
    loops = [(DIMS[k], d) for k, d in enumerate(dims)]
    inside = [f"v{x}" for x, _ in loops]
    kinds = ", ".join(f"spatial({x})" for x, _ in loops)
    return loops, f"{', '.join(inside)} = {kinds}" if loops else "", inside


def block(name: str, head: str, *lines: str) -> list[str]:
    """Return the lines of a block."""
    return [f'with block("{name}"):', *(f"    {line}" for line in (head, *lines) if line)]


def emitted(
    m: GraphMaker, call: str, shape: Sequence[Expr], dtype: str, bound: float, *sources: Tensor
) -> Tensor | None:
    """Bind the only result of a call."""
    made = m.result(tuple(shape), dtype, bound, sources)
    if made is not None:
        m.bind(made, f"{made.text}: {made.info} = {call}")
    return made


def chain(m: GraphMaker) -> object:
    """Call a function of two loop nests with a temporary between them."""
    x = source(m, 1, 2, 3)
    if x is None or (made := m.result(x.shape, x.dtype, 2 * x.bound + 1, (x,))) is None:
        return None
    dims = declared(m, x.shape)
    name = f"chain_{suffix(dims, x.dtype)}"
    loops, head, inside = frame(dims)
    renamed = [(f"{v}1", d) for v, d in loops]
    after = [f"v{v}" for v, _ in renamed]
    bound = f"{', '.join(after)} = {', '.join(f'spatial({v})' for v, _ in renamed)}"
    first = block("t", head, f"{at('t', inside)} = {at('x', inside)} + {at('x', inside)}")
    second = block("y", bound, f"{at('y', after)} = {at('t', after)} + {x.dtype}(1)")
    body = nest(loops, first) + "\n" + nest(renamed, second)
    inner = ", ".join(dims) + ("," if len(dims) == 1 else "")
    written(m, name, [buffer("x", dims, x.dtype), buffer("y", dims, x.dtype, "Out")], body,
            f"t = alloc(({inner}), {x.dtype})")  # fmt: skip
    m.bind(made, f"{made.text}: {made.info} = call_tir({name}, {x.text})")
    return made


def both(m: GraphMaker) -> object:
    """Call a function with two results, the sum and the difference."""
    x = source(m, 1, 2)
    if x is None:
        return None
    y = m.pick(lambda t: t.key == x.key) or x
    dims = declared(m, x.shape)
    name = f"both_{suffix(dims, x.dtype)}"
    loops, head, inside = frame(dims)
    a, b = at("a", inside), at("b", inside)
    lines = [
        *block("s", head, f"{at('s', inside)} = {a} + {b}"),
        *block("d", head.replace("v", "w"), f"{at('d', inside)} = {a} - {b}".replace("v", "w")),
    ]
    params = [buffer(p, dims, x.dtype) for p in "ab"]
    params += [buffer(p, dims, x.dtype, "Out") for p in "sd"]
    written(m, name, params, nest(loops, lines))
    whole = m.name("t")
    call = f"call_tir({name}, {x.text}, {y.text})"
    m.scope.lines.append(f"{whole}: Tuple[{x.info}, {x.info}] = {call}")
    return m.items(whole, [x.key, x.key], [x, y], x.bound + y.bound)


GUARDS = ("", "", "j + 2 < {1}", "i * 2 + j < {0} * 2 - 2", "i + j >= 1")
"""Conditions on a sum of rows; for constant sizes, all terms may agree on them."""
_FEWEST_GUARDED = 3
"""The least constant number of terms on which no condition is the same for all terms of each row.

All terms that agree that they do not exist leave the sum undefined.
"""


def rows(m: GraphMaker) -> object:
    """Call a function that sums rows, or a part of each."""
    x = source(m, 2)
    if x is None:
        return None
    dims, kind = declared(m, x.shape), m.rng.randrange(len(GUARDS))
    if dims[1].isdigit() and int(dims[1]) < _FEWEST_GUARDED:
        kind = 0
    name = f"rows{kind if GUARDS[kind] else ''}_{suffix(dims, x.dtype)}"
    guard = [f"guard({GUARDS[kind].format(*dims)})"] if GUARDS[kind] else []
    body = nest(
        [("i", dims[0]), ("j", dims[1])],
        block("y", "vi, vj = spatial(i), reduce(j)", *guard,
              f"with init(): y[vi] = {zero(x.dtype)}", "y[vi] += x[vi, vj]"),
    )  # fmt: skip
    params = [buffer("x", dims, x.dtype), buffer("y", dims[:1], x.dtype, "Out")]
    made = emitted(m, f"call_tir({name}, {x.text})", x.shape[:1], x.dtype,
                   x.bound * max(1, largest(x.shape[1])), x)  # fmt: skip
    if made is not None:
        written(m, name, params, body)
    return made


def scaled(m: GraphMaker) -> object:
    """Call a function with an integer parameter."""
    x = source(m, 1, 2)
    if x is None or x.dtype not in ("f32", "f64", "i32", "i64"):
        return None
    size = m.rng.choice([*x.shape, x.shape[0] * 2, x.shape[-1] + 1])
    made = m.result(x.shape, x.dtype, x.bound + largest(size), (x,))
    if made is None:
        return None
    dims = declared(m, x.shape)
    name = f"scaled_{suffix(dims, x.dtype)}"
    loops, head, inside = frame(dims)
    m.symbol("size", least=0)
    value = f"{at('x', inside)} + {x.dtype}(index(size, i64))"
    body = nest(loops, block("y", head, f"{at('y', inside)} = {value}"))
    params = [buffer("x", dims, x.dtype), "size: Int", buffer("y", dims, x.dtype, "Out")]
    written(m, name, params, body)
    call = f"call_tir({name}, {x.text}, scalars=({to_text(size)},))"
    m.bind(made, f"{made.text}: {made.info} = {call}")
    return made


def rotated(m: GraphMaker) -> object:
    """Call a function that loads elements at checked indices."""
    from tests.fuzz.graphs.operators import index_source

    x = source(m, 1, 2)
    if x is None or least(x.shape[0]) == 0:
        return None
    which = index_source(m, x.shape[0], m.shape(1))
    if which is None:
        return None
    dims = declared(m, x.shape)
    m.symbol("r", least=0)
    name = f"rotated_{which.dtype}_{suffix(dims, x.dtype)}"
    tail = [f"v{DIMS[k]}" for k in range(1, x.rank)]
    loops = [("i", "r"), *[(DIMS[k], dims[k]) for k in range(1, x.rank)]]
    _, head, inside = frame([d for _, d in loops])
    load = f"{at('y', inside)} = {at('x', ['row', *tail])}"
    body = nest(loops, block("y", head, f"with checked(at[vi], 0, {dims[0]}) as row:",
                             f"    {load}"))  # fmt: skip
    params = [buffer("x", dims, x.dtype), buffer("at", ["r"], which.dtype),
              buffer("y", ["r", *dims[1:]], x.dtype, "Out")]  # fmt: skip
    call = f"call_tir({name}, {x.text}, {which.text})"
    made = emitted(m, call, (which.shape[0], *x.shape[1:]), x.dtype, x.bound, x)
    if made is not None:
        written(m, name, params, body)
    return made


def longer(m: GraphMaker) -> object:
    """Call a function whose result has one more row than its argument."""
    x = source(m, 1, 2)
    if x is None:
        return None
    dims = declared(m, x.shape)
    name = f"longer_{suffix(dims, x.dtype)}"
    more = f"{dims[0]} + 1"
    loops = [("i", more), *[(DIMS[k], dims[k]) for k in range(1, x.rank)]]
    _, head, inside = frame([d for _, d in loops])
    load = at("x", ["max(vi - 1, 0)", *inside[1:]])
    value = f"where(condition(vi >= 1), {load}, {zero(x.dtype)})"
    if least(x.shape[0]) == 0 or dims[0] == "0":
        return None
    params = [buffer("x", dims, x.dtype), buffer("y", [more, *dims[1:]], x.dtype, "Out")]
    made = emitted(m, f"call_tir({name}, {x.text})", (x.shape[0] + 1, *x.shape[1:]), x.dtype,
                   x.bound, x)  # fmt: skip
    if made is not None:
        written(m, name, params, nest(loops, block("y", head, f"{at('y', inside)} = {value}")))
    return made


KERNELS = (chain, both, rows, scaled, rotated, longer)
