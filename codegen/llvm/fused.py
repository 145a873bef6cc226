"""Emulation of a fused multiply-add in double precision by error-free transformations."""

from __future__ import annotations

from .emitter import Emitter
from .types import splat, vector

_HALF_OF_THE_BITS = "0x41A0000002000000"  # 2**27 + 1


def multiply_add(em: Emitter, a: str, b: str, c: str, lanes: int) -> str:
    """Emit ``a * b + c`` with an error below one unit in the last place, despite cancellation.

    Elementwise functions reduce their arguments by differences of nearly equal numbers, which
    cancel completely if the product is rounded first. The product is rounded first only if a factor
    exceeds ``2**996`` or the result is not finite.

    References
    ----------
    T. J. Dekker, A floating-point technique for extending the available precision, 1971.
    """
    double, bit = vector("double", lanes), vector("i1", lanes)
    product = em.op(f"fmul {double} {a}, {b}")
    lost = _error_of_product(em, (a, b), product, lanes)
    total = em.op(f"fadd {double} {product}, {c}")
    added = em.op(f"fsub {double} {total}, {product}")
    kept = em.op(f"fsub {double} {total}, {added}")
    first = em.op(f"fsub {double} {product}, {kept}")
    second = em.op(f"fsub {double} {c}, {added}")
    rounded = em.op(f"fadd {double} {first}, {second}")
    correction = em.op(f"fadd {double} {rounded}, {lost}")
    corrected = em.op(f"fadd {double} {total}, {correction}")
    # Adding a correction of zero would turn -0 into 0.
    needed = em.op(f"fcmp one {double} {correction}, {splat('0.0', 'double', lanes)}")
    number = em.op(f"fcmp ord {double} {corrected}, {corrected}")
    use = em.op(f"and {bit} {needed}, {number}")
    return em.op(f"select {bit} {use}, {double} {corrected}, {double} {total}")


def _error_of_product(em: Emitter, factors: tuple[str, str], product: str, lanes: int) -> str:
    double = vector("double", lanes)
    (a_high, a_low), (b_high, b_low) = (_halves(em, x, lanes) for x in factors)
    top = em.op(f"fmul {double} {a_high}, {b_high}")
    total = em.op(f"fsub {double} {top}, {product}")
    for x, y in ((a_high, b_low), (a_low, b_high), (a_low, b_low)):
        part = em.op(f"fmul {double} {x}, {y}")
        total = em.op(f"fadd {double} {total}, {part}")
    return total


def _halves(em: Emitter, x: str, lanes: int) -> tuple[str, str]:
    """Split a number into two with 26 bits each, whose products are exact."""
    double = vector("double", lanes)
    scaled = em.op(f"fmul {double} {x}, {splat(_HALF_OF_THE_BITS, 'double', lanes)}")
    rest = em.op(f"fsub {double} {scaled}, {x}")
    high = em.op(f"fsub {double} {scaled}, {rest}")
    return high, em.op(f"fsub {double} {x}, {high}")
