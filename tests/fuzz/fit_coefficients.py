"""Coefficients of the polynomials in codegen/lower/math: fits at Chebyshev nodes, in 120 digits.

``python -m tests.fuzz.fit_coefficients [NAME ...]`` prints the tables of these names, or all.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import mpmath
import numpy as np
from mpmath import mp, mpf

mp.dps = 120
Function = Callable[[mpf], mpf]


def nodes(low: mpf, high: mpf, count: int) -> list[mpf]:
    """Return the Chebyshev nodes, which are close to the zeros of the best fit's error."""
    middle, half = (low + high) / 2, (high - low) / 2
    return [middle + half * mp.cos(mp.pi * (2 * k + 1) / (2 * count)) for k in range(count)]


def fit(f: Function, low: float, high: float, degree: int) -> list[mpf]:
    """Return the coefficients of the polynomial through the nodes, lowest power first."""
    at = nodes(mpf(low), mpf(high), degree + 1)
    matrix = mp.matrix([[x**k for k in range(degree + 1)] for x in at])
    return list(mp.lu_solve(matrix, mp.matrix([f(x) for x in at])))


def exp_tail(r: mpf) -> mpf:
    """``(exp(r) - 1 - r) / r**2``."""
    return (mp.expm1(r) - r) / r**2 if abs(r) > 1e-15 else mpf(1) / 2 + r / 6


def binary_exp_ratio(r: mpf) -> mpf:
    """``(2**r - 1) / r``."""
    return mp.expm1(r * mp.log(2)) / r if r else mp.log(2)


def log_tail(z: mpf) -> mpf:
    """``(2 atanh(s) / s - 2) / z`` with ``z = s**2``."""
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) / s - 2) / z


def odd_tail(f: Function) -> Function:
    """``(f(x) / x - 1) / x**2`` as a function of ``x**2``."""

    def tail(z: mpf) -> mpf:
        x = mp.sqrt(z)
        return (f(x) / x - 1) / z

    return tail


def cos_tail(z: mpf) -> mpf:
    """``(cos(r) - 1 + r**2 / 2) / r**4`` as a function of ``r**2``."""
    return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2 if z > 1e-25 else mpf(1) / 24


def erf_ratio(z: mpf) -> mpf:
    """``erf(x) / x - 1`` as a function of ``x**2``."""
    x = mp.sqrt(z)
    return mp.erf(x) / x - 1


def erfc_binary_log(t: mpf) -> mpf:
    """``log2(erfc(t))``."""
    return mp.log(mp.erfc(t), 2)


def erfc_scaled(u: mpf) -> mpf:
    """``exp(t**2) erfc(t) (t + 2)`` with ``u = (t - 2) / (t + 2)``."""
    t = 2 * (1 + u) / (1 - u)
    return mp.exp(t * t) * mp.erfc(t) * (t + 2)


def erf_inverse_ratio(w: mpf) -> mpf:
    """``erfinv(x) / x`` with ``w = -log(1 - x**2)``."""
    x = mp.sqrt(-mp.expm1(-w))
    return mp.erfinv(x) / x if x else mp.sqrt(mp.pi) / 2


def around(f: Function, center: float) -> Function:
    """``f`` as a function of the distance from a center."""
    return lambda u: f(u + center)


def log_gamma_ratio(t: mpf) -> mpf:
    """``log(gamma(2 + t)) / t``."""
    return mp.loggamma(2 + t) / t if abs(t) > 1e-60 else mp.digamma(2)


def stirling(z: mpf) -> mpf:
    """The rest of Stirling's formula times ``x``, with ``z = 1 / x**2``."""
    x = 1 / mp.sqrt(z)
    return (mp.loggamma(x) - (x - 0.5) * mp.log(x) + x - mp.log(2 * mp.pi) / 2) * x


DIGAMMA_ROOT = mp.findroot(mp.digamma, 1.4616)


def digamma_ratio(u: mpf) -> mpf:
    """``digamma(x) / (x - root)`` with ``x = u + 1.5``."""
    return mp.digamma(u + 1.5) / (u + 1.5 - DIGAMMA_ROOT)


def digamma_rest(z: mpf) -> mpf:
    """``(log(x) - 1 / (2 x) - digamma(x)) x**2`` with ``z = 1 / x**2``."""
    x = 1 / mp.sqrt(z)
    return (mp.log(x) - 1 / (2 * x) - mp.digamma(x)) * x * x


LN2 = float(mp.log(2))
TABLES: dict[str, tuple[Function, float, float, int, int]] = {
    # name: function, from, to, degree in f32, degree in f64
    "EXP": (exp_tail, -LN2 / 2 * 1.001, LN2 / 2 * 1.001, 4, 9),
    "LOG": (log_tail, 1e-30, 0.02945, 3, 7),
    "TANH": (odd_tail(mp.tanh), 1e-30, 0.625**2, 4, 12),
    "ERF": (erf_ratio, 1e-30, 0.86, 5, 14),
    "SIN": (odd_tail(mp.sin), 1e-30, 0.6170, 2, 6),
    "COS": (cos_tail, 1e-30, 0.6170, 2, 6),
    "ATAN": (odd_tail(mp.atan), 1e-30, 0.1716, 5, 13),
    "SINH": (odd_tail(mp.sinh), 1e-30, 1.0, 3, 7),
    "ASIN": (odd_tail(mp.asin), 1e-30, 0.25, 5, 13),
    "ERFC_WIDE": (erfc_scaled, -0.6, 0.87, 10, 24),
    "ERFINV_CENTRAL": (around(erf_inverse_ratio, 3.125), -3.125, 3.125, 11, 25),
    "ERFINV_MIDDLE": (around(lambda s: erf_inverse_ratio(s * s), 3.25), -0.75, 0.85, 9, 23),
}
SINGLE_ONLY = {
    "ERFC_BINARY_LOG": (erfc_binary_log, 0.92, 3.95, 8),
    "BINARY_EXP": (binary_exp_ratio, -0.5005, 0.5005, 4),
}
DOUBLE_ONLY = {
    "ERFC": (erfc_scaled, -0.4, 0.54, 22),
    "ERFINV_TAIL": (around(lambda s: erf_inverse_ratio(s * s), 5), -1.0, 1.1, 21),
    "LGAMMA": (log_gamma_ratio, -0.5, 0.5, 20),
    "STIRLING": (stirling, 1e-30, 1 / 64, 7),
    "DIGAMMA": (digamma_ratio, -0.5, 0.5, 22),
    "DIGAMMA_REST": (digamma_rest, 1e-30, 1 / 64, 7),
}


def show(name: str, values: list[mpf], single: bool) -> None:
    literals = [repr(float(np.float32(float(v))) if single else float(v)) for v in values]
    print(f"{name}: tuple[float, ...] = (\n    " + ",\n    ".join(literals) + ",\n)")


def worst(f: Function, values: list[mpf], low: float, high: float) -> mpf:
    points = [low + (high - low) * k / 300 for k in range(301)]
    return max(abs(mp.polyval(values[::-1], mpf(x)) - f(mpf(x))) for x in points)


def main(names: list[str]) -> None:
    """Print the tables of these names, by default all."""
    chosen = {k: v for k, v in TABLES.items() if not names or k in names}
    for name, (f, low, high, single, double) in chosen.items():
        for suffix, degree in (("32", single), ("64", double)):
            values = fit(f, low, high, degree)
            print(f"# error {mpmath.nstr(worst(f, values, low, high), 3)} on [{low}, {high}]")
            show(name + suffix, values, suffix == "32")
    for tables, single in ((SINGLE_ONLY, True), (DOUBLE_ONLY, False)):
        for name, (f, low, high, degree) in tables.items():
            if names and name not in names:
                continue
            values = fit(f, low, high, degree)
            print(f"# error {mpmath.nstr(worst(f, values, low, high), 3)} on [{low}, {high}]")
            show(name + ("32" if single else "64"), values, single)


if __name__ == "__main__":
    main(sys.argv[1:])
