"""Contractions in many forms can be tensorized, with equal results."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given, settings, strategies as st

from tilewright.ir.loop.nodes import For, Stmt
from tilewright.ir.loop.visit import walk
from tilewright.ir.script import parse, to_text
from tilewright.ir.verify import violations
from tilewright.schedules import LoopRef, State, from_json, from_python, replay, to_json, to_python
from tilewright.schedules.apply import apply, check
from tilewright.schedules.forwarding import followed
from tilewright.schedules.primitives.loops.reorder import Reorder
from tilewright.schedules.primitives.loops.split import Split
from tilewright.schedules.primitives.tensorize.tensorize import Tensorize

from tests.amounts import amount
from tests.schedules.random_steps import blocks, legal_step, loop_level, name, same_results
from tests.strategies import symbols_of

pytestmark = pytest.mark.slow

WANTED = amount(5, 100)
"""Required tensorized programs per instruction, because a check that rejects everything proves
nothing."""

PROGRAM = """
M, N, K = symbols("M N K", lower=1)

@prim_func
def random({a}, {b}, {c}):
    for {l0} in range({e0}):
        for {l1} in range({e1}):
            for {l2} in range({e2}):
                with block("mm"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): {out} = {zero}
                    {out} += {value}
"""


@dataclass(frozen=True)
class Form:
    """A contraction, and the instruction for it."""

    text: str
    intrinsic: str
    tile: tuple[int, ...]


@st.composite
def forms(draw: st.DrawFn) -> Form:
    """Draw loop order, layouts of the operands, their order, extents and dtypes."""
    extents = {"i": ("M", "6"), "j": ("N", "16"), "k": ("K", "5")}
    sizes = {x: draw(st.sampled_from([n, n, n, fixed])) for x, (n, fixed) in extents.items()}
    dot = draw(st.booleans())
    left, right, total = ("u8", "i8", "i32") if dot else ("f32", "f32", "f32")

    def operand(label: str, dims: tuple[str, str], dtype: str, kind: str) -> tuple[str, str]:
        turned = dims[::-1] if draw(st.booleans()) else dims
        shape = ", ".join(sizes[d] for d in turned)
        access = ", ".join(f"v{d}" for d in turned)
        return f"{label}: {kind}[({shape}), {dtype}]", f"{label}[{access}]"

    a, at_a = operand("A", ("i", "k"), left, "Buffer")
    b, at_b = operand("B", ("k", "j"), right, "Buffer")
    c, out = operand("C", ("i", "j"), total, "Out")
    factors = [f"i32({x})" if dot else x for x in (at_a, at_b)]
    if draw(st.booleans()):
        factors.reverse()
    loops = draw(st.permutations(["i", "j", "k"]))
    names = {f"l{n}": x for n, x in enumerate(loops)} | {
        f"e{n}": sizes[x] for n, x in enumerate(loops)
    }
    text = PROGRAM.format(
        a=a, b=b, c=c, out=out, zero="0" if dot else "0.0", value=" * ".join(factors), **names
    )
    if dot:
        return Form(text, "avx2.dot.u8i8.6x16", (6, 16, 2))
    return Form(text, "avx2.fma.f32.6x16", (6, 16))


def tiled(state: State, form: Form, rng: random.Random) -> tuple[State, LoopRef]:
    """Split the loops into tiles of the instruction, with the loops of a tile in any order."""
    function = name(state)
    loops = {x.var.name: LoopRef(function, u) for u, x in state.tree(function).loops.items()}
    inner: list[LoopRef] = []
    outer: list[LoopRef] = []
    for label, size in zip("ijk", (*form.tile, None), strict=False):
        if size is None:
            outer.append(loops[label])
            continue
        applied = apply(state, Split(loops[label], (None, size)))
        state = applied.state
        outer.append(applied.results[0])
        inner.append(applied.results[1])
    rng.shuffle(inner)
    rng.shuffle(outer)
    state = apply(state, Reorder((*outer, *inner))).state
    return state, inner[0]


def by_fixes(state: State, step: Tensorize, limit: int = 6) -> State | None:
    """Apply the first suggested fix until the step is legal."""
    for _ in range(limit):
        problems = check(state, step)
        if not problems:
            return apply(state, step).state
        fix = next((f for p in problems for f in p.fixes if not isinstance(f, Tensorize)), None)
        if fix is None:
            return None
        state = apply(state, fix).state
        step = followed(step, state)
    return None


def test_contractions_keep_their_results(fuzz_factor):
    reached: Counter[str] = Counter()

    @settings(max_examples=200 * fuzz_factor)
    @given(forms(), st.integers(0, 2**32))
    def run(form, seed):
        if reached[form.intrinsic] >= WANTED:
            return
        rng = random.Random(seed)
        start = State.start(parse(form.text))
        before = start.module.prims[0]
        state, loop = tiled(start, form, rng)
        after = by_fixes(state, Tensorize(loop, form.intrinsic))
        if after is None:
            return
        reached[form.intrinsic] += 1
        after = disturbed(after, rng)
        function = after.module.prims[0]
        assert violations(function) == ()
        assert to_text(parse(to_text(function)).prims[0]) == to_text(function)
        env = {v: rng.randint(1, 20) for v in symbols_of(before)}
        assert same_results(before, function, env), f"{form.text}\n{to_text(function)}"
        for trace in (from_json(to_json(after.trace)), from_python(to_python(after.trace))):
            assert to_text(replay(start, trace).completed().module) == to_text(after.module)

    run()
    assert all(reached[i] >= WANTED for i in INTRINSICS), reached


INTRINSICS = ("avx2.dot.u8i8.6x16", "avx2.fma.f32.6x16")


def disturbed(state: State, rng: random.Random) -> State:
    """Apply some legal steps around the tensorized block, which must not change."""
    tensorized = next(b for b in blocks(state) if state.block(b).annotations)
    body = state.block(tensorized).body
    for _ in range(3):
        cls = rng.choice([c for c in loop_level() if c.verb() != "unannotate"])
        step = legal_step(rng, state, cls, tries=2)
        if step is not None:
            state = apply(state, step).state
    after = state.block(tensorized)
    assert dict(after.annotations)["intrinsic"]
    assert shape_of(after.body) == shape_of(body)
    return state


def shape_of(body: Stmt) -> str:
    """Return the kinds and extents of the loops that an instruction implements."""
    return "; ".join(f"{s.kind} {s.extent}" for s in walk(body) if isinstance(s, For))
