"""Proofs and refutations, and soundness on random goals."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tilewright.ir.symbolic import (
    TRUE,
    Bool,
    ContradictoryFactsError,
    Discharge,
    Facts,
    Proved,
    Refuted,
    Unknown,
    Var,
    all_of,
    any_of,
    ceildiv,
    eq,
    evaluate,
    is_proved,
    knowledge,
    maximum,
    minimum,
    ne,
    prove,
    select,
    simplify,
    substitute,
    var,
)
from tilewright.ir.symbolic.proof import polyhedra, smt, strategy
from tilewright.ir.symbolic.proof.goal import Goal

from tests.ir.symbolic.oracle import Sampler, value_of

x, y, f, i, j, b, t, c = (var(name) for name in ("x", "y", "f", "i", "j", "b", "t", "c"))
n, h = var("n", lower=0), var("h", lower=0)
m, s, w, k = (var(name, lower=1) for name in ("m", "s", "w", "k"))

NONE = Facts()
IN_N = NONE.with_loop(i, n)
QUADS = IN_N.assume(eq(n % 4, 0))
FLAT = NONE.with_range(f, 0, n * m - 1)
NEST = NONE.with_loop(i, n).with_loop(j, m)
TIED = NONE.assume(eq(b * s, t))
TIED_FOUR = NONE.assume(eq(b * s, t * k))
TILES = NONE.with_loop(i, ceildiv(n, 8)).with_loop(j, 8)
TILES_M = NONE.with_loop(i, ceildiv(n, m)).with_loop(j, m)
LAST = minimum(8, n - i * 8)
CUBE = NONE.with_range(f, 0, h * w * k - 1)

QUERIES: list[tuple[Bool, Bool, Facts]] = [
    # claim, false neighbor, facts
    (eq((x // 8) * 8 + x % 8, x), eq((x // 8) * 8 + x % 7, x), NONE),
    (ceildiv(n, 8) * 8 >= n, ceildiv(n, 8) * 8 > n, NONE),
    (ceildiv(n, 8) * 8 < n + 8, ceildiv(n, 8) * 8 < n + 7, NONE),
    (i // 4 < n // 4, i // 4 < n // 4 - 1, QUADS),
    (i // 4 < ceildiv(n, 4), i // 4 < n // 4, IN_N),
    (f // m < n, f // m < n - 1, FLAT),
    (f % m < m, f % m < m - 1, FLAT),
    (minimum(n, 64) <= n, minimum(n, 64) < n, NONE),
    (maximum(n, 64) >= n, maximum(n, 64) > n, NONE),
    (eq(t // s, b), eq(t // s, b + 1), TIED),
    (eq(t % s, 0), eq((t + 1) % s, 0), TIED),
    (eq((b * s) // k, t), eq((b * s) // s, t), TIED_FOUR),
    (i * m + j < n * m, i * m + j < n * m - 1, NEST),
    (eq((i * m + j) // m, i), eq((i * m + j) // m, j), NEST),
    (eq((i * m + j) % m, j), eq((i * m + j) % m, i), NEST),
    (eq((i * m + j) // (n * m), 0), eq((i * m + j) // (n * m), 1), NEST),
    (
        eq(f // (h * w) * (h * w) + f // w % h * w + f % w, f),
        eq(f // (h * w) * (h * w) + f // w % h * w + f % h, f),
        NONE.with_range(h, 1),
    ),
    (f // w // h < k, f // w // h < k - 1, CUBE.with_range(h, 1)),
    (x % 6 % 4 <= 3, x % 6 % 4 <= 2, NONE),
    (any_of(*[eq(x % 3, r) for r in range(3)]), any_of(eq(x % 3, 0), eq(x % 3, 1)), NONE),
    (x <= 3 * y + 2, x <= 3 * y + 1, NONE.assume(x // 3 <= y)),
    (eq(x % 2, 0), eq(x % 4, 0), NONE.assume(eq(x % 6, 0))),
    (eq(n // 2 * 2, n), eq(n // 8 * 8, n), NONE.assume(eq(n % 4, 0))),
    (x + y <= 9, x + y <= 8, NONE.assume(x <= 4).assume(y <= 5)),
    (eq(x, y), eq(x, y + 1), NONE.assume(x <= y).assume(y <= x)),
    (select(x < 3, x, 3) <= 3, select(x < 3, x, 3) <= 2, NONE),
    (ne(2 * x + 1, 4 * y), ne(2 * x + 1, 3 * y), NONE),
    (m * s >= m, m * s > m, NONE),
    (i * 8 + j < ceildiv(n, 8) * 8, i * 8 + j < n, TILES),
    (i * m + j < ceildiv(n, m) * m, i * m + j < n, TILES_M),
    (i * m + j < n + m - 1, i * m + j < n + m - 2, TILES_M),
    (i * 8 + j < n, i * 8 + j < n - 1, NONE.with_loop(i, ceildiv(n, 8)).with_loop(j, LAST)),
    (minimum(8, n - i * 8) >= 1, minimum(8, n - i * 8) >= 2, TILES),
    (select(x < n, 0, x - n) < m, select(x < n, 0, x - n) < m - 1, NONE.with_loop(x, n + m)),
    (x * x >= 0, x * x > 0, NONE),
    (all_of(x * s // s <= x, x * s // s >= x), x * s // m <= x, NONE),
]


@pytest.mark.parametrize(("claim", "neighbor", "facts"), QUERIES, ids=lambda q: str(q)[:60])
def test_claim_is_proved_and_its_neighbor_refuted(claim, neighbor, facts) -> None:
    assert isinstance(prove(claim, facts), Proved)
    answer = prove(neighbor, facts)
    assert isinstance(answer, Refuted)
    check_counterexample(neighbor, facts, answer)


def check_counterexample(claim: Bool, facts: Facts, answer: Refuted) -> None:
    """Check that values satisfy declarations and facts, but not the claim."""
    values = answer.counterexample
    for v, value in values.items():
        assert v.lower is None or v.lower <= value
        assert v.upper is None or value <= v.upper
        assert value % v.multiple_of == 0
    assert not evaluate(claim, values)
    about = facts.about(claim.free)
    assert all(evaluate(fact.predicate, values) for fact in about if fact.usable)


def random_goal(sampler: Sampler) -> tuple[Bool, np.ndarray, Facts, np.ndarray] | None:
    """Return a claim and facts with their values; None if they are contradictory or overflow."""
    sampler.restart()
    facts, holds = NONE, np.ones(sampler.count, dtype=bool)
    try:
        for _ in range(sampler.random.randrange(3)):
            p, values = sampler.condition(1)
            facts, holds = facts.assume(p), holds & values
    except ContradictoryFactsError:
        return None
    (a, u), (e, v) = sampler.integer(2), sampler.integer(1)
    where = holds & sampler.defined
    if sampler.large or not where.any():
        return None
    # Claims at the limit of the sampled values: often true, often false by one.
    margin = int((u - v)[where].max()) + sampler.random.choice((0, 0, 0, -1))
    return a <= e + margin, u <= v + margin, facts, where


@pytest.mark.parametrize("seed", range(8))
def test_proofs_and_refutations_are_sound(seed: int) -> None:
    sampler = Sampler(500 + seed, count=300)
    proved = refuted = 0
    while proved + refuted < 60:
        goal = random_goal(sampler)
        if goal is None:
            continue
        claim, values, facts, where = goal
        match prove(claim, facts):
            case Proved(by):
                proved += 1
                assert values[where].all(), (claim, facts, by)
            case Refuted() as answer:
                refuted += 1
                check_counterexample(claim, facts, answer)
            case Unknown(missing):
                assert missing
    assert proved > 5
    assert refuted > 5


@pytest.mark.parametrize("seed", range(4))
def test_simplify_with_facts_keeps_values_where_they_hold(seed: int) -> None:
    sampler = Sampler(700 + seed, count=300)
    v = sampler.symbols
    choices = (
        lambda: v[0] < sampler.integer(1)[0],
        lambda: v[0] >= 0,
        lambda: eq(v[0] % 4, 0),
        lambda: eq(v[1] % v[2], 0),
        lambda: v[1] < v[2],
        lambda: eq(v[0], v[1] * v[2]),
        lambda: eq(v[4], 2),
        lambda: v[0] < v[1] * v[2],
        lambda: eq(v[0] * v[2], v[1]),
        lambda: sampler.condition(1)[0],
    )
    checked = changed = 0
    while checked < 150:
        sampler.restart()
        facts = NONE
        try:
            for _ in range(1 + sampler.random.randrange(2)):
                facts = facts.assume(sampler.random.choice(choices)())
        except ContradictoryFactsError:
            continue
        e, expected = sampler.integer(2)
        for fact in facts:
            sampler.defined &= value_of(fact.predicate, sampler.values)
        if sampler.large or not sampler.defined.any():
            continue
        simpler = simplify(e, facts)
        changed += simpler is not e
        found = value_of(simpler, sampler.values)
        assert (found == expected)[sampler.defined].all(), (e, simpler, facts)
        checked += 1
    assert changed > 3


def unsimplified_goal(claim: Bool, facts: Facts) -> Goal:
    """Return a goal without simplification, for testing one prover."""
    simplifier = strategy.simplifier_for(frozenset())
    return Goal(claim, facts.predicates, simplifier, claim, tuple(facts.predicates))


PROVERS: dict[str, Callable] = {"isl": polyhedra.decide, "z3": lambda q: smt.decide(q, 1000)}


@pytest.mark.parametrize("prover", PROVERS)
@pytest.mark.parametrize(
    ("claim", "facts", "holds"),
    [
        (i // 4 < ceildiv(n, 4), IN_N, True),
        (i // 4 < n // 4, IN_N, False),
        (any_of(*[eq(x % 3, r) for r in range(3)]), NONE, True),
        (any_of(eq(x % 3, 0), eq(x % 3, 1)), NONE, False),
        (x % 8 // 2 + y % 3 <= 5, NONE, True),
        (x % 8 // 2 + y % 3 <= 4, NONE, False),
        (select(x < y % 7, x, 6) < 7, NONE, True),
        (select(x < y % 7, x, 6) < 6, NONE, False),
        (minimum(x, y) + maximum(y, 3 * x) >= x + minimum(y, 2 * x), NONE.assume(x >= 0), True),
        (ne(x % 5, 3), NONE.assume(any_of(eq(x, 7), eq(x, 9))), True),
    ],
)
def test_each_prover_separately(prover: str, claim: Bool, facts: Facts, holds: bool) -> None:
    answer = PROVERS[prover](unsimplified_goal(claim, facts))
    assert isinstance(answer, Proved if holds else Refuted), answer


def test_z3_floors_toward_minus_infinity() -> None:
    d = var("d", lower=-7, upper=-1)
    assert isinstance(smt.decide(unsimplified_goal(eq((x // d) * d + x % d, x), NONE), 500), Proved)
    assert isinstance(
        smt.decide(unsimplified_goal(all_of(x % d <= 0, x % d > d), NONE), 500), Proved
    )
    assert isinstance(smt.decide(unsimplified_goal(x % d >= 0, NONE), 500), Refuted)


def test_isl_parses_translated_goals() -> None:
    import islpy

    sampler = Sampler(42)
    for _ in range(300):
        claim = sampler.condition(2)[0]
        text = polyhedra._Translation(unsimplified_goal(claim, NONE)).formula
        islpy.Set.read_from_str(islpy.Context(), text)  # raises where the syntax is wrong


def test_hints_are_never_used() -> None:
    hinted = NONE.assume(n <= 10, origin="a guess", discharge=Discharge.ASSUMED_HINT)
    assert isinstance(prove(n <= 10, hinted), Refuted)
    assert isinstance(prove(n <= 10, hinted.assume(n <= 10, discharge=Discharge.CALLER)), Proved)


def test_unknown_describes_the_missing_fact() -> None:
    u, v, z = var("u"), var("v"), var("z")
    claim = ne(u * u * u + v * v * v, z * z * z + 114)
    answer = prove(claim)
    assert isinstance(answer, Unknown)
    assert "u * u * u" in answer.missing
    assert "a fact about u, v, z may decide it" in answer.missing


def test_proofs_are_cached() -> None:
    claim = i // 4 < ceildiv(n, 4) + 3
    assert prove(claim, IN_N) is prove(claim, IN_N)


def test_answers_do_not_depend_on_the_serials_of_symbols() -> None:
    # Two vector lanes that write the same element of a packed copy, at the limit of z3's work.
    answers = {type(prove(lanes_write_different_elements())) for _ in range(12)}
    assert len(answers) == 1


def lanes_write_different_elements() -> Bool:
    """Return a claim about symbols with new serials that the other provers leave to z3."""
    width, p = var("width", lower=1), var("p", lower=0)
    lanes = [var("lane", lower=0, upper=1) for _ in range(2)]
    first, second = (2 * p + lane for lane in lanes)
    return any_of(
        ne(first // width % 2, second // width % 2),
        ne(first % width % 16, second % width % 16),
        ne(first % width // 16, second % width // 16),
        eq(*lanes),
    )


def test_facts_about_other_symbols_do_not_matter() -> None:
    unrelated = IN_N.assume(x < y)
    assert prove(i < n + 5, IN_N) == prove(i < n + 5, unrelated)


def test_trivial_claims() -> None:
    assert prove(TRUE) == Proved("simplification")
    assert is_proved(n >= 0)
    assert not is_proved(n >= 1)


@given(st.integers(1, 16), st.integers(0, 200))
@settings(max_examples=60)
def test_tail_guards_match_arithmetic(factor: int, extent: int) -> None:
    """Check that a split needs a guard exactly if the factor does not divide the extent."""
    i0, i1 = var("i0"), var("i1")
    loops = NONE.with_loop(i0, -(-extent // factor)).with_loop(i1, factor)
    needed = extent % factor != 0
    assert is_proved(i0 * factor + i1 < extent, loops) == (not needed)


def test_dead_loops_prove_anything_and_raise_nothing() -> None:
    dead = NONE.with_loop(x, 0)
    assert is_proved(x > 1000, dead)


def test_counterexample_prints() -> None:
    answer = prove(minimum(n, 64) >= n)
    assert isinstance(answer, Refuted)
    assert str(answer).startswith("n = ")
    assert all(isinstance(v, Var) for v in answer.counterexample)


@pytest.mark.parametrize(
    ("first", "second", "excluded"),
    [
        (x <= y * 8 + 768, x > y * 8 + 768, True),
        (x * x <= y * y, x * x > y * y + 3, True),
        (x <= y * 8 + 768, x >= y * 8 + 768, False),
        (eq(x % 3, y % 3), x % 3 <= y % 3, False),
    ],
    ids=str,
)
def test_comparisons_that_exclude_each_other(monkeypatch, first, second, excluded) -> None:
    """Contradictory facts prove a claim without a search, although its terms are complicated."""
    claim = ne((x * y) // 7 + y, (y * y) // 5)
    monkeypatch.setattr(strategy.Simplifier, "reduce", None)
    facts = frozenset((first, second, y >= c))
    if excluded:
        assert strategy.decide(claim, facts, 50) == Proved("contradictory facts")
    else:
        with pytest.raises(TypeError):
            strategy.decide(claim, facts, 50)


def test_tighter_ranges_are_substituted_at_once(monkeypatch) -> None:
    """Each fact is rewritten once per round, not once per symbol with a tighter range."""
    calls: list[object] = []

    def counted(term, values):
        calls.append(term)
        return substitute(term, values)

    monkeypatch.setattr(knowledge, "substitute", counted)
    symbols = [var(f"v{index}", lower=0) for index in range(20)]
    facts = [v < 8 for v in symbols] + [b * 16 + a < m for a, b in pairwise(symbols)]
    refinement = knowledge.refine(facts)
    assert all(refinement.forward[v].upper == 7 for v in symbols)
    assert len(calls) <= 3 * len(facts)


def test_many_facts_do_not_hide_the_few_that_matter() -> None:
    extents = [var(f"n{k}", lower=1) for k in range(8)]
    loops = [var(f"i{k}") for k in range(8)]
    facts = NONE
    for extent in extents:
        facts = facts.with_range(extent, 1, 2048).assume(eq(extent % 4, 0))
    for smaller, larger in pairwise(extents):
        facts = facts.assume(smaller <= larger)
    facts = facts.assume(eq(extents[0] * extents[1], extents[7] * 4))
    for loop, extent in zip(loops, extents, strict=True):
        facts = facts.with_loop(loop, extent)
    flat, size = loops[0], extents[0]
    for loop, extent in zip(loops[1:4], extents[1:4], strict=True):
        flat, size = flat * extent + loop, size * extent
    by_rules = Proved("bounds and rewriting")
    assert prove(flat < size, facts) == by_rules
    assert prove(loops[0] * extents[1] + loops[1] < 4 * extents[7], facts) == by_rules
    assert prove(loops[3] // 4 < extents[3] // 4, facts) == by_rules
    assert isinstance(prove(loops[0] < extents[7], facts), Proved)
    assert isinstance(prove(loops[5] < extents[2], facts), Refuted)
    assert simplify(flat // extents[3] % extents[2], facts) is loops[2]
