"""Chebyshev coefficients of the special functions that PyTorch programs use, in 60 digits.

``python -m tests.fuzz.fit_special`` prints the table of ``ir/importers/special_coefficients.py``.
Each function is smooth in its variable on its interval, so that interpolation at Chebyshev nodes
is accurate to rounding; the degree is the least one whose next coefficients are negligible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import mpmath as mp

if TYPE_CHECKING:
    from collections.abc import Callable

TINY: Final = 1e-17
"""Coefficients below this fraction of the largest one are omitted."""


def coefficients(f: Callable[[mp.mpf], mp.mpf], low: float, high: float) -> list[float]:
    """Return the coefficients of a function on an interval."""
    count = 48
    angles = [mp.pi * (k + mp.mpf(1) / 2) / count for k in range(count)]
    middle, half = (mp.mpf(high) + low) / 2, (mp.mpf(high) - low) / 2
    values = [f(middle + half * mp.cos(a)) for a in angles]
    found = [
        mp.fsum(v * mp.cos(j * a) for v, a in zip(values, angles, strict=True)) * 2 / count
        for j in range(count)
    ]
    found[0] /= 2
    largest = max(map(abs, found))
    while abs(found[-1]) < TINY * largest:
        found.pop()
    return [float(c) for c in found]


def _phase(x: mp.mpf, order: int) -> tuple[mp.mpf, mp.mpf]:
    """Return the factors of the cosine and the sine in the form of ``J`` for large numbers."""
    angle = x - mp.pi / 4 - order * mp.pi / 2
    j, y, root = mp.besselj(order, x), mp.bessely(order, x), mp.sqrt(mp.pi * x / 2)
    cosine, sine = mp.cos(angle), mp.sin(angle)
    return root * (j * cosine + y * sine), root * (y * cosine - j * sine) * x


def _of_square(f: Callable[[mp.mpf], mp.mpf]) -> Callable[[mp.mpf], mp.mpf]:
    return lambda s: f(mp.sqrt(s))


def _of_inverse(f: Callable[[mp.mpf], mp.mpf]) -> Callable[[mp.mpf], mp.mpf]:
    return lambda u: f(1 / u)


def _erfcx(x: mp.mpf) -> mp.mpf:
    """Return the scaled complementary error function times ``1 + 2 x``."""
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def _quantile(z: mp.mpf) -> mp.mpf:
    """Return ``z`` plus the quantile of the probability ``exp(-z * z / 2)``."""
    p = mp.exp(-z * z / 2)
    x = mp.findroot(lambda y: mp.log(mp.erfc(-y / mp.sqrt(2)) / 2) - mp.log(p), -z + mp.log(z) / z)
    return z + x


FITS: Final = {
    "I0_NEAR": (lambda x: mp.exp(-x) * mp.besseli(0, x), 0, 8),
    "I0_FAR": (_of_inverse(lambda x: mp.exp(-x) * mp.besseli(0, x) * mp.sqrt(x)), 0, 0.125),
    "I1_NEAR": (lambda x: mp.exp(-x) * mp.besseli(1, x) / x, 0, 8),
    "I1_FAR": (_of_inverse(lambda x: mp.exp(-x) * mp.besseli(1, x) * mp.sqrt(x)), 0, 0.125),
    "K0_NEAR": (_of_square(lambda x: mp.besselk(0, x) + mp.log(x) * mp.besseli(0, x)), 0, 4),
    "K0_FAR": (_of_inverse(lambda x: mp.exp(x) * mp.besselk(0, x) * mp.sqrt(x)), 0, 0.5),
    "K1_NEAR": (
        _of_square(lambda x: (mp.besselk(1, x) - mp.log(x) * mp.besseli(1, x) - 1 / x) / x), 0, 4,
    ),
    "K1_FAR": (_of_inverse(lambda x: mp.exp(x) * mp.besselk(1, x) * mp.sqrt(x)), 0, 0.5),
    "J0_NEAR": (_of_square(lambda x: mp.besselj(0, x)), 0, 64),
    "J1_NEAR": (_of_square(lambda x: mp.besselj(1, x) / x), 0, 64),
    "Y0_NEAR": (
        _of_square(lambda x: mp.bessely(0, x) - 2 / mp.pi * mp.log(x) * mp.besselj(0, x)), 0, 64,
    ),
    "Y1_NEAR": (
        _of_square(
            lambda x: (mp.bessely(1, x) - 2 / mp.pi * (mp.log(x) * mp.besselj(1, x) - 1 / x)) / x
        ), 0, 64,
    ),
    **{
        f"{name}{order}_FAR": (
            lambda s, order=order, part=part: _phase(1 / mp.sqrt(s), order)[part], 0, 1 / 64,
        )
        for order in (0, 1)
        for part, name in enumerate(("COSINE", "SINE"))
    },
    "ERFCX": (
        lambda t: _erfcx(mp.mpf("3.75") * (1 + t) / (1 - t)), -1, 1,
    ),
    "QUANTILE_NEAR": (_quantile, 1.5, 5),
    "QUANTILE_FAR": (_quantile, 5, 39),
}  # fmt: skip


def table() -> str:
    """Return the text of the module of the coefficients."""
    lines = [
        '"""Chebyshev coefficients of special functions: output of ``tests.fuzz.fit_special``."""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import Final",
    ]
    with mp.workdps(60):
        for name, (f, low, high) in FITS.items():
            numbers = ", ".join(repr(c) for c in coefficients(f, low, high))
            lines += ["", f"{name}: Final = ({float(low)!r}, {float(high)!r}, ({numbers}))"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")
