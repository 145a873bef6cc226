"""Identity, interning, depth, memory, threads, and misuse of terms."""

from __future__ import annotations

import copy
import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from tilewright.ir.symbolic import (
    FALSE,
    TRUE,
    Add,
    BoolConst,
    Const,
    Eq,
    Expr,
    Facts,
    FloorDiv,
    InvalidSymbolError,
    Le,
    Lt,
    Min,
    Mod,
    Mul,
    NotAConditionError,
    NotAnIntegerError,
    OperandError,
    Select,
    UndecidedConditionError,
    Var,
    all_of,
    any_of,
    as_expr,
    bounds,
    ceildiv,
    clear_caches,
    congruence,
    const_value,
    eq,
    evaluate,
    free_vars,
    is_proved,
    maximum,
    minimum,
    ne,
    negate,
    product,
    prove,
    select,
    substitute,
    total,
    var,
)
from tilewright.ir.symbolic.build import _sums
from tilewright.ir.symbolic.conditions import order_of

from tests.ir.symbolic.oracle import Sampler

x, n, m = var("x"), var("n", lower=0), var("m", lower=1)


def test_equal_structures_are_one_object() -> None:
    assert (x + n) * 2 is n * 2 + x + x
    assert (x // 8) % 4 is (x % 32) // 8
    assert minimum(x, n, 3) is minimum(3, minimum(n, x))
    assert eq(x, n) is eq(n, x)
    assert all_of(x < n, n < m) is all_of(n < m, x < n)
    assert select(x < n, 1, 2) is select(x < n, 1, 2)
    assert Const(7) is Const(7)
    assert Const(10**9) is Const(10**9)
    assert BoolConst(True) is TRUE
    assert not FALSE


@pytest.mark.parametrize(
    "term", [x, n, m, n * 2 + 3, 4 - n, n % 8, n // m, x % 4 - n % 4 * 2, Const(5)]
)
@pytest.mark.parametrize("value", [*range(-9, 10), Const(3)])
def test_comparisons_by_bounds_are_those_by_differences(term: Expr, value: int | Const) -> None:
    assert (term <= value) is order_of(term - value)
    assert (term < value) is order_of(term - value + 1)
    assert (term >= value) is order_of(as_expr(value) - term)
    assert (term > value) is order_of(as_expr(value) - term + 1)


def test_symbols_of_one_name_differ() -> None:
    other = var("x")
    assert other is not x
    assert x != other
    assert x - other != 0
    assert other.serial > x.serial


def test_constants_equal_and_hash_as_integers() -> None:
    assert Const(3) == 3
    assert Const(3) != 4
    assert hash(Const(3)) == hash(3)
    assert {3: "three"}[Const(3)] == "three"
    assert x != 3
    assert as_expr(True) is Const(1)
    assert const_value(as_expr(5)) == 5
    assert const_value(x) is None


def test_fields_match() -> None:
    i = var("i", lower=0, upper=6)
    match 3 * x * n + 2 * i + 5:
        case Add(terms, 5):
            assert dict(terms) == {x * n: 3, i: 2}
        case _:
            pytest.fail("a sum is an Add")
    match x * n * x:
        case Mul(factors):
            assert sorted(f.order for f in factors) == sorted((x.order, x.order, n.order))
        case _:
            pytest.fail("a product is a Mul")
    assert isinstance(x // n, FloorDiv)
    assert isinstance(x % n, Mod)
    assert (x // n).numerator is x
    assert isinstance(minimum(x, n), Min)
    assert isinstance(select(x < n, x, 1), Select)
    match x < n:
        case Lt(left, right):
            assert (left, right) == (x, n)
        case _:
            pytest.fail("< is an Lt")
    match x <= n + 3:
        case Le(left, right):
            assert (left, right) == (x, n + 3)
        case _:
            pytest.fail("<= is an Le")
    assert isinstance(eq(x, n), Eq)


def test_declared_ranges_simplify() -> None:
    i0, i1 = var("i0", lower=0), var("i1", lower=0, upper=7)
    flat = i0 * 8 + i1
    assert flat // 8 is i0
    assert flat % 8 is i1
    assert flat // 16 is i0 // 2
    assert (x * m + n) // m is x + n // m
    assert (m * 33 + n) // (m * 32) is (m + n) // (m * 32) + 1
    assert (x * m * 7 - m * 5 + n) % (m * 2) is (x * m - m + n) % (m * 2)
    assert (n // m) * m + n % m is n
    padded = var("p", multiple_of=8)
    assert padded % 4 == 0
    assert padded // 8 * 8 is padded
    assert (padded + i1) // 8 is padded // 8
    assert ceildiv(m, 8) * 8 - m >= 0
    assert minimum(i1, 9) is i1
    assert maximum(i1, -1) is i1


def test_bounds_and_congruence() -> None:
    i = var("i", lower=0, upper=10, multiple_of=4)
    assert (i.lower, i.upper) == (0, 8)
    assert bounds(3 * i - 1) == (-1, 23)
    assert congruence(3 * i - 1) == (12, 11)
    assert bounds(x * x).lower == 0
    assert bounds(x % 5) == (0, 4)
    facts = Facts().with_loop(x, n).with_range(n, 0, 64).assume(eq(n % 8, 0))
    assert bounds(x, facts) == (0, 63)
    assert congruence(n + 3, facts) == (8, 3)


@pytest.mark.parametrize(
    ("operation", "where"),
    [
        (lambda: x + 1.5, OperandError),
        (lambda: x / 2, OperandError),
        (lambda: 1 / x, OperandError),
        (lambda: x**2, OperandError),
        (lambda: x + None, OperandError),
        (lambda: x + object(), TypeError),
        (lambda: "a" * x, TypeError),
        (lambda: 2.0 // x, TypeError),
        (lambda: x < "3", TypeError),
        (lambda: as_expr("x"), NotAnIntegerError),
        (lambda: minimum(), NotAnIntegerError),
        (lambda: all_of(x == n), NotAConditionError),
        (lambda: negate(False), NotAConditionError),
        (lambda: prove(x == n), NotAConditionError),
        (lambda: select(x == n, 1, 2), NotAConditionError),
        (lambda: Facts().assume(x == n), NotAConditionError),
        (lambda: var("v", lower=3, upper=2), InvalidSymbolError),
        (lambda: var("v", lower=1, upper=3, multiple_of=4), InvalidSymbolError),
        (lambda: var("v", multiple_of=0), InvalidSymbolError),
        (lambda: bool(x < n), UndecidedConditionError),
        (lambda: 1 if eq(x, n) else 2, UndecidedConditionError),
    ],
)
def test_misuse_raises_named_errors(operation, where) -> None:
    with pytest.raises(where):
        operation()


def test_undecided_condition_errors_have_a_hint() -> None:
    with pytest.raises(UndecidedConditionError, match="the value of 'x < n' depends") as caught:
        bool(x < n)
    assert "prove(condition, facts)" in str(caught.value)


def test_sums_and_products_of_many() -> None:
    assert total(()) == 0
    assert product(()) == 1
    assert total([x, 2, x]) is 2 * x + 2
    assert product([x, 2, n]) is 2 * x * n
    assert any_of() is FALSE
    assert all_of() is TRUE
    assert ne(x, x) is FALSE


def test_copies_are_the_term_itself() -> None:
    e = x + n
    assert copy.copy(e) is e
    assert copy.deepcopy([e])[0] is e


def test_large_products_stay_small() -> None:
    parts = [total([var(f"a{i}_{j}") for j in range(8)]) for i in range(6)]
    e = product(parts)
    values = dict.fromkeys(free_vars(e), 1)
    assert evaluate(e, values) == 8**6
    assert isinstance(e, Mul)


def test_deep_terms_do_not_recurse() -> None:
    e: Expr = x
    for depth in range(1500):
        e = minimum((e + n) // 3, depth % 7 + 2 * e % 1009, m)
    assert free_vars(e) == {x, n, m}
    assert len(str(e)) < 10_000
    assert isinstance(evaluate(e, {x: 5, n: 3, m: 9}), int)
    assert free_vars(substitute(e, {x: n})) == {n, m}
    assert isinstance(substitute(e, {x: 1, n: 2, m: 3}), Const)
    del e
    clear_caches()
    gc.collect()


def test_deep_chains_of_every_kind() -> None:
    for step in (
        lambda e, k: e // 2 + k,
        lambda e, k: (e * 3 + k) % (k + 1000),
        lambda e, k: select(e < k, e + 1, n),
        lambda e, k: maximum(e * 2 - k, n),
        lambda e, k: (e % (m + k)) // 2,
    ):
        e: Expr = x
        for k in range(600):
            e = step(e, k)
        assert free_vars(e) <= {x, n, m}
        assert isinstance(evaluate(e, {x: 7, n: 3, m: 2}), int)


def test_dead_terms_leave_the_table() -> None:
    clear_caches()
    gc.collect()
    before = len(_sums)
    symbols = [var(f"v{i}") for i in range(200)]
    kept = [a + 3 * b + 1 for a in symbols[:20] for b in symbols[20:]]
    assert len(_sums) >= before + len(kept)
    alive = weakref.ref(kept[0])
    del kept
    clear_caches()
    gc.collect()
    assert alive() is None
    assert len(_sums) < before + 100


def test_caches_are_bounded() -> None:
    from tilewright.ir.symbolic.build import _CACHE_LIMIT, _caches

    v = var("v")
    for k in range(_CACHE_LIMIT + 100):
        _ = v + k
    assert all(len(cache) <= _CACHE_LIMIT for cache in _caches)


THREADS = 8


def test_threads_build_one_object() -> None:
    symbols = [var(f"v{i}", lower=0) for i in range(12)]
    gate = Barrier(THREADS)

    def build(_: int) -> list[Expr]:
        gate.wait()
        made = []
        for k in range(400):
            a, b = symbols[k % 12], symbols[(k * 7 + 1) % 12]
            made.append((a * (k + 2) + b) // (k % 9 + 2) + minimum(a, b + k) % 13)
            if k % 50 == 0:
                clear_caches()
        return made

    with ThreadPoolExecutor(THREADS) as pool:
        results = list(pool.map(build, range(THREADS)))
    for other in results[1:]:
        assert all(a is b for a, b in zip(results[0], other, strict=True))


def test_threads_prove_alike() -> None:
    i, j = var("i"), var("j")
    facts = Facts().with_loop(i, n).with_loop(j, m)
    claims = [
        i * m + j < n * m,
        i // 4 < ceildiv(n, 4),
        i // 4 < n // 4,
        any_of(*[eq(x % 3, r) for r in range(3)]),
        minimum(x * m, n * m) <= n * m,
        (x * m) // m <= x + j % 2,
    ]
    gate = Barrier(THREADS)

    def ask(shift: int) -> list[bool]:
        gate.wait()
        found = {
            k: is_proved(claims[k], facts) for k in sorted(range(6), key=lambda k: (k + shift) % 6)
        }
        return [found[k] for k in range(6)]

    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(ask, range(THREADS)))
    assert answers == [[True, True, False, True, True, True]] * THREADS


def test_threads_use_z3_and_isl_on_their_own_contexts() -> None:
    from tilewright.ir.symbolic.proof import polyhedra, smt

    from tests.ir.symbolic.test_prove import unsimplified_goal

    sampler = Sampler(9)
    goals = [unsimplified_goal(sampler.condition(1)[0], Facts()) for _ in range(40)]
    gate = Barrier(THREADS)

    def ask(_: int) -> list[str]:
        gate.wait()
        found = [(polyhedra.decide(q), smt.decide(q, 20)) for q in goals]
        return [f"{type(a).__name__} {type(b).__name__}" for a, b in found]

    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(ask, range(THREADS)))
    assert all(answer == answers[0] for answer in answers)


def test_order_depends_on_serials_not_on_names_or_history() -> None:
    a, b = var("zebra"), var("ant")
    assert a.order < b.order < (a + b).order
    order = (a // 7).order
    clear_caches()
    gc.collect()
    assert (a // 7).order == order


def listed(gap: int) -> list[str]:
    """Return compound terms in sorted order; other symbols are created between theirs."""
    symbols: list[Expr] = []
    for name in "abcd":
        symbols.append(var(name))
        _ = [var("other") for _ in range(gap)]
    terms = {
        f"{kind} {i}{j}": make(p, q)
        for i, p in enumerate(symbols)
        for j, q in enumerate(symbols)
        for kind, make in {
            "quotient": lambda p, q: p // (q + 2), "sum": lambda p, q: p * q + 2 * p - q,
            "least": lambda p, q: minimum(p // 3, q % 5),
            "choice": lambda p, q: select(p < q, p, 7), "square": lambda p, q: p * p * q,
        }.items()
    }  # fmt: skip
    return sorted(terms, key=lambda name: terms[name].order)


def test_order_is_independent_of_earlier_symbols() -> None:
    once = listed(0)
    assert listed(1) == listed(1000) == once


def test_order_distinguishes_repeated_symbols() -> None:
    y = var("y")
    terms = [x * x * y, x * y * y, x // (x + y), x // (y + 1), x * x // y, x * y // x, y * y // x]
    assert len({e.order for e in terms}) == len(terms)


def test_order_of_deep_terms_that_differ_at_the_bottom() -> None:
    deep = [x, n]
    for k in range(3000):
        deep = [(e + k) // 2 for e in deep]
    assert sorted(deep, key=lambda e: e.order) == deep


def test_order_distinguishes_signs() -> None:
    assert ((x - n) // 3).order != ((x - 2 * n) // 3).order


def test_var_matches_only_symbols() -> None:
    assert isinstance(x, Var)
    assert free_vars(x) == {x}
    assert free_vars(x < n) == {x, n}
    assert free_vars(Const(1)) == frozenset()
