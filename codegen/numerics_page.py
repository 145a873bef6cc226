"""The page ``docs/numerics.md``: error bounds, and deviations from NumPy and PyTorch.

``python -m tilewright.codegen.numerics_page > docs/numerics.md`` writes the committed page.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ..ir.dtype import DTYPES, DType, bf16, f16, f32, f64
from ..ir.graph.operators import OPERATORS
from ..ir.graph.operators.binary import BinaryOperator
from ..ir.graph.operators.unary import UnaryOperator
from ..ir.loop.element_functions import COMPLEX_UNITS, FUNCTIONS, ElementFunction
from .lower.passes.sum_in_blocks import CONTRACTION_TERMS, SUM_TERMS
from .lower.to_thread.lane_scans import BLOCK_VECTORS

FLOATS: Final = (f64, f32, f16, bf16)


@dataclass(frozen=True, slots=True)
class OperatorBound:
    """The bound of the error of a group of operators.

    Parameters
    ----------
    operators : tuple of str
        The names of the operators.
    bound : str
        The bound of the absolute error, as text.
    """

    operators: tuple[str, ...]
    bound: str


OPERATOR_BOUNDS: Final = (
    OperatorBound(("sum", "mean"), "(d + 2) u S, with S the sum (mean) of absolute values"),
    OperatorBound(("matmul",), "(c + 2) u S, with S the sum of the absolute values of products"),
    OperatorBound(
        ("grouped_matmul",), "(k + 1) u S for k terms, with S the sum of their absolute values"
    ),
    OperatorBound(
        ("conv", "conv_transpose"),
        "(n + 2) u S for n products, with S the sum of their absolute values",
    ),
    OperatorBound(
        ("avg_pool", "adaptive_avg_pool"),
        "(n + 2) u S for n elements, with S the mean of absolute values",
    ),
    OperatorBound(("cumsum",), "k u S for element k, with S the sum of absolute values so far"),
    OperatorBound(("cumprod",), "k u P for element k, with P its exact value"),
    OperatorBound(
        ("logcumsumexp",),
        "(8 k + 4 + R) u + 2 u abs(y) for element k, with R the range of the elements so far",
    ),
    OperatorBound(
        ("index_add", "scatter_add"),
        "(k + 1) u S for k updates of an element, with S the sum of absolute values",
    ),
    OperatorBound(
        ("scatter_reduce",),
        "(k + 2) u S for k updates of an element, with S the sum, mean, or product of absolute "
        "values; `max` and `min` are exact",
    ),
    OperatorBound(
        ("dft",),
        "(4 n + 4) u S for n elements, with S the sum of the absolute values of the elements",
    ),
    OperatorBound(("prod",), "n u P, with P the exact result"),
    OperatorBound(("silu",), "3 ulp"),
    OperatorBound(("gelu",), "4 u abs(x)"),
    OperatorBound(("power",), "as `pow`; exponents 2, 0.5, and -0.5 as `mul`, `sqrt`, and `rsqrt`"),
    OperatorBound(("softmax",), "(d + 10 + 2 R) u y, with R = max(x) - x"),
    OperatorBound(("log_softmax",), "(d + 10) u + 2 u (R + abs(y)), with R = max(x) - x"),
    OperatorBound(
        ("layer_norm", "rms_norm"),
        "(d + 10) u (M + abs(b)), with M = max(abs(x)) / root * abs(w)",
    ),
    OperatorBound(
        ("quantize_linear",), "(1/2 + u abs(q)) scale within the range, with q the quotient"
    ),
    OperatorBound(("dequantize_linear",), "2 u abs(y)"),
)
"""The bounds of operators that compute more than one element function."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """A result that differs from that of NumPy or PyTorch.

    Parameters
    ----------
    operation : str
        The operation and its operands.
    result : str
        The result of Tilewright.
    numpy : str
        The result of NumPy.
    pytorch : str
        The result of PyTorch.
    """

    operation: str
    result: str
    numpy: str
    pytorch: str


DEVIATIONS: Final = (
    Deviation(
        "cast of a float outside of the range of an integer dtype",
        "the nearest integer of the dtype; 0 for NaN",
        "undefined",
        "undefined",
    ),
    Deviation("division and remainder of integers by 0", "0", "0 and a warning", "error"),
    Deviation(
        "negative power of an integer", "0", "error", "0, but 1 and -1 for the bases 1 and -1"
    ),
    Deviation(
        "`floor_divide` of floats whose quotient exceeds the precision",
        "the exact floor, rounded once",
        "rounded twice",
        "rounded twice",
    ),
    Deviation("`mod` of floats that is 0", "sign of the divisor", "the same", "sign of x"),
    Deviation("`sign` of NaN", "NaN (0 in programs imported from PyTorch)", "NaN", "0"),
    Deviation("`unique` of several NaN", "one NaN", "the same", "each NaN"),
    Deviation(
        "`sort`, `argsort`, `topk`, `unique`, and `nonzero` on CUDA",
        "an error by name: library functions run on the host",
        "",
        "supported",
    ),
    Deviation("`max` and `min` of an empty domain", "the identity: -inf and inf", "error", "error"),
    Deviation("`maximum` and `minimum` of +0 and -0", "a zero of either sign", "either", "either"),
    Deviation(
        "a number as operand of a 16-bit tensor",
        "rounded to the dtype of the tensor",
        "the same",
        "float32 on some devices",
    ),
    Deviation(
        "`x * y + z` of float32 and float64 in one kernel",
        "one rounding (fused multiply-add)",
        "two roundings",
        "two roundings",
    ),
    Deviation(
        "`linear` of 16-bit tensors",
        "the product and the sum are rounded",
        "",
        "rounded once on some devices",
    ),
    Deviation(
        "quotient of complex numbers near the largest or the smallest floats",
        "the quotient",
        "infinite, NaN, or 0 for some of them",
        "infinite, NaN, or 0 for some of them",
    ),
    Deviation(
        "`sigmoid` of float32 below -88.7",
        "the subnormal result",
        "",
        "0: `exp(-x)` overflows",
    ),
    Deviation(
        "`gelu` of infinity and of the largest floats",
        "infinity and x",
        "",
        "NaN and infinity where oneDNN computes it, on processors",
    ),
    Deviation(
        "`var` and `std` imported from PyTorch if the sum of the elements overflows",
        "infinity: the mean is the sum divided by the number",
        "the same",
        "the same, or the variance: the algorithm depends on the shape",
    ),
    Deviation(
        "`sin`, `cos`, `sinh`, and `cosh` of complex numbers if one part of the result is NaN",
        "a zero or infinite other part of either sign",
        "either",
        "either",
    ),
    Deviation(
        "`pow` of complex numbers with an infinite or NaN part",
        "`exp(y * log(x))`: NaN where an intermediate result is NaN",
        "0, infinite, or NaN",
        "NaN for most of them",
    ),
)
"""The deviations; a test runs each of them."""

_HEAD: Final = f"""# Numerics

Generated by `python -m tilewright.codegen.numerics_page`: do not edit.

All results are deterministic: they depend on shapes, schedule, and target, not on the number of
threads. Targets and feature levels may differ within the bounds below. There are no fast-math
transformations, except that a product and a sum of float32 or float64 may become a fused
multiply-add, and that declared reductions may be reassociated.

**16-bit floats.** Each operator of the graph, including compounds such as `gelu` and running
reductions such as `cumsum`, computes in float32 and rounds its result once. Fusion keeps this
rounding at operator boundaries, so a fused kernel has the bits of its operators.

**Sums.** A declared reduction with a private accumulator adds at most {SUM_TERMS} terms in sequence
({CONTRACTION_TERMS:,} products in contractions), then adds the partial sums by the same rule. So
the error grows with the logarithm of the number of terms. Accumulation into a buffer that the
program can read keeps its order.

**Running sums.** A running sum of floats along adjacent elements combines the L lanes of a vector
as a tree, and carries the sums of at most {BLOCK_VECTORS} vectors in sequence; blocks of vectors
are added in order. So a term of element k passes through at most
log2(L) + {BLOCK_VECTORS + 2} + k / ({BLOCK_VECTORS} L) additions, and one more per 16,384 elements
if one row is divided among threads. Running sums across rows add in order.

## Element functions

The largest distance from the exact result, in units in the last place (ulp) of the rounded result,
over the whole range of the dtype. 0.5 is a correctly rounded result. Functions keep the sign of
zero, overflow to infinity, and return subnormal results. Outside of the domain, the result is NaN,
or infinite at a pole. `make math` tests the bounds of f32 with all numbers, and those of functions
of several operands with 2**28 structured and random operands; `tests/fuzz/exhaustive_math.json`
records the largest errors found. The bounds of f64 are tested with samples, beside roots, poles,
and the numbers where formulas change.
"""

_NOTES: Final = """
Restrictions of the bounds:
"""

_EXACT: Final = """
Functions of integers and bools are exact. Functions that are defined for floats too are in the
table above. `random_bits(counter, key)` is element `counter` of the stream of Philox 4x32-10 for a
key: block `k` of the stream has the counter `(k, 0)` and 128 bits.
"""

_COMPLEX: Final = """
## Complex numbers

The bounds of the parts of complex results are absolute: in unit roundoffs u of the dtype of the
parts, with x = a + bi and y = c + di. Products are not contracted to fused multiply-add, so `mul`
and `div` have the same bits on all targets. Infinities, NaN, and the signs of zeros are those of
the scalar functions of NumPy, but for the deviations below. Branch cuts are those of NumPy: the
sign of a zero selects the side of a cut. Complex sums have the bounds of `sum` and `matmul`
for each part, with 2 u S more for `matmul`; `prod` of n numbers has 3 n u P.
"""

COMPLEX_BOUNDS: Final = (
    ("`neg`, `conj`, `real`, `imag`, `complex`", "exact", "all"),
    ("`add`, `sub`", "0.5 ulp of each part", "all"),
    ("`mul`", "2 u (abs(a c) + abs(b d)), and 2 u (abs(a d) + abs(b c))", "no part overflows"),
    ("`div`", "8 u abs(x / y)", "all y but 0; overflows or vanishes only if the result does"),
    ("`exp`", "12 u of each part", "overflows only if the result does"),
    (
        "`log`, `sqrt`, `sin`, `cos`, `tan`, `asin`, `acos`, `atan`, and the hyperbolic functions",
        f"{COMPLEX_UNITS} u abs(y)",
        "all but poles; overflows only if the result does",
    ),
    (
        "`pow`",
        "4 (1 + abs(y log(x))) u abs(x ** y); as products for constant integers up to 100",
        "finite operands, as `exp(y * log(x))`",
    ),
    ("`abs`", "as `hypot`", "overflows only if the result does"),
    ("`angle`", "as `atan2`", "all"),
)
"""The bounds of functions of complex numbers, as text; tests measure them."""

_OPERATORS: Final = f"""
## Operators

An operator that applies one element function has the bound of this function; operators that move
elements, select, or compare are exact. The bounds of the others are stated in unit roundoffs u of
float32 for 16-bit floats (with one more rounding of the result) and of the dtype otherwise. With n
terms, d is the number of additions that a term passes through, at most {SUM_TERMS} per level of
blocks, and c is the same number for contractions, at most {CONTRACTION_TERMS:,} per level; 2 to 6
additions join the lanes.
"""

_DEVIATIONS: Final = """
## Deviations from NumPy and PyTorch

Every other result equals the result of NumPy or PyTorch within the bounds above.
"""


def bound_text(function: ElementFunction, dtype: DType) -> str:
    """Return the bound of an element function for a dtype as text."""
    if not function.accepts(dtype):
        return "-"
    ulps = function.ulps(dtype)
    return "exact" if ulps == 0 else f"{ulps:g}"


def operators_of(function: ElementFunction) -> str:
    """Return the operators that apply an element function alone."""
    found = [
        name
        for name, operator in OPERATORS.items()
        if (isinstance(operator, UnaryOperator) and operator.function is function)
        or (isinstance(operator, BinaryOperator) and operator.function is function)
    ]
    return ", ".join(f"`{name}`" for name in found)


def _dtypes(function: ElementFunction) -> str:
    """Return the dtypes that an exact function is defined for."""
    return ", ".join(name for name, dtype in DTYPES.items() if function.accepts(dtype))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def page() -> str:
    """Return the text of the page."""
    known = [f for f in FUNCTIONS.values() if f.operands not in ("complex", "part")]
    functions = [f for f in known if any(f.accepts(t) for t in FLOATS)]
    others = [f for f in known if f not in functions]
    rows = [
        (f"`{f.name}`", *(bound_text(f, t) for t in FLOATS), f.domain, operators_of(f))
        for f in functions
    ]
    notes = [f"- `{f.name}`, {f.note}" for f in functions if f.note]
    exact = [(f"`{f.name}`", _dtypes(f), operators_of(f)) for f in others]
    head = ("Function", *(t.name for t in FLOATS), "Domain", "Operators")
    operators = [
        (", ".join(f"`{name}`" for name in one.operators), one.bound) for one in OPERATOR_BOUNDS
    ]
    deviations = [(d.operation, d.result, d.numpy, d.pytorch) for d in DEVIATIONS]
    lines = [
        _HEAD,
        *_table(head, rows),
        _NOTES,
        *notes,
        _EXACT,
        *_table(("Function", "Dtypes", "Operators"), exact),
        _COMPLEX,
        *_table(("Functions", "Largest error", "Domain"), COMPLEX_BOUNDS),
        _OPERATORS,
        *_table(("Operators", "Largest absolute error"), operators),
        _DEVIATIONS,
        *_table(("Operation", "Tilewright", "NumPy", "PyTorch"), deviations),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
