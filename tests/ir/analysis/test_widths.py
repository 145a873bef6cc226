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


def test_terms_with_integer_parameters_are_listed_at_their_extremes() -> None:
    assert terms("x[(i + a * b) % n]") == ["(a * b + 7) % n"]
    assert terms("where(condition(a * 4 < i), 0.0, 1.0)") != []


def test_dimensions_and_plain_parameters_are_not_listed() -> None:
    assert terms("x[(i * n + 3) % n]") == []
    assert terms("f32(index(a, i64))") == []


def test_magnitudes_bound_all_subterms() -> None:
    a, b = var("a"), var("b")
    values = {a: -(2**40), b: 3}
    assert magnitude(a * b + 5, values) == 3 * 2**40 + 5
    assert magnitude((a * b) // b % 7, values) >= 2**40
    assert magnitude(maximum(a, b), values) == 2**40 + 3
    assert magnitude(select(a > 0, a, b), values) == 2**40 + 3
