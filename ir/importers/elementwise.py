"""Element-wise operators shared by the importers, with constant folding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..dtype import DType, bool_, f32, i64
from ..graph.operators import get_operator
from ..graph.operators.elementwise import Elementwise
from ..graph.operators.lowering import accumulator
from ..symbolic import Bool, Expr, as_expr, const_value, eq, is_proved, negate
from .emitter import Emitter
from .shaping import with_unit_dims
from .tensors import Imported, Iota, Uniform
from .unsupported import UnsupportedFormError

_MIRRORED = {"less": "greater", "less_equal": "greater_equal", "greater": "less",
             "greater_equal": "less_equal"}  # fmt: skip


def convert(e: Emitter, x: Imported, dtype: DType, *, saturate: bool | None = None) -> Imported:
    """Convert to another dtype; known elements remain known.

    Numbers beyond the largest one of a float become this number if ``saturate``; by default, if the
    dtype has no infinity.
    """
    if x.dtype == dtype:
        return x
    if dtype.is_float and (dtype.special != "ieee" if saturate is None else saturate):
        x = _limited(e, x, dtype.largest)
    elif isinstance(x.known, Uniform) and dtype.rounds_to_nan(x.known.value):
        return e.uniform(float("nan"), x.shape, dtype)
    if isinstance(x.known, Uniform):
        return e.uniform(x.known.value, x.shape, dtype)
    if isinstance(x.known, Iota) and dtype.is_integer and dtype.bits >= 32:
        return Imported(x.shape, dtype, known=x.known)
    found = e.emit("cast", e.compact(x), dtype=dtype.name)
    return Imported(x.shape, dtype, found)


def _limited(e: Emitter, x: Imported, largest: float) -> Imported:
    """Return a tensor whose numbers are at most as large as one, as far as its dtype has others."""
    for op, bound in (("minimum", largest), ("maximum", -largest)):
        if _reaches(x.dtype, bound):
            x = elementwise(e, op, [x, e.uniform(bound, (), x.dtype)])
    return x


def _reaches(dtype: DType, bound: float) -> bool:
    """Return whether a dtype has numbers farther from zero than one of its numbers."""
    if dtype.is_integer:
        return dtype.lowest < bound < dtype.highest
    return dtype.is_float and (dtype.special == "ieee" or dtype.largest > abs(bound))


def rounded_once(e: Emitter, compute: Callable[..., Imported], *operands: Imported) -> Imported:
    """Apply a composition of operators to tensors of one dtype, and round its result once.

    Operators of 16-bit floats that the source framework states as one operator are computed in
    float32.
    """
    dtype = operands[0].dtype
    wide = accumulator(dtype)
    return convert(e, compute(*(convert(e, x, wide) for x in operands)), dtype)


def elementwise(
    e: Emitter, op: str, operands: Sequence[Imported], *, name: str | None = None
) -> Imported:
    """Apply an element-wise operator to operands of one dtype; for ``where``, use `where`.

    Numbers are folded, and so are masks that follow from positions.

    Examples
    --------
    >>> from ..graph.builder import GraphBuilder
    >>> e = Emitter(GraphBuilder("main"))
    >>> elementwise(e, "add", [e.uniform(2, (), i64), e.uniform(3, (), i64)]).known
    Uniform(value=5)
    """
    shapes = [x.shape for x in operands]
    operands = [with_unit_dims(e, x, shapes) for x in operands]
    shape = e.broadcast_shapes([x.shape for x in operands])
    dtype = _result_dtype(op, operands[-1].dtype)
    folded = _fold(e, op, operands, shape, dtype)
    if folded is not None:
        return folded
    args = [e.factor(x) for x in operands]
    if not any(_is_tensor(a) for a in args):
        args[0] = e.compact(operands[0])
    return Imported(shape, dtype, e.emit(op, *args, name=name))


def weighted_sum(e: Emitter, x: Imported, alpha: float, y: Imported, beta: float) -> Imported:
    """Return ``alpha * x + beta * y``, rounded once; weights of 1 need no product.

    If `beta` is 0, the result has the shape of `x`, and NaN in `y` has no effect, as in BLAS.
    """
    if beta == 0:
        return x if alpha == 1 else elementwise(e, "multiply", [x, e.uniform(alpha, (), x.dtype)])

    def compute(left: Imported, right: Imported) -> Imported:
        parts = [
            elementwise(e, "multiply", [part, e.uniform(weight, (), part.dtype)])
            if weight != 1
            else part
            for part, weight in ((left, alpha), (right, beta))
        ]
        return elementwise(e, "add", parts)

    return compute(x, y) if alpha == beta == 1 else rounded_once(e, compute, x, y)


def integer_power(e: Emitter, x: Imported, exponent: int) -> Imported:
    """Return a power of integers with an exponent of at least 0, as products of squares.

    Raises
    ------
    UnsupportedFormError
        If the exponent is negative.
    """
    if exponent < 0:
        raise UnsupportedFormError(
            f"expected an exponent of integers of at least 0, got {exponent}",
            hint="convert the base to a floating-point dtype",
        )
    found = e.uniform(1, x.shape, x.dtype)
    square = x
    while exponent:
        if exponent & 1:
            found = elementwise(e, "multiply", [found, square])
        exponent >>= 1
        if exponent:
            square = elementwise(e, "multiply", [square, square])
    return found


def truncated_quotient(e: Emitter, x: Imported, y: Imported) -> Imported:
    """Return the quotient rounded toward zero.

    For integers, it is the floor of a quotient without remainder; integer division by 0 gives 0.
    """
    if x.dtype.is_float:
        return elementwise(e, "trunc", [elementwise(e, "divide", [x, y])])
    if x.dtype.kind == "int":
        x = elementwise(e, "subtract", [x, elementwise(e, "fmod", [x, y])])
    return elementwise(e, "floor_divide", [x, y])


def _result_dtype(op: str, dtype: DType) -> DType:
    """Return the dtype of the result of an element-wise operator."""
    found = get_operator(op)
    return found.result_dtype(dtype) if isinstance(found, Elementwise) else dtype


def _is_tensor(argument: object) -> bool:
    return not isinstance(argument, float | int | bool)


def _fold(
    e: Emitter, op: str, operands: Sequence[Imported], shape: tuple[Expr, ...], dtype: DType
) -> Imported | None:
    numbers = [x.known.value for x in operands if isinstance(x.known, Uniform)]
    if len(numbers) == len(operands):
        return _fold_numbers(e, op, operands, shape, dtype)
    if len(operands) != 2:
        return None
    left, right = operands
    return (
        _neutral(op, left, right, shape)
        or _neutral(op, right, left, shape, swapped=True)
        or _shifted(op, left, right, shape)
        or _decided(e, op, left, right, shape)
        or _compared(e, op, left, right, shape)
        or _causal(e, op, left, right, shape)
    )


def _fold_numbers(
    e: Emitter, op: str, operands: Sequence[Imported], shape: tuple[Expr, ...], dtype: DType
) -> Imported | None:
    """Return the tensor of the result of an operator of numbers; None for imaginary numbers."""
    arrays = [
        np.asarray(x.known.value, x.dtype.numpy) for x in operands if isinstance(x.known, Uniform)
    ]
    found = np.asarray(get_operator(op).reference(arrays)).item()
    if isinstance(found, complex):
        return None if found.imag else e.uniform(found.real, shape, dtype)
    return e.uniform(found, shape, dtype)


def _neutral(
    op: str, x: Imported, y: Imported, shape: tuple[Expr, ...], *, swapped: bool = False
) -> Imported | None:
    """Return ``x`` for ``x op y`` if ``y`` is the identity of ``op``."""
    if not isinstance(y.known, Uniform):
        return None
    neutral = {
        "add": 0, "subtract": 0, "multiply": 1, "divide": 1, "logical_and": True,
        "logical_or": False, "power": 1,
    }  # fmt: skip
    if op not in neutral or y.known.value != neutral[op]:
        return None
    if swapped and op in ("subtract", "divide", "power"):
        return None
    known = x.known if isinstance(x.known, Uniform) or shape == x.shape else None
    return Imported(shape, x.dtype, x.operand, known) if x.operand or known else None


def _shifted(op: str, x: Imported, y: Imported, shape: tuple[Expr, ...]) -> Imported | None:
    """Fold positions plus or minus a number to positions."""
    if op == "add" and isinstance(y.known, Iota):
        x, y = y, x
    if op not in ("add", "subtract") or not isinstance(x.known, Iota) or shape != x.shape:
        return None
    step = _number(y)
    if step is None or (op == "subtract" and isinstance(x.known, Uniform)):
        return None
    start = x.known.start + step if op == "add" else x.known.start - step
    return Imported(shape, x.dtype, known=Iota(x.known.axis, start))


def _number(x: Imported) -> Expr | None:
    """Return the symbolic integer that all elements equal, or None."""
    match x.known:
        case Uniform(value=value) if isinstance(value, int):
            return as_expr(value)
        case _:
            pass
    info = None if x.operand is None else x.operand.info
    elements = getattr(info, "elements", None)
    return elements[0] if elements is not None and len(elements) == 1 else None


def _decided(
    e: Emitter, op: str, x: Imported, y: Imported, shape: tuple[Expr, ...]
) -> Imported | None:
    """Fold a comparison of positions with a number that has the same result for all positions."""
    if op not in _MIRRORED:
        return None
    if isinstance(y.known, Iota):
        x, y, op = y, x, _MIRRORED[op]
    bound = _number(y)
    if not isinstance(x.known, Iota) or bound is None:
        return None
    first, last = x.known.start, x.known.start + x.shape[x.known.axis] - 1
    always = {
        "less": last < bound, "less_equal": last <= bound,
        "greater": first > bound, "greater_equal": first >= bound,
    }[op]  # fmt: skip
    return e.uniform(value=True, shape=shape, dtype=bool_) if _holds(e, always) else None


def _compared(
    e: Emitter, op: str, x: Imported, y: Imported, shape: tuple[Expr, ...]
) -> Imported | None:
    """Fold a comparison of two integers known from shapes that has one result for all shapes."""
    if op not in (*_MIRRORED, "equal", "not_equal") or max(x.rank, y.rank) > 1:
        return None
    if any(isinstance(v.known, Iota) for v in (x, y)):
        return None
    a, b = _number(x), _number(y)
    if a is None or b is None or any(const_value(d) != 1 for d in shape):
        return None
    claim = {
        "less": a < b, "less_equal": a <= b, "greater": a > b, "greater_equal": a >= b,
        "equal": eq(a, b), "not_equal": negate(eq(a, b)),
    }[op]  # fmt: skip
    for known, text in ((True, claim), (False, negate(claim))):
        if _holds(e, text):
            return e.uniform(known, shape, bool_)
    return None


def _holds(e: Emitter, claim: Bool) -> bool:
    return is_proved(claim, e.builder.facts)


def _causal(
    e: Emitter, op: str, x: Imported, y: Imported, shape: tuple[Expr, ...]
) -> Imported | None:
    """Fold ``key <= query`` of positions along two axes, the query axis first, to a mask."""
    if op == "greater_equal":
        x, y, op = y, x, "less_equal"
    if op != "less_equal" or not isinstance(x.known, Iota) or not isinstance(y.known, Iota):
        return None
    rank = len(shape)
    column, row = x.known.axis + rank - x.rank, y.known.axis + rank - y.rank
    if row >= column:
        return None
    sizes = (shape[row], shape[column], y.known.start - x.known.start)
    others = tuple(k for k in range(rank) if k not in (row, column))
    found = e.emit("causal_mask", sizes)
    return Imported(shape, bool_, e.emit("expand_dims", found, axes=others) if others else found)


def where(e: Emitter, condition: Imported, x: Imported, y: Imported) -> Imported:
    """Select between two tensors of one dtype."""
    shapes = [condition.shape, x.shape, y.shape]
    condition, x, y = (with_unit_dims(e, v, shapes) for v in (condition, x, y))
    shape = e.broadcast_shapes([condition.shape, x.shape, y.shape])
    if isinstance(condition.known, Uniform):
        chosen = x if condition.known.value else y
        known = chosen.known if isinstance(chosen.known, Uniform) else None
        operand = None if known else e.compact(chosen)
        return Imported(shape, chosen.dtype, operand, known)
    then, other = e.factor(x), e.factor(y)
    if not _is_tensor(then) and not _is_tensor(other) and x.dtype not in (f32, i64, bool_):
        then = e.compact(Imported((), x.dtype, known=x.known))
    return Imported(shape, x.dtype, e.emit("where", e.compact(condition), then, other))
