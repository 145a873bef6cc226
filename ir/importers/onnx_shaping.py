"""Import handlers of ONNX operators that create, reshape, and index tensors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from ..dtype import from_numpy, i64
from ..symbolic import Expr, as_expr, const_value, eq, is_proved, maximum, product, to_text, total
from .elementwise import convert
from .indexing import gather, index, take
from .onnx_context import OnnxContext, onnx_op
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
    x, dims = c.input(0), list(c.values(c.input(1)))
    if not c.integer("allowzero", 0):
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
    return expand_dims(c, c.input(0), c.axes(1, attribute_below=13) or ())


@onnx_op("Squeeze")
def squeeze_(c: OnnxContext) -> Imported:
    """Import the removal of dimensions of size 1."""
    x = c.input(0)
    axes = c.axes(1, attribute_below=13)
    if axes is None:
        axes = [k for k, d in enumerate(x.shape) if is_proved(eq(d, 1), c.builder.facts)]
    return squeeze(c, x, axes)


@onnx_op("Expand")
def expand_(c: OnnxContext) -> Imported:
    """Import a bidirectional broadcast."""
    x, dims = c.input(0), c.values(c.input(1))
    return expand(c, x, c.broadcast_shapes([x.shape, dims]))


@onnx_op("Tile")
def tile(c: OnnxContext) -> Imported:
    """Import the repetition of a tensor along its dimensions."""
    found = c.input(0)
    for axis, times in enumerate(c.values(c.input(1))):
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
        return c.values(given)
    if "split" in c.attributes:
        return [as_expr(s) for s in c.attributes["split"]]
    count = c.integer("num_outputs", len(c.node.output))
    known = const_value(whole)
    if known is None or known % count:
        raise UnsupportedFormError(
            f"a split into {count} equal parts needs a constant size divisible by {count}, "
            f"got {to_text(whole)}"
        )
    return [as_expr(known // count)] * count


@onnx_op("Slice")
def slice_(c: OnnxContext) -> Imported:
    """Import a slice along axes; bounds follow the rules of Python slices."""
    found = c.input(0)
    if c.opset < 10:
        begins, ends = (list(map(as_expr, c.attributes[name])) for name in ("starts", "ends"))
        axes_given, steps_given = None, None
    else:
        begins, ends = list(c.values(c.input(1))), list(c.values(c.input(2)))
        axes_given, steps_given = c.optional(3), c.optional(4)
    of_all = c.attributes.get("axes") or range(len(begins))
    axes = of_all if axes_given is None else c.fixed(axes_given)
    steps = [1] * len(begins) if steps_given is None else c.fixed(steps_given)
    for axis, begin, end, step in zip(axes, begins, ends, steps, strict=True):
        if step < 1:
            raise UnsupportedFormError(f"slice step {step} is not supported; steps must be >= 1")
        far = const_value(end)
        last = found.shape[axis_of(axis, found.rank)] if far and far >= _FAR - 1 else end
        found = slice_axis(c, found, axis, (begin, last), step)
    return found


@onnx_op("ConstantOfShape")
def constant_of_shape(c: OnnxContext) -> Imported:
    """Import a tensor filled with one number."""
    value = c.attributes.get("value")
    array = np.zeros(1, np.float32) if value is None else np.asarray(value)
    dims = c.values(c.input(0))
    return c.uniform(array.ravel()[0].item(), dims, from_numpy(array.dtype))


@onnx_op("Range")
def range_(c: OnnxContext) -> Imported:
    """Import a range of numbers."""
    dtype = c.input(0).dtype
    (start,), (stop,), (step,) = (c.values(convert(c, c.input(k), i64)) for k in range(3))
    if const_value(step) != 1 or not dtype.is_integer:
        return c.apply("arange", (start, stop, step), dtype=dtype.name)
    length = stop - start
    if not is_proved(length >= 0, c.builder.facts):
        length = maximum(length, 0)
    return Imported((length,), dtype, known=Iota(0, start))


@onnx_op("Trilu")
def trilu(c: OnnxContext) -> Imported:
    """Import the upper or lower triangle of matrices."""
    given = c.optional(1)
    k = 0 if given is None else c.fixed(given)[0]
    return c.apply("triu" if c.integer("upper", 1) else "tril", c.plain(c.input(0)), k=k)


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
    if c.integer("batch_dims", 0):
        raise UnsupportedFormError(
            f"batch_dims={c.integer('batch_dims')} is not supported; only batch_dims=0 is"
        )
    if isinstance(indices.known, Stacked):
        parts: Sequence[Imported] = indices.known.parts
    else:
        parts = _columns(c, indices, x.rank)
    if len(parts) > x.rank:
        raise UnsupportedFormError(
            f"expected at most {x.rank} indices per element, the rank of the data, got {len(parts)}"
        )
    return index(c, x, parts)


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


@onnx_op("ScatterElements")
def scatter_elements(c: OnnxContext) -> Imported:
    """Import the write of elements by index, or their addition."""
    reduction = c.attributes.get("reduction", "none")
    if reduction not in ("none", "add"):
        raise UnsupportedFormError(
            f"reduction={reduction} is not supported; only reduction=none and reduction=add are"
        )
    x = c.input(0)
    args = [c.plain(v) for v in c.given()]
    op = "scatter_add" if reduction == "add" else "scatter_elements"
    return c.apply(op, *args, axis=axis_of(c.integer("axis", 0), x.rank), wrap=True)
