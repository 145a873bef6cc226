"""Blocks of stores that the program text has outside of blocks."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen import compile as build
from tilewright.ir.analysis.store_blocks import UnwrappableStoreError
from tilewright.ir.script import parse, to_text
from tilewright.ir.verify import violations
from tilewright.schedules import Schedule, StepError

ONE = """
@prim_func
def f(x: Buffer[(8,), f32], y: InOut[(9,), f32]):
    for i in range(8):
        {store}
"""


def block_of(store: str) -> str:
    """Return the lines of the block that a store gets."""
    text = to_text(parse(ONE.format(store=store)))
    return " ".join(line.strip() for line in text.split("\n")[3:])


@pytest.mark.parametrize(
    ("store", "expected"),
    [
        ("y[i] = x[i]", "vi = spatial(i) y[vi] = x[vi]"),
        ("y[8 - i] = x[i]", "vi = spatial(i) y[-vi + 8] = x[vi]"),
        ("y[i] = y[i] * x[i]", "vi = spatial(i) y[vi] *= x[vi]"),
        ("y[0] = y[0] + x[i]", "vi = reduce(i) y[0] += x[vi]"),
        ("y[0] = max(y[0], x[i])", "vi = reduce(i) y[0] = max(y[0], x[vi])"),
        ("y[0] = y[0] - x[i]", "vi = ordered(i) y[0] -= x[vi]"),
        ("y[0] = x[i]", "vi = ordered(i) y[0] = x[vi]"),
        ("y[0] = y[0] + 1.0", "vi = reduce(i) y[0] += 1.0"),
        ("y[0] = y[1] + 1.0", "vi = ordered(i) y[0] = y[1] + 1.0"),
        ("y[0] = 1.0", "y[0] = 1.0"),
        ("y[i + 1] = y[i] + x[i]", "vi = ordered(i) y[vi + 1] = y[vi] + x[vi]"),
        ("y[i] = y[8 - i]", "vi = ordered(i) y[vi] = y[-vi + 8]"),
        ("y[i // 2] = x[i]", "vi = ordered(i) y[vi // 2] = x[vi]"),
        ("y[i % 4] = y[i % 4] + x[i]", "vi = ordered(i) y[vi % 4] += x[vi]"),
    ],
)
def test_the_kind_of_a_loop_follows_from_the_dependences_of_the_store(store, expected):
    assert block_of(store) == f'with block("y"): {expected}'


@pytest.mark.parametrize(
    ("store", "step"),
    [
        ("y[0] = y[0] + x[i]", "parallel"),
        ("y[i + 1] = y[i] + x[i]", "parallel"),
        ("y[i + 1] = y[i] + x[i]", "vectorize"),
    ],
)
def test_a_store_with_a_dependence_between_iterations_is_not_run_in_parallel(store, step):
    schedule = Schedule(parse(ONE.format(store=store)))
    with pytest.raises(StepError):
        getattr(schedule, step)("i")


def test_the_lanes_of_a_vectorized_sum_are_combined():
    schedule = Schedule(parse(ONE.format(store="y[0] = y[0] + x[i]")))
    schedule.vectorize("i")
    found = build(schedule)(np.arange(8, dtype=np.float32), np.full(9, 2.0, np.float32))
    np.testing.assert_array_equal(found, [30.0] + [2.0] * 8)


SEVERAL = """
n = symbols("n", lower=0)

@prim_func
def f(
    x: Buffer[(n, n), i32], at: Buffer[(n,), i32], y: InOut[(n, n + 1), i32], z: InOut[(n,), i32]
):
    for i in range(n):
        for j in range(i + 1):
            y[i, j] = x[i, j]
        for k in range(n):
            y[i, k + 1] = y[i, k] + x[i, k]
        with checked(at[i], 0, n) as p:
            z[p] = z[p] + x[i, i]
        with checked(at[i], 0, n) as q:
            for m in range(n):
                if m > 2:
                    y[q, m] = x[i, m]
                else:
                    y[q, m] = 2
"""


def test_blocks_of_several_statements(golden):
    golden("store_blocks.txt", to_text(parse(SEVERAL)))


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_blocks_do_not_change_the_results(n):
    module = parse(SEVERAL)
    assert violations(module) == ()
    rng = np.random.default_rng(n)
    x, at = rng.integers(-5, 5, (n, n), np.int32), rng.integers(0, max(n, 1), n, np.int32)
    y, z = rng.integers(-5, 5, (n, n + 1), np.int32), np.zeros(n, np.int32)
    found = build(module)(x, at, y.copy(), z.copy())
    for i in range(n):
        y[i, : i + 1] = x[i, : i + 1]
        for k in range(n):
            y[i, k + 1] = y[i, k] + x[i, k]
        z[at[i]] += x[i, i]
        y[at[i], :n] = [x[i, m] if m > 2 else 2 for m in range(n)]
    np.testing.assert_array_equal(found[0], y)
    np.testing.assert_array_equal(found[1], z)


def test_a_running_sum_that_another_statement_reads_is_ordered():
    text = """
@prim_func
def f(x: Buffer[(8,), f32], s: InOut[(1,), f32], y: Out[(8,), f32]):
    for i in range(8):
        s[0] = s[0] + x[i]
        y[i] = s[0]
"""
    assert "vi = ordered(i)\n            s[0] += x[vi]" in to_text(parse(text))


def test_a_store_that_reads_results_of_its_loop_is_repeated():
    text = """
@prim_func
def f(a: InOut[(1,), f32], b: InOut[(1,), f32]):
    for i in range(8):
        a[0] = b[0]
        b[0] = a[0] * 2.0
"""
    assert to_text(parse(text)).count("ordered(i)") == 2


def test_names_do_not_collide_with_those_of_the_program():
    text = """
@prim_func
def f(vi: Buffer[(8,), f32], y: Out[(8,), f32], z: Out[(8,), f32]):
    for i in range(8):
        y[i] = vi[i]
        with block("y"):
            w = spatial(8, i)
            z[w] = vi[w]
"""
    shown = to_text(parse(text))
    assert 'with block("y_1"):\n            vi_1 = spatial(i)\n            y[vi_1]' in shown
    assert to_text(parse(shown)) == shown


def test_a_loaded_integer_without_a_known_range_is_rejected_by_name():
    text = """
n = symbols("n", lower=1)

@prim_func
def f(at: Buffer[(n,), i32], y: InOut[(n,), f32]):
    for i in range(n):
        with checked(at[i], 0, i + 1) as p:
            y[p] = 1.0
            y[i] = 2.0
"""
    with pytest.raises(UnwrappableStoreError, match="uses 'p', an integer loaded from memory"):
        parse(text)


def test_a_store_in_a_program_that_is_not_parsed_must_be_in_a_block():
    (found,) = violations(parse(ONE.format(store="y[i] = x[i]"), check=False))
    assert found.rule.name == "stores in blocks"
    assert found.message == "the store to 'y' is outside of blocks"
