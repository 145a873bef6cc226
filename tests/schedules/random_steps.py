"""Random steps for random programs, drawn by the property tests of primitives.

A new primitive does not need an entry: its own ``suggest`` is used. `MAKERS` contains wider choices
of parameters for primitives whose suggestions are too few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import numpy as np
from hypothesis import strategies as st

from tilewright.ir.dtype import i32
from tilewright.ir.interpreter import run_prim
from tilewright.ir.loop.builder import Builder
from tilewright.ir.loop.combiners import reducer_of
from tilewright.ir.loop.nodes import Binary, Buffer, For, Index, Load
from tilewright.ir.loop.scans import scan_of, scanning
from tilewright.ir.symbolic import const_value, minimum, var
from tilewright.schedules import BlockRef, BufferRef, LoopRef, State
from tilewright.schedules.apply import Primitive, apply, check
from tilewright.schedules.block_scope import selected
from tilewright.schedules.registry import STEPS, primitives

from tests.strategies import outputs, prim_funcs

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Mapping

    from tilewright.ir.loop.nodes import PrimFunc, Stmt
    from tilewright.ir.symbolic import Var
    from tilewright.schedules import Handle

FUNCTION = "random"
"""The name of the functions that `prim_funcs`, `chains` and `scans` draw."""
LOOP_FAMILIES = (
    "annotate", "caching", "layout", "loops", "placement", "reduction", "sample", "tensorize",
)  # fmt: skip


class EnoughError(Exception):
    """The end of a random test that has seen enough: no further example is drawn.

    Counting makes an example depend on those before it, so examples of such a test are only
    generated, and not shrunk.
    """


Maker = "Callable[[random.Random, State], Primitive | None]"


def loop_level() -> list[type[Primitive]]:
    """Return the primitives that change one loop-level function and may apply to any.

    Random programs do not contain tiles of instructions; `test_tensorized_properties` draws those.
    """
    found = (cls for cls in primitives() if cls.family in LOOP_FAMILIES)
    return [cls for cls in found if cls.verb() != "tensorize"]


def name(state: State) -> str:
    """Return the name of the only loop-level function of a state."""
    return state.module.prims[0].name


def loops(state: State) -> list[LoopRef]:
    return [LoopRef(name(state), u, x.var.name) for u, x in state.tree(name(state)).loops.items()]


def blocks(state: State) -> list[BlockRef]:
    return [BlockRef(name(state), u, b.name) for u, b in state.tree(name(state)).blocks.items()]


def temporaries(state: State) -> list[BufferRef]:
    return [BufferRef(name(state), b.uid, b.name) for b in state.module.prims[0].buffers]


def selections(state: State) -> list[Handle]:
    return [*loops(state), *blocks(state), *temporaries(state)]


def _split(rng: random.Random, state: State) -> Primitive | None:
    found = loops(state)
    sizes = [rng.randint(1, 5) for _ in range(rng.randint(1, 2))]
    factors: list[int | None] = [None, *sizes]
    rng.shuffle(factors)
    if rng.random() < 0.2:
        factors = [rng.randint(1, 4), rng.randint(1, 4)]
    tail = rng.choice(["predicate", "epilogue", "epilogue", "perfect"])
    return _step("split", rng.choice(found), tuple(factors), tail) if found else None


def _chains(state: State) -> Iterator[list[LoopRef]]:
    for first in loops(state):
        chain = [first]
        below = state.loop(first).body
        while isinstance(below, For):
            chain.append(LoopRef(name(state), below.uid, below.var.name))
            below = below.body
        if len(chain) > 1:
            yield chain


def _fuse(rng: random.Random, state: State) -> Primitive | None:
    chains = list(_chains(state))
    if not chains:
        return None
    chain = rng.choice(chains)
    return _step("fuse", tuple(chain[: rng.randint(2, min(3, len(chain)))]))


def _reorder(rng: random.Random, state: State) -> Primitive | None:
    chains = list(_chains(state))
    if not chains:
        return None
    chain = rng.choice(chains)
    chosen = rng.sample(chain, rng.randint(2, len(chain)))
    return _step("reorder", tuple(chosen))


def _pair(verb: str) -> Maker:
    def make(rng: random.Random, state: State) -> Primitive | None:
        found, anchors = blocks(state), loops(state)
        return _step(verb, rng.choice(found), rng.choice(anchors)) if found and anchors else None

    return make


def _loop(verb: str) -> Maker:
    def make(rng: random.Random, state: State) -> Primitive | None:
        found = loops(state)
        return _step(verb, rng.choice(found)) if found else None

    return make


def _block(verb: str) -> Maker:
    def make(rng: random.Random, state: State) -> Primitive | None:
        found = blocks(state)
        return _step(verb, rng.choice(found)) if found else None

    return make


def _decompose(rng: random.Random, state: State) -> Primitive | None:
    reducing = [b for b in blocks(state) if state.block(b).init is not None]
    if not reducing:
        return None
    block = rng.choice(reducing)
    above = state.tree(name(state)).loops_above(state.block(block))
    if not above:
        return None
    loop = rng.choice(above)
    return _step("decompose_reduction", block, LoopRef(name(state), loop.uid, loop.var.name))


def _annotate(rng: random.Random, state: State) -> Primitive | None:
    key = rng.choice(["prefetch", "note", "weight"])
    value = rng.choice([1, 2.5, "text", True])
    nodes = [*loops(state), *blocks(state)]
    return _step("annotate", rng.choice(nodes), key, value) if nodes else None


def _transform_layout(rng: random.Random, state: State) -> Primitive | None:
    found = temporaries(state)
    if not found:
        return None
    ref = rng.choice(found)
    names = [f"d{k}" for k in range(len(state.buffer(ref).shape))]
    if not names:
        return None
    outputs_ = list(names)
    rng.shuffle(outputs_)
    tiled = rng.choice(names)
    size = rng.randint(2, 4)
    if rng.random() < 0.6:
        outputs_[outputs_.index(tiled)] = f"{tiled} // {size}"
        outputs_.insert(rng.randint(0, len(outputs_)), f"{tiled} % {size}")
    text = f"lambda {', '.join(names)}: ({', '.join(outputs_)},)"
    return _step("transform_layout", ref, text)


def _pad_einsum(rng: random.Random, state: State) -> Primitive | None:
    found = blocks(state)
    if not found:
        return None
    block = rng.choice(found)
    padding = tuple(rng.choice([1, 1, 2, 3, 4]) for _ in state.block(block).iters)
    return _step("pad_einsum", block, padding)


def _storage_align(rng: random.Random, state: State) -> Primitive | None:
    found = [ref for ref in temporaries(state) if state.buffer(ref).rank > 1]
    if not found:
        return None
    ref = rng.choice(found)
    factor = rng.choice([2, 4, 32])
    axis = rng.randrange(state.buffer(ref).rank - 1)
    return _step("storage_align", ref, axis, factor, rng.randrange(factor))


def _loop_partition(rng: random.Random, state: State) -> Primitive | None:
    found = loops(state)
    if not found:
        return None
    ref = rng.choice(found)
    extent = state.loop(ref).extent
    point = rng.choice([0, 1, 2, extent // 2, minimum(extent, 2)])
    return _step("loop_partition", ref, point)


def _scan_blocks(rng: random.Random, state: State) -> Primitive | None:
    found = [ref for ref in blocks(state) if scanning(state.block(ref)) is not None]
    return _step("scan_blocks", rng.choice(found), rng.randint(1, 5)) if found else None


def _sample_categorical(rng: random.Random, state: State) -> Primitive:
    del state
    count = rng.randint(1, 4)
    candidates = tuple(rng.randint(1, 64) for _ in range(count))
    shares = [rng.randint(1, 5) for _ in candidates]
    given = tuple(share / sum(shares) for share in shares)
    decision = rng.choice([None, rng.randrange(count)])
    return _step("sample_categorical", candidates, rng.choice([None, given]), decision)


def _constant_loop(rng: random.Random, state: State) -> tuple[LoopRef, int] | None:
    """Draw a loop with a positive constant extent; return it with the extent."""
    sizes = ((ref, const_value(state.loop(ref).extent)) for ref in loops(state))
    found = [(ref, size) for ref, size in sizes if size]
    return rng.choice(found) if found else None


def _sample_perfect_tile(rng: random.Random, state: State) -> Primitive | None:
    found = _constant_loop(rng, state)
    if found is None:
        return None
    return _step("sample_perfect_tile", found[0], rng.randint(1, 4), rng.choice([1, 4, 16]))


def _sample_partitioned_tile(rng: random.Random, state: State) -> Primitive | None:
    found = _constant_loop(rng, state)
    if found is None:
        return None
    loop, extent = found
    n = rng.randint(2, 4)
    factor = rng.choice([k for k in range(1, extent + 1) if extent % k == 0] or [1])
    if rng.random() < 0.2:
        factor = rng.randint(1, 8)
    return _step("sample_partitioned_tile", loop, n, rng.randint(1, n - 1), factor)


def _step(verb: str, *values: object) -> Primitive:
    cls = STEPS[verb]
    assert issubclass(cls, Primitive)
    return cls(*values)


MAKERS: Mapping[str, Maker] = {
    "annotate": _annotate,
    "blockize": _loop("blockize"),
    "compute_at": _pair("compute_at"),
    "compute_inline": _block("compute_inline"),
    "decompose_reduction": _decompose,
    "fuse": _fuse,
    "loop_partition": _loop_partition,
    "pad_einsum": _pad_einsum,
    "parallel": _loop("parallel"),
    "reorder": _reorder,
    "reverse_compute_at": _pair("reverse_compute_at"),
    "reverse_compute_inline": _block("reverse_compute_inline"),
    "sample_categorical": _sample_categorical,
    "sample_partitioned_tile": _sample_partitioned_tile,
    "sample_perfect_tile": _sample_perfect_tile,
    "scan_blocks": _scan_blocks,
    "split": _split,
    "storage_align": _storage_align,
    "transform_layout": _transform_layout,
    "unroll": _loop("unroll"),
    "vectorize": _loop("vectorize"),
}


def random_step(rng: random.Random, state: State, cls: type[Primitive]) -> Primitive | None:
    """Draw a step of a primitive, legal or not."""
    maker = MAKERS.get(cls.verb())
    if maker is not None and rng.random() < 0.9:
        return maker(rng, state)
    if rng.random() < 0.5 and (step := _any_handles(rng, state, cls)) is not None:
        return step
    handles = selections(state)
    rng.shuffle(handles)
    found = (list(cls.suggest(selected(state, cls, ref), ref)) for ref in handles)
    return next((rng.choice(steps) for steps in found if steps), None)


def _any_handles(rng: random.Random, state: State, cls: type[Primitive]) -> Primitive | None:
    """Draw a step with any handles of the right types; None if it has other parameters."""
    kinds = [get_args(p.type) or (p.type,) for p in cls.parameters()]
    if not all(set(kind) <= {LoopRef, BlockRef, BufferRef} for kind in kinds):
        return None
    pools = [[ref for ref in selections(state) if isinstance(ref, kind)] for kind in kinds]
    return cls(*map(rng.choice, pools)) if all(pools) else None


def legal_step(
    rng: random.Random, state: State, cls: type[Primitive], tries: int = 6
) -> Primitive | None:
    """Draw steps of a primitive until one is legal."""
    for _ in range(tries):
        step = random_step(rng, state, cls)
        if step is not None and not check(state, step):
            return step
    return None


def random_state(rng: random.Random, state: State, steps: int) -> State:
    """Apply some legal random steps."""
    known = loop_level()
    for _ in range(steps):
        step = legal_step(rng, state, rng.choice(known), tries=2)
        if step is not None:
            state = apply(state, step).state
    return state


@st.composite
def chains(draw: st.DrawFn) -> PrimFunc:
    """Draw a chain of producers and consumers, for steps that move and inline blocks."""
    n = draw(st.sampled_from([var("n", lower=1), 6]))
    b = Builder(FUNCTION)
    last = b.param("a", (n, 4), i32)
    other = b.param("w", (n, 4), i32)
    count = draw(st.integers(2, 4))
    for k in range(count):
        shape = (4, n) if last.shape[0] == n and draw(st.booleans()) and n != 4 else last.shape
        turned = shape != last.shape
        final = k == count - 1
        out = b.param("y", shape, i32, "out") if final else b.temporary(f"t{k}", shape, i32)
        kind = draw(st.sampled_from(["map", "map", "reduce", "both", "shift"]))
        _link(b, kind, out, last, other, turned=turned)
        last = out
    return b.finish()


def _link(b: Builder, kind: str, out: Buffer, last: Buffer, other: Buffer, *, turned: bool) -> None:
    def at(i, j):
        return b.load(last, j, i) if turned else b.load(last, i, j)

    def both(i, j):
        beside = b.load(other, j, i) if other.shape != out.shape else b.load(other, i, j)
        return Binary("sub", at(i, j), beside)

    def shift(i, j):
        near = b.load(last, 0, i) if turned else b.load(last, i, 0)
        return Binary("add", at(i, j), near)

    match kind:
        case "map":
            b.compute(out, lambda i, j: Binary("add", at(i, j), at(i, j)))
        case "both":
            b.compute(out, both)
        case "shift":
            b.compute(out, shift)
        case _:
            b.reduce(out, (3,), lambda i, j, r: Binary("mul", at(i, j), Index(r, i32)))


@st.composite
def scans(draw: st.DrawFn) -> PrimFunc:
    """Draw a scan along a dimension, possibly between a producer and a consumer."""
    n = draw(st.sampled_from([var("n", lower=1), 3]))
    m = draw(st.sampled_from([var("m", lower=1), 7]))
    b = Builder(FUNCTION)
    last = b.param("x", (n, m), i32)
    first = b.param("first", (n,), i32) if draw(st.booleans()) else None
    if draw(st.booleans()):
        made = b.temporary("t", (n, m), i32)
        _link(b, "map", made, last, last, turned=False)
        last = made
    consumed = draw(st.booleans())
    out = b.temporary("s", (n, m), i32) if consumed else b.param("y", (n, m), i32, "out")
    reducer = reducer_of(draw(st.sampled_from(["add", "mul", "max", "min"])), i32)

    def body(i: Var, j: Var) -> Stmt:
        starts = None if first is None else (b.load(first, i),)
        term = Binary("sub", b.load(last, i, j), Index(j, i32))
        return scan_of(reducer, (Load(out, (i, j)),), j, (term,), starts=starts).body()

    b.block([(n, "spatial"), (m, "ordered")], body, name="scan", reducer=reducer)
    if consumed:
        y = b.param("y", (n, m), i32, "out")
        _link(b, draw(st.sampled_from(["map", "shift"])), y, out, last, turned=False)
    return b.finish()


def programs(cls: type[Primitive]) -> st.SearchStrategy[PrimFunc]:
    """Return random programs that a primitive may change."""
    return scans() if cls.verb() == "scan_blocks" else prim_funcs() | chains()


def same_results(before: PrimFunc, after: PrimFunc, env: Mapping[Var, int]) -> bool:
    """Return whether two functions have equal results, bit for bit, on exact data."""
    old, new = outputs(before, run_prim, env), outputs(after, run_prim, env)
    return all(np.array_equal(a, b) for a, b in zip(old, new, strict=True))
