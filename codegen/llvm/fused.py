"""Emulation of a fused multiply-add by error-free transformations."""

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


def multiply_add_once(em: Emitter, a: str, b: str, c: str, lanes: int) -> str:
    """Emit ``a * b + c`` in single precision, rounded once.

    The product is exact in double precision, and the sum is rounded to odd, so that the second
    rounding is correct.

    References
    ----------
    S. Boldo and G. Melquiond, Emulation of a FMA and Correctly-Rounded Sums, 2008.
    """
    double, single, bit = (vector(t, lanes) for t in ("double", "float", "i1"))
    words, zero = vector("i64", lanes), splat("0.0", "double", lanes)
    x, y, z = (em.op(f"fpext {single} {v} to {double}") for v in (a, b, c))
    product = em.op(f"fmul {double} {x}, {y}")
    total = em.op(f"fadd {double} {product}, {z}")
    added = em.op(f"fsub {double} {total}, {product}")
    kept = em.op(f"fsub {double} {total}, {added}")
    first = em.op(f"fsub {double} {product}, {kept}")
    second = em.op(f"fsub {double} {z}, {added}")
    error = em.op(f"fadd {double} {first}, {second}")
    inexact = em.op(f"fcmp one {double} {error}, {zero}")
    grows = em.op(f"fcmp ogt {double} {error}, {zero}")
    positive = em.op(f"fcmp ogt {double} {total}, {zero}")
    inward = em.op(f"xor {bit} {grows}, {positive}")
    minus, one = (splat(k, "i64", lanes) for k in ("-1", "1"))
    step = em.op(f"select {bit} {inward}, {words} {minus}, {words} {one}")
    bits = em.op(f"bitcast {double} {total} to {words}")
    last = em.op(f"and {words} {bits}, {one}")
    even = em.op(f"icmp eq {words} {last}, {splat('0', 'i64', lanes)}")
    moves = em.op(f"and {bit} {inexact}, {even}")
    moved = em.op(f"add {words} {bits}, {step}")
    odd = em.op(f"select {bit} {moves}, {words} {moved}, {words} {bits}")
    rounded = em.op(f"bitcast {words} {odd} to {double}")
    return em.op(f"fptrunc {double} {rounded} to {single}")


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
