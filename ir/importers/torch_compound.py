"""Import handlers of matrix products, reductions, normalization, and attention of PyTorch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..dtype import DType, bool_, i8, i64
from ..graph.operators import scaled_dot_product_attention
from ..symbolic import Expr, SymInt, as_expr, const_value, product, to_text
from .elementwise import convert, elementwise, rounded_once, weighted_sum, where
from .shaping import axis_of, expand_dims, permute, reshape, squeeze
from .tensors import Imported, Iota
from .torch_context import HANDLERS, TorchContext, aten
from .torch_shaping import repeat_interleave
from .unsupported import UnsupportedFormError


@aten("matmul", "mm", "bmm")
def matmul(t: TorchContext, x: Imported, y: Imported) -> Imported:
    """Import a matrix product; a vector is a row on the left and a column on the right."""
    left = expand_dims(t, x, (0,)) if x.rank == 1 else x
    right = expand_dims(t, y, (1,)) if y.rank == 1 else y
    found = t.apply("matmul", t.plain(left), t.plain(right))
    dropped = [-2] * (x.rank == 1) + [-1] * (y.rank == 1)
    return squeeze(t, found, dropped) if dropped else found


@aten("_int_mm")
def int_mm(t: TorchContext, x: Imported, y: Imported) -> Imported:
    """Import the matrix product of 8-bit integers with 32-bit sums."""
    return t.apply("matmul_integer", t.plain(x), t.plain(y))


@aten("linear")
def linear(
    t: TorchContext, x: Imported, weight: Imported, bias: Imported | None = None
) -> Imported:
    """Import ``x @ weight.T + bias``; a vector is one row of inputs, or of one output feature."""
    transposed = permute(t, weight, (1, 0)) if weight.rank > 1 else weight
    name = t.leaf
    if x.rank == 1 or weight.rank == 1:
        product = matmul(t, x, transposed)
        return product if bias is None else elementwise(t, "add", [product, bias], name=name)
    if bias is None:
        return t.apply("matmul", t.plain(x), t.plain(transposed), name=name)
    product = t.apply("matmul", t.plain(x), t.plain(transposed))
    return elementwise(t, "add", [product, bias], name=name)


@aten("addmm", "baddbmm")
def addmm(
    t: TorchContext, bias: Imported, x: Imported, y: Imported, *, beta: float = 1, alpha: float = 1
) -> Imported:
    """Import ``beta * bias + alpha * x @ y``."""
    product = t.apply("matmul", t.plain(x), t.plain(y))
    return weighted_sum(t, product, alpha, bias, beta)


@aten("scaled_dot_product_attention")
def attention(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, query: Imported, key: Imported, value: Imported, mask: Imported | None = None,
    dropout_p: float = 0.0, is_causal: bool = False,  # noqa: FBT001, FBT002
    *, scale: float | None = None, enable_gqa: bool = False, attn_mask: Imported | None = None,
) -> Imported:  # fmt: skip
    """Import scaled dot-product attention as a composition of operators."""
    if dropout_p:
        raise UnsupportedFormError(
            f"attention with dropout_p={dropout_p} is not supported; only dropout_p=0 is",
            hint="call model.eval() before the export",
        )
    mask = attn_mask if mask is None else mask
    if enable_gqa:
        key, value = (_repeat_heads(t, query, x) for x in (key, value))
    return t.tensor(
        scaled_dot_product_attention(
            t,
            t.plain(query),
            t.plain(key),
            t.plain(value),
            None if mask is None else t.compact(mask),
            causal=is_causal,
            scale=scale,
        )
    )


def _repeat_heads(t: TorchContext, query: Imported, x: Imported) -> Imported:
    have, want = const_value(x.shape[-3]), const_value(query.shape[-3])
    if have is None or want is None:
        raise UnsupportedFormError(
            "grouped-query attention needs constant numbers of heads, got "
            f"{to_text(query.shape[-3])} for queries and {to_text(x.shape[-3])} for keys and values"
        )
    return x if have == want else repeat_interleave(t, x, want // have, x.rank - 3)


@aten("layer_norm")
def layer_norm(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, shape: Sequence[SymInt], weight: Imported | None = None,
    bias: Imported | None = None, eps: float = 1e-5, *_: Any,
) -> Imported:  # fmt: skip
    """Import layer normalization."""
    if weight is None and bias is not None:
        weight = t.uniform(1, t.dims(shape), x.dtype)
    factors = [t.plain(v) for v in (weight, bias) if v is not None]
    return t.apply("layer_norm", t.plain(x), *factors, name=t.leaf, epsilon=eps, axes=len(shape))


@aten("rms_norm")
def rms_norm(
    t: TorchContext, x: Imported, shape: Sequence[SymInt], weight: Imported | None = None,
    eps: float | None = None,
) -> Imported:  # fmt: skip
    """Import the division of rows by their root mean square."""
    if eps is None:  # the default of nn.RMSNorm: the distance of 1 to the next number
        eps = math.ldexp(1.0, -x.dtype.compute.mantissa)
    factors = [] if weight is None else [t.plain(weight)]
    return t.apply("rms_norm", t.plain(x), *factors, name=t.leaf, epsilon=eps, axes=len(shape))


@aten("softmax", "_softmax", "log_softmax", "_log_softmax")
def softmax(t: TorchContext, x: Imported, dim: int, *_: Any, **__: Any) -> Imported:
    """Import the softmax or its logarithm."""
    op, wide = t.operator.removeprefix("_"), convert(t, x, t.result_dtype())
    axis = axis_of(dim, x.rank)
    rows = wide if x.rank else reshape(t, wide, (1,))
    return reshape(t, t.apply(op, t.plain(rows), axis=axis), x.shape)


def _axes(x: Imported, dims: int | Sequence[int] | None) -> tuple[int, ...]:
    """Return the axes of a reduction; none stands for all. A scalar has the axes -1 and 0."""
    given = () if dims is None else (dims,) if isinstance(dims, int) else tuple(dims)
    axes = tuple(axis_of(axis, x.rank) for axis in given)
    return axes if x.rank else ()


_OF_CONDITIONS = {"max": "any", "min": "all"}
"""The reductions of conditions."""


@aten("sum", "mean", "prod", "amax", "amin")
def reduction(
    t: TorchContext, x: Imported, dims: int | Sequence[int] | None = None,
    keepdim: bool = False, **_: Any,  # noqa: FBT001, FBT002
) -> Imported:  # fmt: skip
    """Import a reduction."""
    op = {"amax": "max", "amin": "min"}.get(t.operator, t.operator)
    op = _OF_CONDITIONS.get(op, op) if x.dtype == bool_ else op
    wide = convert(t, x, t.result_dtype())
    return t.apply(op, t.plain(wide), axes=_axes(x, dims), keepdims=keepdim)


@aten("linalg_vector_norm")
def vector_norm(
    t: TorchContext, x: Imported, order: float = 2, dims: int | Sequence[int] | None = None,
    keepdim: bool = False, **_: Any,  # noqa: FBT001, FBT002
) -> Imported:  # fmt: skip
    """Import the vector norm of any order."""
    axes = _axes(x, dims)

    def reduced(op: str, y: Imported) -> Imported:
        return t.apply(op, t.plain(y), axes=axes, keepdims=keepdim)

    def compute(y: Imported) -> Imported:
        size = y if order == 2 else elementwise(t, "abs", [y])
        if abs(order) == math.inf:
            return reduced("max" if order > 0 else "min", size)
        if order == 0:
            filled = elementwise(t, "not_equal", [y, t.uniform(0, (), y.dtype)])
            return reduced("sum", convert(t, filled, y.dtype))
        if order == 1:
            return reduced("sum", size)
        if order == 2:
            return elementwise(t, "sqrt", [reduced("sum", elementwise(t, "multiply", [y, y]))])
        power, root = (t.uniform(p, (), y.dtype) for p in (order, 1 / order))
        total = reduced("sum", elementwise(t, "power", [size, power]))
        return elementwise(t, "power", [total, root])

    wide = convert(t, x, t.result_dtype()) if not x.dtype.is_complex else x
    if wide.dtype.is_complex:
        wide = convert(t, elementwise(t, "abs", [wide]), t.result_dtype())
    return rounded_once(t, compute, wide)


@aten("any", "all")
def any_all(
    t: TorchContext, x: Imported, dims: int | Sequence[int] | None = None,
    keepdim: bool = False, **_: Any,  # noqa: FBT001, FBT002
) -> Imported:  # fmt: skip
    """Import a reduction of booleans."""
    return t.apply(t.operator, t.plain(convert(t, x, bool_)), axes=_axes(x, dims), keepdims=keepdim)


@aten("max", "min")
def extreme(
    t: TorchContext, x: Imported, dim: int | Imported | None = None,
    keepdim: bool = False,  # noqa: FBT001, FBT002
) -> Imported | list[Imported]:  # fmt: skip
    """Import the maximum or minimum.

    The form depends on ``dim``: the reduction over all elements without ``dim``, the element-wise
    maximum or minimum of two tensors, or the values and indices along one dimension.
    """
    op = t.operator
    if isinstance(dim, Imported):
        return HANDLERS[f"{op}imum"](t, x, dim)
    if dim is None:
        return t.apply(_OF_CONDITIONS[op] if x.dtype == bool_ else op, t.plain(x))
    if not x.rank:
        return [x, t.uniform(0, (), i64)]
    values = t.apply(op, t.plain(x), axes=(dim,), keepdims=keepdim)
    return [values, t.apply(f"arg{op}", t.plain(x), axis=dim, keepdims=keepdim)]


@aten("argmax", "argmin")
def arg_extreme(
    t: TorchContext, x: Imported, dim: int | None = None,
    keepdim: bool = False,  # noqa: FBT001, FBT002
) -> Imported:  # fmt: skip
    """Import the index of the first maximum or minimum, of all elements without ``dim``."""
    if dim is not None and x.rank:
        return t.apply(t.operator, t.plain(x), axis=dim, keepdims=keepdim)
    if dim is not None:
        axis_of(dim, 0)
    found = t.apply(t.operator, t.plain(reshape(t, x, (-1,))), axis=0)
    return expand_dims(t, found, range(x.rank)) if keepdim else found


@aten("aminmax")
def extremes(
    t: TorchContext, x: Imported, *, dim: int | None = None, keepdim: bool = False
) -> list[Imported]:
    """Import the minimum and the maximum, of all elements without ``dim``."""
    axes = _axes(x, dim)
    return [t.apply(op, t.plain(x), axes=axes, keepdims=keepdim) for op in ("min", "max")]


@aten("logsumexp")
def logsumexp(
    t: TorchContext, x: Imported, dims: int | Sequence[int],
    keepdim: bool = False,  # noqa: FBT001, FBT002
) -> Imported:  # fmt: skip
    """Import the logarithm of a sum of exponentials; an infinite maximum is the result."""
    axes = _axes(x, dims)
    axes = axes or tuple(range(x.rank))

    def compute(y: Imported) -> Imported:
        top = t.apply("max", t.plain(y), axes=axes, keepdims=True) if axes else y
        infinite = elementwise(t, "isinf", [top])
        start = where(t, infinite, t.uniform(0.0, top.shape, top.dtype), top)
        powers = elementwise(t, "exp", [elementwise(t, "subtract", [y, start])])
        total = t.apply("sum", t.plain(powers), axes=axes, keepdims=True) if axes else powers
        found = elementwise(t, "add", [elementwise(t, "log", [total]), start])
        return found if keepdim or not axes else squeeze(t, found, axes)

    return rounded_once(t, compute, convert(t, x, t.result_dtype()))


@aten("cumsum", "cumprod", "logcumsumexp")
def scan(t: TorchContext, x: Imported, dim: int, **_: Any) -> Imported:
    """Import a running sum, product, or logarithm of a sum of exponentials."""
    wide = convert(t, x, t.result_dtype())
    if not wide.rank:
        return wide
    return t.apply(t.operator, t.plain(wide), axis=axis_of(dim, x.rank))


@aten("cummax", "cummin")
def running_extreme(t: TorchContext, x: Imported, dim: int) -> list[Imported]:
    """Import running maxima or minima and the indices of the last ones.

    An element is the extreme so far if it equals the extreme that includes it, or is a NaN. The
    index is the largest position so far of such an element.
    """
    if not x.rank:
        return [x, t.uniform(0, (), i64)]
    axis = axis_of(dim, x.rank)
    ordered = convert(t, x, i8) if x.dtype == bool_ else x
    found = t.apply(t.operator, t.plain(ordered), axis=axis)
    taken = elementwise(t, "equal", [ordered, found])
    if x.dtype.is_float:
        nan = elementwise(t, "isnan", [ordered])
        taken = elementwise(t, "logical_or", [taken, nan])
    positions = Imported(x.shape, i64, known=Iota(axis, as_expr(0)))
    last = where(t, taken, positions, t.uniform(0, x.shape, i64))
    indices = t.apply("cummax", t.plain(last), axis=axis)
    return [convert(t, found, x.dtype), indices]


@aten("var_mean", "std_mean")
def variance_and_mean(
    t: TorchContext, x: Imported, dims: int | Sequence[int] | None = None, *rest: bool,
    keepdim: bool = False, **options: Any,
) -> list[Imported]:  # fmt: skip
    """Import the variance or the standard deviation, and the mean."""
    if isinstance(dims, bool):  # var_mean(x, unbiased) has no dimensions
        dims, rest = None, (dims,)
    kept = rest[1] if len(rest) > 1 else keepdim
    spread = variance(t, x, dims, *rest[:1], keepdim=kept, **options)
    return [spread, t.apply("mean", t.plain(x), axes=_axes(x, dims), keepdims=kept)]


@aten("var", "std")
def variance(
    t: TorchContext, x: Imported, dims: int | Sequence[int] | None = None, *rest: bool,
    unbiased: bool = True, keepdim: bool = False, correction: float | None = None,
) -> Imported:  # fmt: skip
    """Import the variance or the standard deviation, with all signatures of PyTorch."""
    if isinstance(dims, bool):  # var(x, unbiased) has no dimensions
        dims, rest = None, (dims,)
    unbiased, keepdim = (*rest, *(unbiased, keepdim)[len(rest) :])
    less = float(unbiased) if correction is None else correction
    axes = _axes(x, dims) or tuple(range(x.rank))
    count = product([x.shape[a] for a in axes])

    def compute(y: Imported) -> Imported:
        mean = t.apply("mean", t.plain(y), axes=axes, keepdims=True)
        centered = elementwise(t, "subtract", [y, mean])
        squares = elementwise(t, "multiply", [centered, centered])
        found = t.apply("mean", t.plain(squares), axes=axes, keepdims=keepdim)
        if less:
            found = elementwise(t, "multiply", [found, _bessel(t, count, less, y.dtype)])
        return elementwise(t, "sqrt", [found]) if t.operator.startswith("std") else found

    return rounded_once(t, compute, x)


def _bessel(t: TorchContext, count: Expr, less: float, dtype: DType) -> Imported:
    """Return ``count / max(count - less, 0)``, which is infinite for too few elements."""
    known = const_value(count)
    if known is not None:
        return t.uniform(known / (known - less) if known > less else math.inf, (), dtype)
    size = convert(t, t.number(count, dtype), dtype)
    rest = elementwise(t, "subtract", [size, t.uniform(less, (), dtype)])
    return elementwise(
        t, "divide", [size, elementwise(t, "maximum", [rest, t.uniform(0.0, (), dtype)])]
    )
