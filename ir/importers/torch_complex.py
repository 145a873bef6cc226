"""Import handlers of PyTorch operators on complex numbers."""

from __future__ import annotations

import math

from ..symbolic import as_expr
from .elementwise import convert, elementwise, where
from .tensors import Imported
from .torch_context import OperandLike, TorchContext, aten


@aten("real", "imag", "angle")
def part(t: TorchContext, x: Imported) -> Imported:
    """Import a part or the angle of numbers; the angle of a negative real number is pi."""
    if not x.dtype.is_complex:
        return x if t.operator == "real" else _real_angle(t, x)
    return elementwise(t, t.operator, [x])


def _real_angle(t: TorchContext, x: Imported) -> Imported:
    """Return the angle of real numbers; that of NaN is NaN."""
    value = convert(t, x, t.result_dtype())
    zero, half = (t.uniform(v, (), value.dtype) for v in (0.0, math.pi))
    found = where(t, elementwise(t, "less", [value, zero]), half, zero)
    return where(t, elementwise(t, "isnan", [value]), value, found)


@aten("_conj", "conj", "conj_physical", "_conj_physical")
def conj(t: TorchContext, x: Imported) -> Imported:
    """Import the complex conjugate; real numbers are their own."""
    return elementwise(t, "conj", [x]) if x.dtype.is_complex else x


@aten("resolve_conj", "resolve_neg")
def resolve(t: TorchContext, x: Imported) -> Imported:
    """Return the input: an imported conjugate is computed, not marked."""
    del t
    return x


@aten("_neg_view")
def negative(t: TorchContext, x: Imported) -> Imported:
    """Import the negation."""
    return elementwise(t, "negative", [x])


@aten("complex")
def paired(t: TorchContext, real: OperandLike, imag: OperandLike) -> Imported:
    """Import the complex numbers with the given parts."""
    of = t.result_dtype().part
    return elementwise(t, "complex", [convert(t, t.number(x, of), of) for x in (real, imag)])


@aten("polar")
def polar(t: TorchContext, size: Imported, angle: Imported) -> Imported:
    """Import the complex numbers with the given absolute values and angles."""
    parts = (elementwise(t, "multiply", [size, elementwise(t, f, [angle])]) for f in ("cos", "sin"))
    return elementwise(t, "complex", [*parts])


@aten("view_as_real")
def view_as_real(t: TorchContext, x: Imported) -> Imported:
    """Import the view of complex numbers as pairs of floats."""
    found = t.emit("view_as_real", t.plain(x))
    return Imported((*x.shape, as_expr(2)), x.dtype.part, found)


@aten("view_as_complex")
def view_as_complex(t: TorchContext, x: Imported) -> Imported:
    """Import the view of pairs of floats as complex numbers."""
    found = t.emit("view_as_complex", t.plain(x))
    return Imported(x.shape[:-1], t.result_dtype(), found)
