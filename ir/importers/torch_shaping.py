"""Import handlers of PyTorch operators that create, reshape, and index tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..dtype import f64, i64
from ..symbolic import (
    Expr,
    SymInt,
    as_expr,
    const_value,
    eq,
    is_proved,
    maximum,
    minimum,
    product,
    to_text,
)
from .elementwise import convert, elementwise
from .indexing import gather, index, select, take
from .ordering import repeated_positions
from .shaping import (
    axis_of,
    clamped,
    concat,
    expand,
    expand_dims,
    permute,
    reshape,
    slice_axis,
    slice_exact,
    squeeze,
)
from .tensors import Imported, Iota
from .torch_context import TorchContext, aten
from .torch_symbols import is_artifact
from .unsupported import UnsupportedFormError

_WHOLE = 1 << 62
"""PyTorch writes the largest integer as the end of a slice without an end."""


@aten(
    "alias", "detach", "clone", "contiguous", "lift_fresh_copy", "lift_fresh", "detach_",
    "_to_copy", "to", "type_as", "_unsafe_view_copy", "prims.convert_element_type",
)  # fmt: skip
def identity(t: TorchContext, x: Imported, *_: Any, **__: Any) -> Imported:
    """Import a copy as a dtype conversion; memory layout is not part of the imported graph."""
    return convert(t, x, t.result_dtype())


@aten("dropout", "native_dropout")
def dropout(t: TorchContext, x: Imported, _rate: float, train: bool = False) -> Imported:  # noqa: FBT001, FBT002
    """Return the input; dropout is the identity in evaluation mode."""
    del t
    if train:
        raise UnsupportedFormError(
            "dropout in training mode is not supported", hint="call model.eval() before the export"
        )
    return x


@aten("view", "reshape", "_unsafe_view")
def view(t: TorchContext, x: Imported, sizes: Sequence[SymInt] | None) -> Imported:
    """Import a reshape."""
    if not isinstance(sizes, Sequence):  # view(dtype)
        raise UnsupportedFormError(
            f"the bits of {x.dtype} as elements of another dtype are not supported",
            hint="convert the numbers with x.to(dtype)",
        )
    return reshape(t, x, sizes)


@aten("flatten")
def flatten(t: TorchContext, x: Imported, start: int = 0, end: int = -1) -> Imported:
    """Import the merge of consecutive dimensions."""
    first, last = axis_of(start, x.rank), axis_of(end, x.rank)
    return reshape(t, x, (*x.shape[:first], -1, *x.shape[last + 1 :]))


@aten("transpose")
def transpose(t: TorchContext, x: Imported, first: int, second: int) -> Imported:
    """Import the exchange of two dimensions."""
    axes = list(range(x.rank))
    a, b = axis_of(first, x.rank), axis_of(second, x.rank)
    if axes:  # a scalar has the dimension 0 only
        axes[a], axes[b] = b, a
    return permute(t, x, axes)


@aten("t")
def matrix_transpose(t: TorchContext, x: Imported) -> Imported:
    """Import a matrix transpose."""
    return permute(t, x, tuple(reversed(range(x.rank))))


@aten("permute")
def permute_(t: TorchContext, x: Imported, axes: Sequence[int]) -> Imported:
    """Import a permutation of dimensions."""
    return permute(t, x, axes)


@aten("flip")
def flip(t: TorchContext, x: Imported, axes: Sequence[int]) -> Imported:
    """Import the reversal of dimensions."""
    reversed_ = tuple(axis_of(a, x.rank) for a in axes)
    return t.apply("flip", t.plain(x), axes=reversed_) if reversed_ else x


@aten("roll")
def roll(
    t: TorchContext, x: Imported, shifts: SymInt | Sequence[SymInt],
    axes: int | Sequence[int] = (),
) -> Imported:  # fmt: skip
    """Import a rotation of dimensions; without axes, that of the flattened tensor."""
    if isinstance(axes, Sequence) and not axes:
        return reshape(t, roll(t, reshape(t, x, (-1,)), shifts, 0), x.shape)
    amounts = shifts if isinstance(shifts, Sequence) else (shifts,)
    for amount, axis in zip(amounts, (axes,) if isinstance(axes, int) else axes, strict=True):
        k = axis_of(axis, x.rank)
        size = x.shape[k]
        first = -as_expr(amount) % maximum(size, 1)  # the size may be 0
        if const_value(first) != 0:
            parts = [
                slice_exact(t, x, k, bounds) for bounds in ((first, size), (as_expr(0), first))
            ]
            x = concat(t, parts, k)
    return x


@aten("unsqueeze")
def unsqueeze(t: TorchContext, x: Imported, axis: int) -> Imported:
    """Import the insertion of a dimension of size 1."""
    return expand_dims(t, x, (axis,))


@aten("squeeze")
def squeeze_(t: TorchContext, x: Imported, axes: int | Sequence[int] | None = None) -> Imported:
    """Import the removal of the dimensions that had size 1 when PyTorch traced the program.

    A size that was 1 only because the traced sizes were at least 2 is checked at run time.
    """
    given = range(x.rank) if axes is None else (axes,) if isinstance(axes, int) else axes
    wanted = [axis_of(a, x.rank) for a in given]
    if not x.rank:
        return x
    return squeeze(t, x, [a for a in wanted if _was_one(t, x.shape[a])])


def _was_one(t: TorchContext, size: Expr) -> bool:
    claim = eq(size, 1)
    return is_proved(claim, t.builder.facts) or (const_value(size) is None and is_artifact(claim))


@aten("expand")
def expand_(t: TorchContext, x: Imported, sizes: Sequence[SymInt], **_: Any) -> Imported:
    """Import a broadcast."""
    return expand(t, x, t.dims(sizes))


@aten("expand_as")
def expand_as(t: TorchContext, x: Imported, other: Imported) -> Imported:
    """Import a broadcast to the shape of another tensor."""
    return expand(t, x, other.shape)


@aten("repeat")
def repeat(t: TorchContext, x: Imported, times: Sequence[SymInt]) -> Imported:
    """Import the repetition of a tensor along its dimensions."""
    factors = t.dims(times)
    lead = len(factors) - x.rank
    found = expand_dims(t, x, tuple(range(lead))) if lead else x
    for axis, factor in enumerate(factors):
        if const_value(factor) != 1:
            found = _repeated(t, found, axis, factor, inner=False)
    return found


@aten("repeat_interleave")
def repeat_interleave(
    t: TorchContext, x: Imported, times: SymInt | Imported | None = None, dim: int | None = None,
    **_: Any,
) -> Imported:  # fmt: skip
    """Import the repetition of each element along a dimension, or of a flat tensor.

    Numbers of repetitions that are data determine the size, which PyTorch names. One operand alone
    has the numbers of repetitions of the positions.
    """
    if times is None:
        return repeated_positions(t, x, t.symbols.size(t.node.meta["val"].shape[0]))
    if dim is None:
        x, dim = reshape(t, x, (-1,)), 0
    axis = axis_of(dim, x.rank)
    x = x if x.rank else reshape(t, x, (1,))
    if not isinstance(times, Imported):
        return _repeated(t, x, axis, as_expr(times), inner=True)
    counts = expand(t, reshape(t, times, (-1,)), (x.shape[axis],))
    size = t.symbols.size(t.node.meta["val"].shape[axis])
    return take(t, x, repeated_positions(t, counts, size), axis)


def _repeated(t: TorchContext, x: Imported, axis: int, times: Expr, *, inner: bool) -> Imported:
    position = axis + 1 if inner else axis
    wide = (*x.shape[:position], times, *x.shape[position:])
    joined = (*x.shape[:axis], x.shape[axis] * times, *x.shape[axis + 1 :])
    return reshape(t, expand(t, expand_dims(t, x, (position,)), wide), joined)


@aten("diagonal")
def diagonal(
    t: TorchContext, x: Imported, offset: int = 0, first: int = 0, second: int = 1
) -> Imported:
    """Import the elements at equal indices of two dimensions, as the last dimension."""
    axes = [axis_of(first, x.rank), axis_of(second, x.rank)]
    others = [k for k in range(x.rank) if k not in axes]
    square = permute(t, x, (*axes, *others))
    sizes = square.shape[:2]
    after = (as_expr(max(-offset, 0)), as_expr(max(offset, 0)))
    starts = [clamped(t, start, size) for start, size in zip(after, sizes, strict=True)]
    count = minimum(*(size - start for size, start in zip(sizes, starts, strict=True)))
    positions = [Imported((count,), i64, known=Iota(0, start)) for start in starts]
    return permute(t, index(t, square, positions), (*range(1, x.rank - 1), 0))


@aten("unfold")
def unfold(t: TorchContext, x: Imported, dim: int, size: int, step: int) -> Imported:
    """Import windows along a dimension, whose elements are the last dimension."""
    if not x.rank:
        return expand(t, x, (as_expr(size),))
    axis = axis_of(dim, x.rank)
    count = (x.shape[axis] - size) // step + 1
    begin = t.apply("arange", (0, count * step, step), dtype="i64")
    within = Imported((as_expr(size),), i64, known=Iota(0, as_expr(0)))
    at = elementwise(t, "add", [expand_dims(t, begin, (1,)), within])
    windows = take(t, x, at, axis)
    kept = [k for k in range(windows.rank) if k != axis + 1]
    return permute(t, windows, (*kept, axis + 1))


@aten("slice")
def slice_(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, dim: int = 0, start: SymInt | None = None,
    end: SymInt | None = None, step: int = 1,
) -> Imported:  # fmt: skip
    """Import a slice along a dimension; bounds follow the rules of Python slices."""
    size = x.shape[axis_of(dim, x.rank)]
    first = as_expr(0 if start is None else start)
    last = as_expr(size if end is None or (isinstance(end, int) and end >= _WHOLE) else end)
    return slice_axis(t, x, dim, (first, last), step)


@aten("narrow")
def narrow(t: TorchContext, x: Imported, dim: int, start: SymInt, length: SymInt) -> Imported:
    """Import a slice of ``length`` elements from ``start`` on."""
    first = as_expr(start)
    return slice_exact(t, x, axis_of(dim, x.rank), (first, first + length))


@aten("select")
def select_(t: TorchContext, x: Imported, dim: int, position: SymInt) -> Imported:
    """Import the selection of one slice."""
    return select(t, x, dim, as_expr(position))


@aten("unbind")
def unbind(t: TorchContext, x: Imported, dim: int = 0) -> list[Imported]:
    """Import the selection of all slices along a dimension."""
    size = x.shape[axis_of(dim, x.rank)]
    count = const_value(size)
    if count is None:
        raise UnsupportedFormError(
            f"unbind along a symbolic dimension is not supported; its size is {to_text(size)}"
        )
    return [select(t, x, dim, as_expr(k)) for k in range(count)]


@aten("split", "split_with_sizes")
def split(
    t: TorchContext, x: Imported, sizes: SymInt | Sequence[SymInt], dim: int = 0
) -> list[Imported]:
    """Import a split into parts of given sizes."""
    axis = axis_of(dim, x.rank)
    if isinstance(sizes, int | Expr):
        count, size = len(t.node.meta["val"]), as_expr(sizes)
        starts = [size * k for k in range(count)]
        ends = [*starts[1:], x.shape[axis]]
    else:
        starts, ends, at = list[Expr](), list[Expr](), as_expr(0)
        for size in sizes:
            starts.append(at)
            at = at + size
            ends.append(at)
    return [slice_exact(t, x, axis, bounds) for bounds in zip(starts, ends, strict=True)]


@aten("chunk")
def chunk(t: TorchContext, x: Imported, count: int, dim: int = 0) -> list[Imported]:
    """Import a split into a number of parts."""
    whole = x.shape[axis_of(dim, x.rank)]
    size = const_value(whole)
    if size is None:
        raise UnsupportedFormError(
            f"chunk along a symbolic dimension is not supported; its size is {to_text(whole)}"
        )
    return split(t, x, -(-size // count), dim)


@aten("cat")
def cat(t: TorchContext, parts: Sequence[Imported], dim: int = 0) -> Imported:
    """Import a concatenation."""
    dtype = t.result_dtype()
    return concat(t, [convert(t, p, dtype) for p in parts], dim)


@aten("stack")
def stack(t: TorchContext, parts: Sequence[Imported], dim: int = 0) -> Imported:
    """Import a concatenation along a new dimension."""
    axis = axis_of(dim, parts[0].rank + 1)
    dtype = t.result_dtype()
    return concat(t, [expand_dims(t, convert(t, p, dtype), (axis,)) for p in parts], axis)


@aten("full", "new_full", "full_like", "zeros", "new_zeros", "zeros_like", "ones", "new_ones",
      "ones_like", "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty",
      "new_empty_strided", "scalar_tensor")  # fmt: skip
def filled(t: TorchContext, *args: Any, **_: Any) -> Imported:
    """Import a tensor filled with one number; an uninitialized tensor is filled with zeros."""
    name = t.operator
    numbers = [a for a in args if not isinstance(a, Imported | tuple | list)]
    value = 1 if "ones" in name else numbers[-1] if "full" in name or "scalar" in name else 0
    dtype = t.result_dtype()
    shape = t.dims([t.symbols.size(d) for d in t.node.meta["val"].shape])
    if isinstance(value, Expr):
        return expand(t, convert(t, t.number(value, i64), dtype), shape)
    return t.uniform(value, shape, dtype)


@aten("resize", "resize_as")
def resize(t: TorchContext, x: Imported, sizes: Sequence[SymInt] | Imported, **_: Any) -> Imported:
    """Import the first elements in another shape; elements that PyTorch does not set are zeros."""
    shape = sizes.shape if isinstance(sizes, Imported) else t.dims(sizes)
    flat, wanted = reshape(t, x, (-1,)), product(shape)
    more = maximum(wanted - flat.shape[0], 0)
    if const_value(more) != 0:
        flat = concat(t, [flat, t.uniform(0, (more,), x.dtype)], 0)
    return reshape(t, slice_exact(t, flat, 0, (as_expr(0), wanted)), shape)


@aten("arange")
def arange(t: TorchContext, *bounds: SymInt | float, **_: Any) -> Imported:
    """Import a range of numbers."""
    if any(isinstance(b, float) and not b.is_integer() for b in bounds):
        return _fractions(t, bounds)
    exact = [as_expr(b if isinstance(b, Expr) else int(b)) for b in bounds]
    start, stop, step = [*([as_expr(0)] if len(exact) == 1 else []), *exact, as_expr(1)][:3]
    dtype = t.result_dtype()
    if const_value(step) != 1 or not dtype.is_integer:
        return t.apply("arange", (start, stop, step), dtype=dtype.name)
    size = stop - start
    if not is_proved(size >= 0, t.builder.facts):
        size = maximum(size, 0)
    return Imported((size,), dtype, known=Iota(0, start))


def _fractions(t: TorchContext, bounds: tuple[SymInt | float, ...]) -> Imported:
    """Import a range of numbers that are not all integers: ``start + step * k``, as in float64."""
    known = [float(b) for b in bounds if not isinstance(b, Expr)]
    if len(known) < len(bounds):
        raise UnsupportedFormError(
            f"arange with bounds {bounds} is not supported; bounds and step must be integers, or "
            "all of them constants"
        )
    start, stop, step = [*([0.0] if len(known) == 1 else []), *known, 1.0][:3]
    count = as_expr(max(math.ceil((stop - start) / step), 0))
    numbers = convert(t, Imported((count,), i64, known=Iota(0, as_expr(0))), f64)
    scaled = elementwise(t, "multiply", [numbers, t.number(step, f64)])
    moved = elementwise(t, "add", [scaled, t.number(start, f64)])
    return convert(t, moved, t.result_dtype())


@aten("tril", "triu")
def triangle(t: TorchContext, x: Imported, k: int = 0) -> Imported:
    """Import the upper or lower triangle of matrices."""
    return t.apply(t.operator, t.plain(x), k=k)


@aten("embedding")
def embedding(t: TorchContext, table: Imported, indices: Imported, *_: Any, **__: Any) -> Imported:
    """Import the lookup of rows of an embedding table."""
    return take(t, table, indices, 0, name=t.leaf)


@aten("index_select")
def index_select(t: TorchContext, x: Imported, dim: int, indices: Imported) -> Imported:
    """Import the lookup of slices by index."""
    if not x.rank:
        return reshape(t, take(t, reshape(t, x, (1,)), reshape(t, indices, (1,)), 0), ())
    return take(t, x, indices, dim)


@aten("gather")
def gather_(t: TorchContext, x: Imported, dim: int, indices: Imported, **_: Any) -> Imported:
    """Import the lookup of elements along one axis; no indices may have another rank."""
    if any(const_value(size) == 0 for size in indices.shape):
        return t.uniform(0, indices.shape, x.dtype)
    if not x.rank:
        flat = [reshape(t, v, (1,)) for v in (x, reshape(t, indices, (-1,)))]
        return reshape(t, gather(t, flat[0], 0, flat[1]), indices.shape)
    return gather(t, x, dim, indices)


@aten("index")
def index_(t: TorchContext, x: Imported, indices: Sequence[Imported | None]) -> Imported:
    """Import indexing by integer tensors."""
    if any(i is not None and not i.dtype.is_integer for i in indices):
        raise UnsupportedFormError(
            "indexing with a boolean mask is not supported: its result shape depends on data"
        )
    return index(t, x, indices)
