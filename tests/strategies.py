"""Random programs for property tests.

`prim_funcs()` draws small loop-level functions: one to three blocks in a chain or side by side,
element-wise, permuting, broadcasting, shifted or reducing, over constant and symbolic extents, in
nests whose loops may be reordered, split with a guard, or parallel. All of them are well formed
and run in the interpreter; with ``exact`` (the default) their arithmetic is exact on the arrays of
`arguments()`, so results compare bit for bit however a schedule orders them.

    @given(prim_funcs(), st.data())
    def test_something(func, data):
        env = data.draw(sizes(func))
        arrays = arguments(func, env)
        run_prim(func, arrays, ...)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import note, strategies as st

from tilewright.ir.dtype import DType, f32, i32, i64
from tilewright.ir.identity import UidSource, fresh_name
from tilewright.ir.loop.combiners import identity_of
from tilewright.ir.loop.nodes import (
    Binary,
    Block,
    Buffer,
    BufferParam,
    Cast,
    Compare,
    Condition,
    Element,
    For,
    Index,
    IterVar,
    Load,
    Number,
    PrimFunc,
    ScalarParam,
    Stmt,
    Store,
    Unary,
    Where,
)
from tilewright.ir.loop.ranges import loop_var
from tilewright.ir.loop.regions import access_regions
from tilewright.ir.loop.visit import seq, walk
from tilewright.ir.symbolic import TRUE, Bool, Expr, Var, as_expr, ceildiv, evaluate, var

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hypothesis.strategies import DrawFn

LARGEST = 6
"""The largest value of a symbol, which limits the cost of interpreting four nested loops."""


@dataclass
class Drawing:
    """The state of a random function under construction."""

    draw: DrawFn
    exact: bool
    dtype: DType
    mint: UidSource = field(default_factory=UidSource)
    names: set[str] = field(default_factory=set)
    dims: list[Expr] = field(default_factory=list)
    inputs: list[Buffer] = field(default_factory=list)
    made: list[Buffer] = field(default_factory=list)

    def name(self, base: str) -> str:
        chosen = fresh_name(base, self.names)
        self.names.add(chosen)
        return chosen

    def buffer(self, base: str, shape: Sequence[Expr], dtype: DType | None = None) -> Buffer:
        return Buffer(self.mint(), self.name(base), tuple(shape), dtype or self.dtype)

    def one_of(self, options: Sequence[object]):
        return self.draw(st.sampled_from(options))

    def chance(self, one_in: int) -> bool:
        return self.draw(st.integers(0, one_in - 1)) == one_in - 1


def _numbers(d: Drawing) -> Number:
    value = d.draw(st.integers(-3, 3))
    return Number(float(value) if d.dtype.is_float else value, d.dtype)


def _readable(d: Drawing, variables: Sequence[tuple[Var, Expr]], *, small: bool = False) -> Load:
    """Return a load of a buffer at variables that iterate over its dimensions.

    A buffer is created if no buffer fits. ``small`` limits the choice to inputs, whose elements are
    so small that products remain exact.
    """
    by_extent: dict[Expr, list[Var]] = {}
    for variable, extent in variables:
        by_extent.setdefault(extent, []).append(variable)
    made, inputs = (
        [b for b in buffers if all(dim in by_extent for dim in b.shape)]
        for buffers in ([] if small else d.made, d.inputs)
    )
    if made and not d.chance(3):
        buffer = d.one_of(made)
    elif inputs and not d.chance(2):
        buffer = d.one_of(inputs)
    else:
        least = 0 if not variables or d.chance(6) else 1
        count = d.draw(st.integers(least, min(2, len(variables))))
        chosen = d.draw(st.permutations(list(variables)))[:count]
        shifts = [d.draw(st.sampled_from((0, 0, 0, 1, 2))) for _ in chosen]
        shape = [extent + shift for (_, extent), shift in zip(chosen, shifts, strict=True)]
        buffer = d.buffer("x", shape)
        d.inputs.append(buffer)
        indices = [v + shift for (v, _), shift in zip(chosen, shifts, strict=True)]
        return Load(buffer, tuple(indices))
    return Load(buffer, tuple(d.one_of(by_extent[dim]) for dim in buffer.shape))


def _condition(d: Drawing, variables: Sequence[tuple[Var, Expr]], depth: int) -> Element:
    if variables and d.chance(2):
        variable, extent = d.one_of(variables)
        claim: Bool = d.one_of(
            (variable < 2, variable + 1 < extent, variable % 2 < 1, variable >= extent - 1)
        )
        return Condition(claim)
    op = d.one_of(("lt", "le", "gt", "ge", "eq", "ne"))
    return Compare(op, _readable(d, variables), _element(d, variables, depth - 1))


def _leaf(d: Drawing, variables: Sequence[tuple[Var, Expr]]) -> Element:
    match d.draw(st.integers(0, 7)):
        case 7:
            return _numbers(d)
        case 6 if variables:
            variable, _ = d.one_of(variables)
            whole = Index(variable + d.draw(st.integers(0, 2)), i64)
            return whole if d.dtype == i64 else Cast(d.dtype, whole)
        case _:
            return _readable(d, variables)


def _element(d: Drawing, variables: Sequence[tuple[Var, Expr]], depth: int) -> Element:
    if depth <= 0:
        return _leaf(d, variables)
    match d.draw(st.integers(0, 9)):
        case 9:
            return Unary(d.one_of(("neg", "abs")), _element(d, variables, depth - 1))
        case 1 if not d.exact and d.dtype.is_float:
            op = d.one_of(("exp", "tanh", "sigmoid", "erf", "floor"))
            return Unary(op, _element(d, variables, depth - 1))
        case 2:
            sides = (_element(d, variables, depth - 1) for _ in range(2))
            return Where(_condition(d, variables, depth), *sides)
        case 3 | 4 | 5 | 6:
            op = d.one_of(("add", "sub", "min", "max"))
            return Binary(op, *(_element(d, variables, depth - 1) for _ in range(2)))
        case 0 | 7:
            return Binary("mul", _readable(d, variables), _readable(d, variables, small=True))
        case _:
            return _leaf(d, variables)


def _split(d: Drawing, loops: list[Var], extents: dict[Var, Expr]) -> tuple[Expr, Bool] | None:
    """Replace the last loop by two, possibly with a guard; return the binding and the guard."""
    whole = loops[-1]
    extent, factor = extents[whole], d.draw(st.integers(2, 3))
    outer = loop_var(d.name(f"{whole.name}_o"), ceildiv(extent, factor))
    inner = loop_var(d.name(f"{whole.name}_i"), factor)
    loops[-1:] = [outer, inner]
    extents[outer], extents[inner] = ceildiv(extent, factor), as_expr(factor)
    binding = outer * factor + inner
    return binding, binding < extent


def _nest(
    d: Drawing, base: str, iters: Sequence[tuple[Var, Expr, str]], body: Stmt, init: Stmt | None
) -> Stmt:
    """Put a block into loops, in random order, some of them split."""
    loops: list[Var] = []
    extents: dict[Var, Expr] = {}
    bound: list[IterVar] = []
    guards: list[Bool] = []
    spatial: set[Var] = set()
    for variable, extent, kind in iters:
        loops.append(loop_var(d.name(variable.name.removeprefix("v")), extent))
        extents[loops[-1]] = extent
        binding: Expr = loops[-1]
        if d.chance(5):
            binding, guard = _split(d, loops, extents)
            guards.append(guard)
        spatial |= set(binding.free) if kind == "spatial" else set()
        bound.append(IterVar(variable, extent, kind, binding))
    if d.chance(3):
        loops = list(d.draw(st.permutations(loops)))
    predicate = TRUE
    for guard in guards:
        predicate = predicate & guard
    reads, writes = access_regions(body)
    name = d.name(base)
    block = Block(d.mint(), name, tuple(bound), reads, writes, body, init, predicate)
    return _loops(d, loops, extents, spatial, block)


def _loops(
    d: Drawing, loops: list[Var], extents: Mapping[Var, Expr], spatial: set[Var], body: Stmt
) -> Stmt:
    for position, loop in reversed(list(enumerate(loops))):
        kind = "serial"
        if position == 0 and loop in spatial and d.chance(4):
            kind = "parallel"
        if extents[loop].free == frozenset() and d.chance(6):
            kind = "unrolled"
        notes = (("note", d.one_of((1, "a", 0.5, True, (1, 2)))),) if d.chance(8) else ()
        body = For(d.mint(), loop, extents[loop], body, kind, annotations=notes)
    return body


def _block(d: Drawing, position: int, *, last: bool) -> tuple[Buffer, Stmt]:
    """Draw one block that defines a new buffer."""
    rank = d.draw(st.integers(0 if d.chance(6) else 1, 2))
    shape = [d.one_of(d.dims) for _ in range(rank)]
    out = d.buffer("y" if last else "t", shape)
    letters = "ij"
    variables = [
        (loop_var(d.name(f"v{letters[k]}{position}"), extent), extent)
        for k, extent in enumerate(shape)
    ]
    reduced: list[tuple[Var, Expr]] = []
    if d.chance(2):
        extent = d.one_of(d.dims)
        reduced.append((loop_var(d.name(f"vr{position}"), extent), extent))
    value = _element(d, [*variables, *reduced], d.draw(st.sampled_from((1, 2, 0))))
    indices = tuple(v for v, _ in variables)
    iters = [(v, e, "spatial") for v, e in variables] + [(v, e, "reduce") for v, e in reduced]
    init = None
    if reduced:
        combiner = d.one_of(("add", "max", "min"))
        init = Store(out, indices, identity_of(combiner, out.dtype))
        value = Binary(combiner, Load(out, indices), value)
    return out, _nest(d, f"{out.name}_block", iters, Store(out, indices, value), init)


@st.composite
def prim_funcs(
    draw: DrawFn,
    *,
    blocks: int = 3,
    exact: bool = True,
    dtypes: Sequence[DType] = (f32, f32, i32, i64),
    symbolic: bool = True,
) -> PrimFunc:
    """Draw a small, well-formed function of one to ``blocks`` blocks.

    The last block defines the output; the others define temporaries, each of which is an output
    too if nothing later reads it.
    """
    d = Drawing(draw, exact, draw(st.sampled_from(dtypes)))
    symbols = [var(d.name(n), lower=1) for n in ("n", "m")] if symbolic else []
    constants = [as_expr(c) for c in draw(st.lists(st.integers(1, 5), min_size=1, max_size=2))]
    d.dims = [*symbols, *symbols, *constants]
    count = draw(st.integers(1, blocks))
    body: list[Stmt] = []
    for position in range(count):
        out, nest = _block(d, position, last=position == count - 1)
        d.made.append(out)
        body.append(nest)
    func = _finished(d, body)
    note(str(func))  # the repr is one line; a failing test shows the program
    return func


def _finished(d: Drawing, body: list[Stmt]) -> PrimFunc:
    statement = seq(*body)
    reads, _ = access_regions(statement)
    read = {r.buffer for r in reads}
    outs = [b for b in d.made if b not in read or b is d.made[-1]]
    params: list[BufferParam | ScalarParam] = [BufferParam(b, "in") for b in d.inputs]
    params += [BufferParam(b, "out") for b in outs]
    bound = {dim for p in params for dim in p.buffer.shape if isinstance(dim, Var)}
    extents = [loop.extent for loop in walk(statement) if isinstance(loop, For)]
    dims = [dim for b in (*d.inputs, *d.made) for dim in b.shape]
    mentioned = set().union(*(term.free for term in (*extents, *dims)))
    params += [ScalarParam(v) for v in sorted(mentioned - bound, key=lambda v: v.serial)]
    temporaries = tuple(b for b in d.made if b not in outs)
    return PrimFunc("random", tuple(params), statement, temporaries)


def symbols_of(func: PrimFunc) -> list[Var]:
    """Return the symbols that a caller determines."""
    terms = [dim for b in func.buffer_params for dim in b.shape] + list(func.scalar_params)
    return sorted(set().union(*(t.free for t in terms)), key=lambda v: v.serial)


def sizes(func: PrimFunc, largest: int = LARGEST) -> st.SearchStrategy[dict[Var, int]]:
    """Draw a value for every symbol."""
    return st.fixed_dictionaries({v: st.integers(v.lower or 1, largest) for v in symbols_of(func)})


def arguments(func: PrimFunc, env: Mapping[Var, int], seed: int = 0) -> list[np.ndarray]:
    """Return arrays of small integers, exact in every dtype, for all buffer parameters."""
    rng = np.random.default_rng(seed)
    return [
        rng.integers(-4, 5, [int(evaluate(dim, env)) for dim in b.shape]).astype(b.dtype.numpy)
        for b in func.buffer_params
    ]


def scalars(func: PrimFunc, env: Mapping[Var, int]) -> dict[str, int]:
    """Return the integers of a call by name."""
    return {v.name: env[v] for v in func.scalar_params}


def outputs(
    func: PrimFunc, run: Callable[..., None], env: Mapping[Var, int], seed: int = 0
) -> list[np.ndarray]:
    """Run a function and return the arrays that it wrote.

    ``run`` has the signature of `tilewright.ir.interpreter.run_prim`: the function, all arrays,
    and the integers by name.
    """
    arrays = arguments(func, env, seed)
    run(func, arrays, scalars(func, env))
    params = [p for p in func.params if isinstance(p, BufferParam)]
    return [a for a, p in zip(arrays, params, strict=True) if p.access != "in"]
