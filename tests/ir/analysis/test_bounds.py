"""The in-bounds query, on programs whose accesses are proved, checked, unknown, or outside."""

from __future__ import annotations

import pytest

from tilewright.ir.analysis.bounds import bounded_accesses, least, status_counts
from tilewright.ir.analysis.scopes import Binder
from tilewright.ir.graph.operators import lower_call
from tilewright.ir.script import parse
from tilewright.ir.symbolic import as_expr, minimum, to_text, var

from tests.ir.graph.cases import LOOP_CASES
from tests.ir.graph.test_operators import Program
from tests.ir.script.texts import unverified

HEADER = """
n, m = symbols("n m", lower=0)
a = symbols("a")
@prim_func
def f(a: Int, x: Buffer[(n,), f32], z: Buffer[(n, m), f32], q: Buffer[(n * m,), f32],
      p: Buffer[(n,), i32], y: InOut[(n,), f32]):
"""
LOOPS = HEADER + "    for i in range(n):\n        for j in range(m):\n            y[i] = {}\n"


def statuses(text: str, buffer: str = "x") -> list[str]:
    accesses = bounded_accesses(unverified(text).prim("f"))
    return [a.status for a in accesses if a.buffer.name == buffer]


def labels(text: str, buffer: str = "x") -> list[str]:
    accesses = bounded_accesses(unverified(text).prim("f"))
    return [a.label for a in accesses if a.buffer.name == buffer]


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        ("x[i]", "proved"),
        ("x[n - 1 - i]", "proved"),
        ("x[max(i - 1, 0)]", "proved"),
        ("x[min(i + 1, n - 1)]", "proved"),
        ("x[i // 2]", "proved"),
        ("x[(i * 7) % n]", "proved"),
        ("x[(i * m + j) // m]", "proved"),
        ("where(condition(i >= 1), x[i - 1], 0.0)", "proved"),
        ("where(condition(i < 1) or condition(j < 0), 0.0, x[i - 1])", "proved"),
        ("where(condition(i + a >= 0) and condition(i + a < n), x[i + a], 0.0)", "proved"),
        ("x[a]", "checked at entry"),
        ("x[i + a]", "checked at entry"),
        ("x[i * i]", "checked in the kernel"),
        ("x[i * a]", "checked in the kernel"),
        ("where(y[i] > 0.0, x[a], 0.0)", "checked in the kernel"),
        ("where(y[i] > 0.0, 0.0, x[n])", "checked in the kernel"),
        ("where(not condition(i < a), x[n - 2 - i], 0.0)", "checked in the kernel"),
        ("x[-1]", "outside"),
        ("x[n]", "outside"),
        ("x[i + 1000000000]", "outside"),
        ("where(condition(a > n), x[a], 0.0)", "outside"),
    ],
)
def test_the_status_of_an_access(element: str, expected: str) -> None:
    assert labels(LOOPS.format(element)) == [expected]


def test_products_of_dimensions_are_proved() -> None:
    assert statuses(LOOPS.format("q[i * m + j]"), "q") == ["proved"]
    assert statuses(LOOPS.format("q[j * n + i]"), "q") == ["proved"]


def test_a_check_covers_exactly_the_legal_arguments() -> None:
    text = """
@prim_func
def f(a: Int, x: Buffer[(8,), f32], y: Out[(3,), f32]):
    for i in range(3):
        y[i] = x[2 * i + a]
"""
    (access,) = (a for a in bounded_accesses(unverified(text).prim("f")) if a.buffer.name == "x")
    assert to_text(access.check) == "a < 4 and a >= 0"


def test_an_empty_loop_needs_no_check() -> None:
    text = LOOPS.format("x[a]")
    (access,) = (a for a in bounded_accesses(unverified(text).prim("f")) if a.buffer.name == "x")
    assert "n <= 0" in to_text(access.check)
    assert "m <= 0" in to_text(access.check)


@pytest.mark.parametrize("fact", ["k == 0", "k * m == 0 and m == 2", "m == 3 and k + m == 3"])
def test_an_access_of_a_loop_without_iterations_is_not_outside(fact: str) -> None:
    text = f"""
k = symbols("k", lower=0)
m = symbols("m", lower=0)
@prim_func
def f(x: Buffer[(k, m), f32], y: InOut[(6,), f32]):
    fact({fact}, "given", by="entry_check")
    t = alloc((2, 0), f32)
    for i in range(6):
        for j in range(k):
            t[j, 0] = 1.0
            y[i] = t[j, 0]
"""
    access, *_ = (a for a in bounded_accesses(parse(text).prim("f")) if a.buffer.name == "t")
    assert access.status == "proved"


def test_branches_and_guards_bound_an_access() -> None:
    text = """
n = symbols("n", lower=0)
@prim_func
def f(x: Buffer[(n,), f32], y: InOut[(n,), f32]):
    for i in range(n):
        if i + 1 < n:
            y[i] = x[i + 1]
        else:
            y[i] = x[i - n + 1]
    for o in range((n + 3) // 4):
        for k in range(4):
            with block("tile"):
                vi = spatial(n, o * 4 + k)
                guard(o * 4 + k < n)
                y[vi] = x[vi]
"""
    assert set(statuses(text)) == {"proved"}
    assert set(statuses(text, "y")) == {"proved"}


def test_a_block_whose_bindings_leave_the_domain_proves_nothing() -> None:
    text = """
@prim_func
def f(x: Buffer[(8,), f32], y: InOut[(8,), f32]):
    for i in range(32):
        with block("y"):
            vi = spatial(8, i)
            y[vi] = x[vi]
"""
    assert statuses(text) == ["outside"]


def test_a_binding_beyond_the_buffer_is_legal_in_the_iterations_that_run() -> None:
    text = """
@prim_func
def f(x: Buffer[(8,), f32], y: InOut[(8,), f32]):
    for i in range(8):
        with block("y"):
            vi = spatial(64, i)
            y[vi] = x[vi]
"""
    assert statuses(text) == ["proved"]


@pytest.mark.parametrize("mode", ["checked", "clamped"])
def test_an_integer_from_memory_has_the_range_of_its_let(mode: str) -> None:
    text = HEADER + (
        f"    for i in range(n):\n        with {mode}(p[i], 0, n) as v:\n"
        "            y[i] = x[v] + x[n - 1 - v]\n"
    )
    assert statuses(text) == ["proved", "proved"]
    assert statuses(text.replace("x[v]", "x[v + 1]"))[0] != "proved"


def test_a_triangular_loop_is_proved() -> None:
    text = (
        HEADER
        + "    for i in range(n):\n        for j in range(i):\n"
        + "            y[i] = x[i - j]\n"
    )
    assert statuses(text) == ["proved"]
    shifted = text.replace("x[i - j]", "x[i - j - 2]")
    assert statuses(shifted) != ["proved"]


def test_dead_code_is_not_an_error() -> None:
    text = HEADER + "    for i in range(n):\n        if n < 0:\n            y[i] = x[-1]\n"
    assert statuses(text) == ["proved"]


def test_the_least_value_of_a_term() -> None:
    i, j, n, a = var("i"), var("j"), var("n", lower=1), var("a")
    zero, last = as_expr(0), n - 1
    binders = (Binder(i, zero, last), Binder(j, zero, i))
    assert least(a + i - j, binders) is a + 0
    assert least(a - i, binders) is a - n + 1
    assert least(minimum(i, a), binders) is minimum(a, 0)
    assert least(i // 2 - j, binders) is None
    assert least(i * i, binders) is None
    assert least((i * 3) % 7, binders) is None


def test_counts_per_status() -> None:
    accesses = bounded_accesses(unverified(LOOPS.format("x[a] + x[i]")).prim("f"))
    assert status_counts(accesses) == {"proved": 2, "checked at entry": 1}


def test_a_check_at_entry_needs_an_iteration_that_runs() -> None:
    text = HEADER + "    for i in range(n):\n        for j in range(i):\n            y[i] = x[{}]\n"
    assert labels(text.format("a")) == ["checked in the kernel"]  # no iteration if n is 1
    assert labels(text.format("i + a")) == ["checked in the kernel"]
    guarded = (
        HEADER + "    for i in range(n):\n        if i * i < a:\n            y[i] = x[i + 1]\n"
    )
    assert labels(guarded) == ["checked in the kernel"]


def test_a_loaded_integer_may_miss_the_ends_of_its_range() -> None:
    text = HEADER + (
        "    for i in range(n):\n        with checked(p[i], 0, n) as v:\n"
        "            y[i] = x[v + a]\n"
    )
    assert labels(text) == ["checked in the kernel"]
    assert labels(text.replace("x[v + a]", "x[v + n]")) == ["checked in the kernel"]


def test_a_block_that_runs_its_whole_domain_is_checked_at_entry() -> None:
    text = HEADER + (
        "    for o in range((n + 3) // 4):\n"
        "        for k in range(4):\n"
        '            with block("tile"):\n'
        "                vi = spatial(n, o * 4 + k)\n"
        "                guard(o * 4 + k < n{})\n"
        "                y[vi] = x[vi + a]\n"
    )
    assert labels(text.format("")) == ["checked at entry"]
    assert labels(text.format(" and o * 4 + k < 7")) == ["checked in the kernel"]


def test_an_init_is_checked_even_if_its_reduction_is_empty() -> None:
    text = """
k = symbols("k", lower=0)
@prim_func
def f(a: Int, x: Buffer[(4, k), f32], y: InOut[(8,), f32]):
    for i in range(4):
        for j in range(k):
            with block("s"):
                vi, vj = spatial(i), reduce(j)
                with init(): y[vi + a] = 0.0
                y[vi + a] += x[vi, vj]
"""
    first = bounded_accesses(unverified(text).prim("f"))[0]
    assert (first.label, to_text(first.check)) == ("checked at entry", "a <= 4 and a >= 0")


@pytest.mark.parametrize(("rows", "terms", "expected"), [(2, 0, ["outside"]), (0, 4, [])])
def test_the_init_of_an_empty_reduction_is_not_in_bounds(rows, terms, expected):
    """The init runs before an empty loop of the reduction, and not in an empty loop around it."""
    text = f"""
@prim_func
def f(x: Buffer[(4,), f32], y: Out[(4,), f32]):
    for i in range({rows}):
        for k in range({terms}):
            with block("y"):
                vi, vk = spatial(8, i + 5), reduce(4, k)
                with init(): y[vi] = 0.0
                y[vi] += x[vk]
"""
    assert statuses(text, "y")[:1] == expected


@pytest.mark.parametrize("case", LOOP_CASES, ids=str)
def test_every_access_of_every_operator_is_proved_or_checked(case: object) -> None:
    program = Program(case)
    function = lower_call(program.call, program.value.info, "f").function
    assert [
        a.text for a in bounded_accesses(function) if a.status not in ("proved", "checked")
    ] == []


def test_the_last_iteration_of_a_product_of_extents_is_in_bounds():
    """The product of a variable and an extent disappears at the last iteration."""
    rest = "(n - min(2, n))"
    part = f"({rest} % 25 // 8)"
    text = f"""
n = symbols("n", lower=1)
@prim_func
def f(x: Buffer[(n, 7), f32], y: InOut[(7,), f32]):
    for a in range(4):
        for b in range(2):
            for c in range({part}):
                for k in range(7):
                    with block("y"):
                        vi = reduce(n, {rest} // 25 * 25 + {part} * a * 2 + {part} * b + c + 2)
                        vk = spatial(k)
                        y[vk] += where(vk <= vi, x[vi, vk], 0.0)
"""
    assert statuses(text) == ["proved"]
