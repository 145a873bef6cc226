"""The exhaustive test of element functions: its operands, its references, and its record."""

from __future__ import annotations

import json
import re

import mpmath
import numpy as np
import pytest

from tilewright.codegen.llvm import emit_module
from tilewright.codegen.lower import lower_kernel
from tilewright.ir.dtype import DType, f32, i32, u32, u64
from tilewright.ir.loop.element_functions import FUNCTIONS
from tilewright.target.target import Target

from tests.codegen.functions import EXACT, UNARY, one_vector, program, reference
from tests.codegen.kernels import ALL_LEVELS, LEVELS
from tests.fuzz.exhaustive_math import (
    PARTS,
    RECORD,
    between_accesses,
    code_of,
    instructions,
    worst_of_part,
)
from tests.fuzz.math_operands import (
    CHUNK,
    EVEN,
    EVERY,
    ODD,
    PAIRS,
    POSITIVE,
    SWEPT,
    arity_of,
    exact_pairs,
    exact_unary,
    of_negative,
    of_result,
    pairs,
    patterns,
    structured,
    sum_rounded_to_odd,
)

RECORDED = json.loads(RECORD.read_text())


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_errors_are_within_the_bounds(name: str) -> None:
    row, bound = RECORDED[name], FUNCTIONS[name].ulps(f32)
    assert row["operands"] == (EVERY if name in SWEPT else 1 << 28)
    assert set(row["levels"]) == {"avx2", "avx512"}
    assert all(level["worst_ulp"] <= bound for level in row["levels"].values())


def test_every_function_of_floats_is_swept() -> None:
    accepted = {f for f in FUNCTIONS.values() if f.accepts(f32) and f.result_dtype(f32) == f32}
    assert {f.name for f in accepted} - {"floordiv"} == {*SWEPT, *PAIRS}


@pytest.mark.parametrize("op", [*SWEPT, *PAIRS])
def test_the_digest_covers_the_tested_instructions(op: str) -> None:
    """The loops that are tested execute the instructions that are digested, and others."""
    for level in LEVELS:
        target, alone = Target("cpu", features=(level,)), instructions(op, level)
        assert 1 <= len(alone) < 800
        assert not any(word in t for t in alone for word in ("ptr %p", "masked", "getelementptr"))
        kernel = lower_kernel(program(((op, f32),), f32, arity_of(op)), target)
        text = emit_module([kernel.function], target)
        assert between_accesses(text) == alone
        assert len(text.splitlines()) > len(alone) + 40


def test_the_digest_changes_with_a_constant_only() -> None:
    target = Target("cpu", features=(LEVELS[0],))
    text = emit_module([lower_kernel(program((("exp", f32),), f32), target).function], target)
    alone = between_accesses(text)
    assert between_accesses(text.replace("%v", "%value").replace("align 4", "align 8")) == alone
    assert between_accesses(text.replace("%p3", "%p3, i64 %p4", 1)) == alone
    assert between_accesses(text.replace("0x3FE62E4000000000", "0x3FE62E4020000000")) == alone
    assert between_accesses(text.replace("0xBFE62E4000000000", "0xBFE62E4020000000")) != alone
    assert between_accesses(text.replace("= fsub <", "= fadd <")) != alone


@pytest.mark.parametrize("op", RECORDED)
def test_recorded_instructions_are_the_present_ones(op: str) -> None:
    """After a change of a function, ``make math`` tests and records it again."""
    recorded = {level: row["code"] for level, row in RECORDED[op]["levels"].items()}
    present = code_of(op)
    assert {level: recorded[level] for level in present} == present


def test_patterns_are_all_numbers_of_a_range() -> None:
    chunks = list(patterns(0, 4 * CHUNK))
    bits = np.concatenate([c.view(np.uint32) for c in chunks])
    np.testing.assert_array_equal(bits, np.arange(4 * CHUNK))
    assert POSITIVE % (PARTS * CHUNK) == 0
    assert len({*structured().view(np.uint32).tolist()}) == 4096


def test_errors_are_counted_in_ulp() -> None:
    exact = np.array([1.0, 1.5, np.nan, np.inf, 0.0])
    assert of_result(exact.astype(np.float32), exact) == (0.0, 0)
    found = exact.astype(np.float32)
    found[1] = np.nextafter(found[1], np.float32(2))
    assert of_result(found, exact) == (1.0, 1)
    for at, wrong in ((2, 0.0), (3, 3e38), (4, -0.0), (0, np.nan)):
        found = exact.astype(np.float32)
        found[at] = wrong
        assert of_result(found, exact) == (np.inf, at)
    found = np.array([-0.0], np.float32)
    assert of_result(found, np.zeros(1), either_zero=True) == (0.0, 0)


def test_a_sum_rounded_to_odd_avoids_a_second_rounding() -> None:
    tie, tiny = np.array([1 + 2.0**-24]), np.array([2.0**-80])
    assert np.float32(tie + tiny)[0] == 1
    assert np.float32(sum_rounded_to_odd(tie, tiny))[0] == np.float32(1 + 2.0**-23)
    assert np.float32(sum_rounded_to_odd(tie, -tiny))[0] == 1


@pytest.mark.parametrize("op", [*ODD, *EVEN])
def test_results_at_negative_operands_follow_from_the_symmetry(op: str) -> None:
    bits = np.random.default_rng(1).integers(0, POSITIVE, 3000, dtype=np.uint32)
    x = np.concatenate([bits.view(np.float32), np.linspace(0, 4, 1001, dtype=np.float32)])
    np.testing.assert_array_max_ulp(of_negative(op, x, exact_unary(op, x)), exact_unary(op, -x), 1)
    zero = np.zeros(1, np.float32)
    found, exact = of_negative(op, zero, exact_unary(op, zero)), exact_unary(op, -zero)
    assert np.signbit(found) == np.signbit(exact)


def test_negation_yields_the_patterns_with_a_sign() -> None:
    x = np.array([0, 1, 0x7F800000, 0x7F800001, 0x7FFFFFFF], np.uint32)
    np.testing.assert_array_equal((-x.view(np.float32)).view(np.uint32), x + POSITIVE)


@pytest.mark.parametrize("op", UNARY)
def test_references_are_exact_enough(op: str) -> None:
    """The float64 references have errors far below a unit in single precision."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, EVERY, 300, dtype=np.uint32).view(np.float32)
    x = np.concatenate([bits, rng.normal(0, 3, 300).astype(np.float32)]).astype(np.float64)
    x = np.concatenate([x, 1 + rng.normal(0, 1e-5, 20), 2 + rng.normal(0, 1e-5, 20)])
    x = x.astype(np.float32).astype(np.float64)
    for a, b in zip(x.tolist(), reference(op, x).tolist(), strict=True):
        if np.isfinite(a) and np.isfinite(b) and 1e-30 < abs(b) < 1e30:
            with mpmath.workprec(500):
                exact = EXACT[op](mpmath.mpf(a))
                assert abs(mpmath.mpf(b) - exact) <= 1e-9 * abs(exact), (a, b)


@pytest.mark.parametrize("op", ["exp2", "fma"])
def test_a_part_is_within_the_bound(op: str) -> None:
    worst, _ = worst_of_part(op, 3, LEVELS, 1 << (10 if op == "exp2" else 7))
    assert all(error <= FUNCTIONS[op].ulps(f32) for error, _ in worst.values())


@pytest.mark.parametrize("op", ["fma", "mod", "ldexp", "nextafter"])
def test_pairs_have_exact_results(op: str) -> None:
    operands = tuple(x[:: CHUNK // 64] for x in next(pairs(op, 700, 701)))
    with np.errstate(all="ignore"):
        expected = np.array([FUNCTIONS[op].reference(*row) for row in zip(*operands, strict=True)])
        assert of_result(exact_pairs(op, operands).astype(np.float32), expected) == (0.0, 0)


ONE_ELEMENT = re.compile(
    r"= (?:call )?(?:nsz )?(?:f\w+|add|sub|mul|select|and|or|xor|shl|lshr|ashr|icmp \w+) "
    r"(?:float|double|i8|i16|i32|i64)\b"
)
INTEGERS = [
    (f.name, dtype) for f in FUNCTIONS.values() for dtype in (i32, u32, u64)
    if f.accepts(dtype) and f.name in ("popcount", "clz", "ctz", "random_bits")
]  # fmt: skip


@pytest.mark.parametrize(("op", "dtype"), [*((op, f32) for op in (*SWEPT, *PAIRS)), *INTEGERS])
def test_functions_compute_with_vectors(op: str, dtype: DType) -> None:
    arity = FUNCTIONS[op].arity if dtype != f32 else arity_of(op)
    for level in ALL_LEVELS:
        target = Target("cpu", features=(level,))
        kernel = lower_kernel(one_vector(op, dtype, arity), target)
        made = between_accesses(emit_module([kernel.function], target))
        assert any("<16 x " in line for line in made)
        assert [line for line in made if ONE_ELEMENT.search(line)] == []


def test_the_exact_remainder_of_an_infinity_is_not_a_number() -> None:
    inf = np.float32(np.inf)
    x, y = np.array([inf, -inf, 1, -1, 5]), np.array([inf, inf, inf, inf, -inf])
    found = exact_pairs("mod", (x.astype(np.float32), y.astype(np.float32)))
    np.testing.assert_array_equal(found, [np.nan, np.nan, 1, inf, -inf])
