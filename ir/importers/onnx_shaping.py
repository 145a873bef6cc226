"""Import handlers of ONNX operators that create, reshape, and index tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from ..dtype import f32, f64, from_numpy, i64
from ..graph.operators import Requirement
from ..symbolic import (
    Expr,
    as_expr,
    ceildiv,
    const_value,
    eq,
    is_proved,
    maximum,
    minimum,
    product,
    to_text,
    total,
)
from .elementwise import convert, where
from .formulas import Formula, positions
from .indexing import gather, index, take
from .onnx_context import OnnxContext, onnx_op
from .onnx_given_sizes import (
    axes_mask,
    bounds_of,
    broadcast_dims,
    constant_length,
    front_axes,
    read_size,
    reshaped_dims,
    scalar,
    sliced,
    squeezed_dims,
    unsqueezed_dims,
    vector,
)
from .onnx_schema import malformed
from .shaping import (
    axis_of,
    concat,
    expand,
    expand_dims,
    permute,
    reshape,
    slice_axis,
    slice_exact,
    squeeze,
)
from .tensors import Imported, Iota, Stacked
from .unsupported import UnsupportedFormError

_CONSTANTS: Final[dict[str, type[np.generic] | None]] = {
    "value": None, "value_int": np.int64, "value_ints": np.int64, "value_float": np.float32,
    "value_floats": np.float32,
}  # fmt: skip
"""The dtype of a constant by the name of its attribute; a tensor has its own dtype."""
_FAR = 1 << 31
"""ONNX exporters write the largest integers as the end of a slice without an end."""


@onnx_op("Shape")
def shape(c: OnnxContext) -> Imported:
    """Import the shape of a tensor, or a range of its dimensions."""
    dims = c.input(0).shape
    start, end = c.integer("start", 0), c.integer("end", len(dims))
    return c.apply("shape_to_tensor", dims[slice(start, end)])


@onnx_op("Size")
def size(c: OnnxContext) -> Imported:
    """Import the number of elements."""
    return reshape(c, c.apply("shape_to_tensor", (product(c.input(0).shape),)), ())


@onnx_op("Reshape")
def reshape_(c: OnnxContext) -> Imported:
    """Import a reshape; 0 keeps a dimension unless ``allowzero`` is set."""
    x, keep = c.input(0), not c.integer("allowzero", 0)
    given = c.elements(c.input(1))
    if given is None:
        return reshape(c, x, reshaped_dims(c, x, c.input(1), keep=keep))
    dims = list(given)
    if keep:
        dims = [x.shape[k] if const_value(d) == 0 else d for k, d in enumerate(dims)]
    return reshape(c, x, dims)


@onnx_op("Flatten")
def flatten(c: OnnxContext) -> Imported:
    """Import the reshape to a matrix: dimensions before the axis, and from the axis on."""
    x = c.input(0)
    axis = c.integer("axis", 1)
    axis = x.rank if axis == x.rank else axis_of(axis, x.rank)
    return reshape(c, x, (product(x.shape[:axis]), product(x.shape[axis:])))


@onnx_op("Transpose")
def transpose(c: OnnxContext) -> Imported:
    """Import a permutation of dimensions; the default reverses them."""
    x = c.input(0)
    return permute(c, x, c.attributes.get("perm", tuple(reversed(range(x.rank)))))


@onnx_op("Unsqueeze")
def unsqueeze(c: OnnxContext) -> Imported:
    """Import the insertion of dimensions of size 1."""
    if c.opset >= 13 and c.known(1) is None:
        x, count = c.input(0), constant_length(c, c.input(1))
        return reshape(c, x, unsqueezed_dims(c, x.shape, vector(c, c.input(1)), count))
    return expand_dims(c, c.input(0), c.axes(1, attribute_below=13) or ())


@onnx_op("Squeeze")
def squeeze_(c: OnnxContext) -> Imported:
    """Import the removal of dimensions of size 1."""
    x = c.input(0)
    if c.opset >= 13 and c.optional(1) is not None and c.known(1) is None:
        count = constant_length(c, c.input(1))
        return reshape(c, x, squeezed_dims(c, x.shape, vector(c, c.input(1)), count))
    axes = c.axes(1, attribute_below=13)
    if axes is None:
        axes = [k for k, d in enumerate(x.shape) if is_proved(eq(d, 1), c.builder.facts)]
    return squeeze(c, x, axes)


@onnx_op("Expand")
def expand_(c: OnnxContext) -> Imported:
    """Import a bidirectional broadcast."""
    x, dims = c.input(0), c.elements(c.input(1))
    if dims is None:
        shape = broadcast_dims(c, x.shape, c.input(1))
        return c.apply("broadcast_to", c.plain(x), shape)
    return expand(c, x, c.broadcast_shapes([x.shape, dims]))


@onnx_op("Tile")
def tile(c: OnnxContext) -> Imported:
    """Import the repetition of a tensor along its dimensions."""
    found = c.input(0)
    for axis, times in enumerate(c.sizes(c.input(1))):
        if const_value(times) != 1:
            before = found.shape
            wide = (*before[:axis], times, *before[axis:])
            joined = (*before[:axis], before[axis] * times, *before[axis + 1 :])
            found = reshape(c, expand(c, expand_dims(c, found, (axis,)), wide), joined)
    return found


@onnx_op("Concat")
def concat_(c: OnnxContext) -> Imported:
    """Import a concatenation.

    Columns of indices stay separate tensors, because ``GatherND`` uses them separately.
    """
    parts = c.given()
    axis = axis_of(c.integer("axis"), parts[0].rank)
    columns = all(const_value(p.shape[axis]) == 1 for p in parts) and parts[0].rank > 1
    if columns and axis == parts[0].rank - 1 and all(p.dtype == i64 for p in parts):
        lead = c.broadcast_shapes([p.shape[:-1] for p in parts])
        found = Stacked(tuple(squeeze(c, p, (axis,)) for p in parts))
        return Imported((*lead, as_expr(len(parts))), i64, known=found)
    return concat(c, parts, axis)


@onnx_op("Split")
def split(c: OnnxContext) -> list[Imported]:
    """Import a split along an axis."""
    x = c.input(0)
    axis = axis_of(c.integer("axis", 0), x.rank)
    sizes = _split_sizes(c, x.shape[axis])
    if len(sizes) != len(c.node.output):
        raise malformed(c.node, f"{len(sizes)} sizes are given for {len(c.node.output)} outputs")
    c.same_size(x.shape[axis], total(sizes), "the sizes of Split must sum to the dimension")
    starts = [as_expr(0)]
    for piece in sizes:
        starts.append(starts[-1] + piece)
    return [slice_exact(c, x, axis, b) for b in pairwise(starts)]


def _split_sizes(c: OnnxContext, whole: Expr) -> Sequence[Expr]:
    given = c.optional(1)
    if given is not None:
        return c.sizes(given)
    if "split" in c.attributes:
        return [as_expr(s) for s in c.attributes["split"]]
    count = c.integer("num_outputs", len(c.node.output))
    known = const_value(whole)
    if known is None:
        part = ceildiv(whole, count)
        starts = [minimum(part * k, whole) for k in range(count)] + [whole]
        return [b - a for a, b in pairwise(starts)]
    part = -(-known // count)
    sizes = [max(0, min(part, known - k * part)) for k in range(count)]
    if sizes[-1] != part and "num_outputs" not in c.attributes:
        raise malformed(c.node, f"a dimension of {known} has no {count} equal parts")
    return [as_expr(n) for n in sizes]


@onnx_op("Slice")
def slice_(c: OnnxContext) -> Imported:
    """Import a slice along axes; bounds follow the rules of Python slices."""
    found = c.input(0)
    if c.opset < 10:
        begins, ends = (list(map(as_expr, c.attributes[name])) for name in ("starts", "ends"))
        axes = c.attributes.get("axes") or range(len(begins))
        return _sliced(c, found, zip(axes, begins, ends, [1] * len(begins), strict=True))
    bounds = [c.elements(c.input(k)) for k in (1, 2)]
    fixed = [c.known(k) if c.optional(k) is not None else () for k in (3, 4)]
    if None in bounds or None in fixed:
        return _sliced_by_data(c).x
    begins, ends = (b or () for b in bounds)
    axes, steps = fixed
    axes, steps = axes or tuple(range(len(begins))), steps or (1,) * len(begins)
    return _sliced(c, found, zip(axes, begins, ends, steps, strict=True))


def _sliced(c: OnnxContext, x: Imported, bounds: Iterable[tuple[int, Expr, Expr, int]]) -> Imported:
    """Return a slice with bounds that are known from shapes."""
    for axis, begin, end, step in bounds:
        size, low, high = x.shape[axis_of(axis, x.rank)], const_value(begin), const_value(end)
        if not step:
            raise malformed(c.node, "the step of a slice must not be 0")
        if step > 0:
            last = size if high and high >= _FAR - 1 else end
            for bound in (begin, last):
                _check_sign(c, bound, size)
            x = slice_axis(c, x, axis, (begin, last), step)
            continue
        if low is None or high is None:
            raise UnsupportedFormError(
                f"a slice with step {step} needs constant bounds, got {to_text(begin)} and "
                f"{to_text(end)}"
            )
        x = c.apply("flip", c.plain(x), axes=(axis_of(axis, x.rank),))
        front = [as_expr(0) if k >= _FAR - 1 else _mirrored(size, k) for k in (low, high)]
        x = slice_axis(c, x, axis, (front[0], front[1]), -step)
    return x


def _check_sign(c: OnnxContext, bound: Expr, size: Expr) -> None:
    """Require that a bound of unknown sign does not count from the end, at run time if needed.

    A negative bound is taken as 0. It is 0 also if it counts from the end and is before the start.
    """
    facts = c.builder.facts
    if is_proved(bound >= 0, facts) or is_proved(bound < 0, facts):
        return
    within = minimum(maximum(-bound, 0), maximum(bound + size, 0)) <= 0
    if not is_proved(within, facts):
        reason = f"a slice bound must not count from the end for some sizes only: {to_text(bound)}"
        c.builder.check(Requirement(within, reason), c.origins)


def _mirrored(size: Expr, index: int) -> Expr:
    """Return an index of a slice with a negative step as an index of the reversed axis."""
    return as_expr(-1 - index) if index < 0 else maximum(size - 1 - index, 0)


def _sliced_by_data(c: OnnxContext) -> Formula:
    """Return a slice whose bounds, steps, or axes depend on data."""
    x = Formula(c, c.input(0))
    starts, ends = vector(c, c.input(1)), vector(c, c.input(2))
    count = constant_length(c, c.input(1))
    given = [c.optional(k) for k in (3, 4)]
    steps = Formula(c, c.uniform(1, starts.shape, i64)) if given[1] is None else vector(c, given[1])
    fixed = tuple(range(count)) if given[0] is None else c.known(3)
    if fixed is not None:
        for k, axis in enumerate(fixed):
            own = axis_of(axis, x.rank)
            ends_ = [v.at(0, k) for v in (starts, ends, steps)]
            x = sliced(c, x, own, bounds_of(c, x.shape[own], *ends_))
        return x
    axes = front_axes(vector(c, c.input(3)), x.rank)
    axes_mask(c, axes, count, x.rank)
    for axis in range(x.rank):
        own = axes.equal(axis)
        chosen = own.reduce("any", 0)
        low, high, step = (
            chosen.choose(own.choose(v, 0, i64).sum(0), other, i64)
            for v, other in ((starts, 0), (ends, _FAR), (steps, 1))
        )
        x = sliced(c, x, axis, bounds_of(c, x.shape[axis], low, high, step))
    return x


@onnx_op("ConstantOfShape")
def constant_of_shape(c: OnnxContext) -> Imported:
    """Import a tensor filled with one number."""
    value = c.attributes.get("value")
    array = np.zeros(1, np.float32) if value is None else np.asarray(value)
    dims = c.sizes(c.input(0))
    return c.uniform(array.ravel()[0].item(), dims, from_numpy(array.dtype))


@onnx_op("Range")
def range_(c: OnnxContext) -> Imported:
    """Import a range of numbers."""
    dtype = c.input(0).dtype
    bounds = [c.elements(convert(c, reshape(c, c.input(k), ()), i64)) for k in range(3)]
    if not dtype.is_integer or None in bounds:
        return _range_of_data(c).x
    start, stop, step = (b[0] for b in bounds if b)
    if const_value(step) != 1:
        return c.apply("arange", (start, stop, step), dtype=dtype.name)
    length = stop - start
    if not is_proved(length >= 0, c.builder.facts):
        length = maximum(length, 0)
    return Imported((length,), dtype, known=Iota(0, start))


def _range_of_data(c: OnnxContext) -> Formula:
    """Return the numbers from a start, at a distance, before a limit."""
    start, stop, step = (scalar(c, c.input(k)) for k in range(3))
    dtype = start.dtype
    if dtype.is_integer:
        away = (step > 0).choose(-1, 1, dtype)
        count = ((stop - start + step + away) // step).to(i64)
    else:
        wide = f64 if dtype is f64 else f32
        count = ((stop.to(wide) - start.to(wide)) / step.to(wide)).apply("ceil").to(i64)
    length = read_size(c, count.maximum(0))
    return start + positions(c, length).to(dtype) * step


@onnx_op("Trilu")
def trilu(c: OnnxContext) -> Imported:
    """Import the upper or lower triangle of matrices."""
    x, given, upper = c.input(0), c.optional(1), c.integer("upper", 1)
    known = (0,) if given is None else c.known(1)
    if known is not None:
        return c.apply("triu" if upper else "tril", c.plain(x), k=known[0])
    rows, columns = x.shape[-2:]
    diagonal = positions(c, columns) - positions(c, rows).unsqueeze(1)
    offset = scalar(c, c.input(1)).to(i64)
    kept = diagonal >= offset if upper else diagonal <= offset
    return where(c, kept.x, x, c.uniform(0, x.shape, x.dtype))


@onnx_op("Constant")
def constant(c: OnnxContext) -> Imported:
    """Import a constant stored in the graph."""
    if len(c.attributes) != 1:
        raise malformed(c.node, f"expected one attribute, got {len(c.attributes)}")
    ((name, value),) = c.attributes.items()
    if name not in _CONSTANTS:
        raise UnsupportedFormError(f"a constant with {name} is not supported")
    return c.literal(c.node.output[0], np.asarray(value, _CONSTANTS[name]))


@onnx_op("Gather")
def gather_(c: OnnxContext) -> Imported:
    """Import the lookup of slices by index."""
    x = c.input(0)
    return take(c, x, c.input(1), c.integer("axis", 0), wrap=True, name=c.leaf(x))


@onnx_op("GatherElements")
def gather_elements(c: OnnxContext) -> Imported:
    """Import the lookup of elements along one axis."""
    return gather(c, c.input(0), c.integer("axis", 0), c.input(1), wrap=True)


@onnx_op("GatherND")
def gather_nd(c: OnnxContext) -> Imported:
    """Import the lookup of slices by tuples of indices."""
    x, indices = c.input(0), c.input(1)
    batch = c.integer("batch_dims", 0)
    if batch:
        return _gather_in_batches(c, x, indices, batch)
    if isinstance(indices.known, Stacked):
        parts: Sequence[Imported] = indices.known.parts
    else:
        parts = _columns(c, indices, x.rank)
    if len(parts) > x.rank:
        raise UnsupportedFormError(
            f"expected at most {x.rank} indices per element, the rank of the data, got {len(parts)}"
        )
    return index(c, x, parts)


def _gather_in_batches(c: OnnxContext, x: Imported, indices: Imported, batch: int) -> Imported:
    """Look up slices of each batch: the indices of the batch precede those of the node."""
    shape = indices.shape[:-1]
    lead = [
        positions(c, size).unsqueeze(*range(1, len(shape) - k)).expand(*shape).x
        for k, size in enumerate(shape[:batch])
    ]
    return index(c, x, [*lead, *_columns(c, indices, x.rank - batch)])


def _columns(c: OnnxContext, indices: Imported, most: int) -> list[Imported]:
    """Return the indices of each axis; there are at most ``most``, the rank of the data."""
    count, axis = const_value(indices.shape[-1]), indices.rank - 1
    if count is None:
        raise UnsupportedFormError(
            f"the number of indices per element must be a constant, "
            f"got {to_text(indices.shape[-1])}"
        )
    if count > most:
        raise UnsupportedFormError(
            f"expected at most {most} indices per element, the rank of the data, got {count}"
        )
    cut = [slice_exact(c, indices, axis, (as_expr(k), as_expr(k + 1))) for k in range(count)]
    return [squeeze(c, x, (axis,)) for x in cut]
