"""Integer terms that may not fit into 64 bits."""

from __future__ import annotations

from tilewright.ir.analysis.widths import magnitude, wide_terms
from tilewright.ir.symbolic import maximum, select, var

from tests.ir.script.texts import unverified


def terms(element: str) -> list[str]:
    text = f"""
n = symbols("n", lower=0)
a, b = symbols("a b")
@prim_func
def f(a: Int, b: Int, x: Buffer[(n,), f32], y: Out[(8,), f32]):
    for i in range(8):
        y[i] = {element}
"""
    return [str(t) for t in wide_terms(unverified(text).prim("f"))]


def test_terms_with_integer_parameters_are_listed_with_bounds_of_loops() -> None:
    assert terms("x[(i + a * b) % n]") == ["a * b + 7"]
    assert terms("where(condition(a * 4 < i), 0.0, 1.0)") != []


def test_the_terms_that_a_selection_compares_are_listed() -> None:
    assert terms("f32(index(select(a * i < b, i, 3), i64))") == ["a * 7 + b + 1"]


def test_dimensions_and_plain_parameters_are_not_listed() -> None:
    assert terms("x[(i * n + 3) % n]") == []
    assert terms("f32(index(a, i64))") == []


def test_long_constants_and_products_of_dimensions_are_listed() -> None:
    assert terms("x[min(i * 4611686018427387904, n - 1)]") != []
    assert terms("x[min(n * n * n * i, n - 1)]") == ["n * n * n * 7 + n + 1"]
    assert terms("x[(i * 1103515245 + 12345) % n]") == []


def test_constants_that_do_not_fit_into_64_bits_are_listed() -> None:
    assert terms("f32(index(9223372036854775808, i64))") == ["9223372036854775808"]
    assert terms("f32(index(9223372036854775807, i64))") == []


def test_a_bound_does_not_hide_a_large_operand() -> None:
    assert terms("x[min(max(7 - i, 0) * 4611686018427387904, n - 1)]") != []
    assert terms("x[(i * 4611686018427387904) // 9223372036854775807 % n]") == [
        "32281802128991715328"
    ]


def test_the_tiles_of_two_dimensions_are_not_listed() -> None:
    assert terms("x[((i + n * n) // 256 * 256 + (i + n * n) % 256) % n]") == []


def test_magnitudes_bound_all_subterms() -> None:
    a, b = var("a"), var("b")
    values = {a: -(2**40), b: 3}
    assert magnitude(a * b + 5, values) == 3 * 2**40 + 5
    assert magnitude((a * b) // b % 7, values) >= 2**40
    assert magnitude(select(a * a * b < 5, a, b), values) >= 3 * 2**80
    assert magnitude(maximum(a, b), values) == 2**40 + 3
    assert magnitude(select(a > 0, a, b), values) == 2**40 + 3
