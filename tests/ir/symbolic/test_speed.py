"""A gate against slow construction and proofs, loose enough for a busy machine.

``python -m tests.benchmarks.symbolic`` measures properly.
"""

from __future__ import annotations

from time import thread_time_ns

from tilewright.ir.symbolic import Proved, Refuted, Unknown, ne, prove, var

from tests.benchmarks.symbolic import measure_again, measure_building, measure_proving
from tests.cpu_time import relative_ms, timed

SLACK = 5


@timed
def test_construction_with_empty_caches() -> None:
    times = measure_building(thread_time_ns)
    assert times["count"] == 1000
    assert times["median"] <= 100 * SLACK
    assert times["p99"] <= 1000 * SLACK


@timed
def test_repeated_construction_uses_caches() -> None:
    assert measure_again()["median"] <= 10 * SLACK


@timed
def test_typical_proofs_are_fast() -> None:
    times = measure_proving(thread_time_ns)
    assert times["median"] <= 1000 * SLACK
    assert times["p99"] <= 50_000


def test_the_hardest_goal_ends_within_its_budget() -> None:
    a, b, c, d, e = (var(name, lower=1) for name in "abcde")
    assert isinstance(prove(ne(a, a + 1)), Proved)
    goal = ne(a * a * a * b + 7, c * c * c * c + d * d * d * d + e * e * e * e)
    answers: list[object] = []
    assert relative_ms(lambda: answers.append(prove(goal))) <= 50 * SLACK
    assert isinstance(answers[0], (Unknown, Refuted))
