"""Tile sizes of a loop: legal ones only, all of them, by the seed, and imposed on replay."""

from __future__ import annotations

import collections

import pytest

import tilewright as tw
from tilewright.schedules import Schedule, from_json, from_python, to_json, to_python
from tilewright.schedules.primitives.sample.sample_perfect_tile import SamplePerfectTile

from tests.schedules.helpers import rejected

COPY = """
@prim_func
def f(x: Buffer[({n}, 64), f32], y: Out[({n}, 64), f32]):
    t = alloc(({n}, 64), f32)
    for i in range({n}):
        for j in range(64):
            t[i, j] = x[i, j] + 1.0
    for k in range({n}):
        for l in range(64):
            y[k, l] = t[k, l] * 2.0
"""


def schedule(n: object = 96, seed: int = 0) -> Schedule:
    head = 'n = symbols("n", lower=1)\n' if n == "n" else ""
    return Schedule(tw.parse(head + COPY.format(n=n)), seed=seed)


def sampled(seed: int) -> Schedule:
    sch = schedule(seed=seed)
    outer, inner = sch.sample_perfect_tile("k", 2)
    _, lanes = sch.split("k", factors=(outer, inner))
    sch.unroll(lanes)
    return sch


def test_all_legal_sizes_are_drawn() -> None:
    found = collections.Counter(schedule(12, s).sample_perfect_tile("k", 2, 4) for s in range(400))
    assert set(found) == {(12, 1), (6, 2), (4, 3), (3, 4)}
    assert min(found.values()) > 60


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_the_product_is_the_extent(n: int) -> None:
    sizes = schedule(360).sample_perfect_tile("k", n, max_innermost_factor=360)
    product = 1
    for size in sizes:
        product *= size
    assert (len(sizes), product) == (n, 360)


def test_the_seed_determines_the_sizes() -> None:
    assert str(sampled(1)) == str(sampled(1))
    assert len({str(sampled(seed)) for seed in range(20)}) > 3


@pytest.mark.parametrize("read", [
    lambda t: t,
    lambda t: from_json(to_json(t)),
    lambda t: from_python(to_python(t)),
], ids=["trace", "json", "python"])  # fmt: skip
def test_a_replay_imposes_the_decision_under_another_seed(read) -> None:
    for seed in range(4):
        sch, other = sampled(seed), schedule(seed=seed + 100)
        assert other.replay(read(sch.trace)).complete
        assert str(other) == str(sch)
        assert to_json(other.trace) == to_json(sch.trace)


def test_the_code_under_another_seed_is_the_same() -> None:
    sch, other = sampled(3), schedule(seed=4)
    other.replay(from_python(to_python(sch.trace))).completed()
    codes = [str(tw.lower(s.module, target="cpu", stop_after="llvm")) for s in (sch, other)]
    assert codes[0] == codes[1]


def test_a_decision_that_does_not_fit_another_extent_is_reported() -> None:
    sch = schedule()
    sizes = sch.sample_perfect_tile("k", 2)
    outcome = schedule(90).replay(sch.trace)
    assert outcome.done == len(sch.trace) - 1
    message = outcome.error.message
    assert (
        f"the decision is {tuple(sizes)}; expected 2 positive sizes with the product 90" in message
    )
    assert "a last size out of 1, 2, 3, 5, 6, 9, 10, 15" in message


def test_without_a_decision_another_extent_gets_its_own_sizes() -> None:
    sch = sampled(0)
    number = next(k for k, s in enumerate(sch.trace.steps) if s.op.startswith("sample"))
    other = schedule(90)
    assert other.replay(sch.trace.changed(number, decision=None)).complete
    assert other.verify(runs=1).ok


@pytest.mark.parametrize(("decision", "text"), [
    ((5, 5), "with the product 96"),
    ((3, 32), "a last size out of 1, 2, 3, 4, 6, 8, 12, 16"),
    ((96,), "expected 2 positive sizes"),
    ((-48, -2), "expected 2 positive sizes"),
])  # fmt: skip
def test_illegal_decisions(decision: tuple[int, ...], text: str) -> None:
    sch = schedule()
    step = SamplePerfectTile(sch.get_loop("k"), 2, decision=decision)
    problem = rejected(sch, step, SamplePerfectTile.Requires.DECISION, text)
    assert not sch.check(problem.fixes[0])


def test_illegal_parameters() -> None:
    sch = schedule()
    loop = sch.get_loop("k")
    rejected(
        sch,
        SamplePerfectTile(loop, 0),
        SamplePerfectTile.Requires.PARTS,
        "0 tile sizes; expected 1 to 8",
    )
    rejected(sch, SamplePerfectTile(loop, 9), SamplePerfectTile.Requires.PARTS, "9 tile sizes")
    rejected(
        sch, SamplePerfectTile(loop, 2, 0), SamplePerfectTile.Requires.PARTS, "expected at least 1"
    )
    problem = rejected(
        sch, SamplePerfectTile(loop, 1), SamplePerfectTile.Requires.PARTS, "exceeds 16"
    )
    assert not sch.check(problem.fixes[0])
    symbolic = schedule("n")
    step = SamplePerfectTile(symbolic.get_loop("k"), 2)
    rejected(
        symbolic,
        step,
        SamplePerfectTile.Requires.CONSTANT_EXTENT,
        "has n iterations; expected a constant",
    )


def test_suggestions() -> None:
    sch = schedule()
    titles = [s.step.title() for s in sch.suggest(sch.get_loop("k")) if s.applicable]
    assert "sample_perfect_tile(loop=k, n=2, max_innermost_factor=16)" in titles
