"""Import handlers of ONNX operators that write or select elements by index or mask."""

from __future__ import annotations

from typing import Final

from ..dtype import i64
from ..graph.nodes import TensorInfo
from ..symbolic import Expr, as_expr, const_value, product, to_text
from .elementwise import where
from .formulas import Formula, joined, positions, size_of
from .indexing import index
from .onnx_context import OnnxContext, onnx_op
from .onnx_file import onnx_dtype
from .onnx_given_sizes import read_size, scalar
from .onnx_schema import malformed
from .shaping import axis_of
from .tensors import Imported
from .unsupported import UnsupportedFormError

_REDUCTIONS: Final = {"add": "sum", "mul": "mul", "max": "max", "min": "min"}


def _reduction(c: OnnxContext) -> str:
    """Return the reduction of a node as that of ``scatter_reduce``; empty for replacement."""
    found = str(c.attributes.get("reduction", "none"))
    if found == "none":
        return ""
    if found not in _REDUCTIONS:
        raise malformed(c.node, f"reduction {found!r} is not one of none, add, mul, max, min")
    return _REDUCTIONS[found]


@onnx_op("ScatterElements", "Scatter")
def scatter_elements(c: OnnxContext) -> Imported:
    """Import the write of elements by index, or their combination."""
    x = c.input(0)
    args = [c.plain(v) for v in c.given()]
    axis, reduction = axis_of(c.integer("axis", 0), x.rank), _reduction(c)
    if reduction in ("", "sum"):
        op = "scatter_add" if reduction else "scatter_elements"
        return c.apply(op, *args, axis=axis, wrap=True)
    return c.apply("scatter_reduce", *args, axis=axis, wrap=True, reduction=reduction)


@onnx_op("ScatterND")
def scatter_nd(c: OnnxContext) -> Imported:
    """Import the write or combination of slices at tuples of indices of the leading axes."""
    x, indices, updates = (Formula(c, c.input(k)) for k in range(3))
    count = const_value(indices.shape[-1])
    if count is None or count > x.rank:
        raise UnsupportedFormError(
            f"expected a constant number of at most {x.rank} indices per slice, got "
            f"{to_text(indices.shape[-1])}"
        )
    lead, rest = x.shape[:count], x.shape[count:]
    rows = positions(c, product(lead)).reshape(*lead)
    columns = [indices.at(indices.rank - 1, k).x for k in range(count)]
    at = Formula(c, index(c, rows.x, columns)) if count else rows.expand(*indices.shape[:-1])
    number = product(indices.shape[:-1])
    at, flat = at.reshape(number), x.reshape(product(lead), *rest)
    made = updates.reshape(number, *rest)
    reduction = _reduction(c)
    if reduction in ("", "sum"):
        op = "index_add" if reduction else "index_copy"
        return flat.call(op, at, made, axis=0).reshape(*x.shape).x
    wide = at.unsqueeze(*range(1, 1 + len(rest))).expand(number, *rest)
    found = flat.call("scatter_reduce", wide, made, axis=0, reduction=reduction)
    return found.reshape(*x.shape).x


@onnx_op("TensorScatter")
def tensor_scatter(c: OnnxContext) -> Imported:
    """Import the update of a cache: one range of positions per batch, perhaps modulo its size."""
    x, updates, start = c.input(0), c.input(1), c.optional(2)
    axis = axis_of(c.integer("axis", -2), x.rank)
    at = positions(c, updates.shape[axis])
    if start is not None:
        at = Formula(c, start).to(i64).unsqueeze(1) + at
    if c.attributes.get("mode", "linear") == "circular":
        at = at % size_of(c, x.shape[axis])
    after = tuple(range(at.rank, at.rank + x.rank - 1 - axis))
    aligned = at.unsqueeze(*after)
    if start is not None and axis > 1:
        aligned = aligned.unsqueeze(*range(1, axis))
    args = [c.plain(v) for v in (x, aligned.expand(*updates.shape).x, updates)]
    return c.apply("scatter_elements", *args, axis=axis)


@onnx_op("OneHot")
def one_hot(c: OnnxContext) -> Imported:
    """Import a mask of indices with two values; indices out of range select none."""
    indices, values = Formula(c, c.input(0)).to(i64), Formula(c, c.input(2))
    depth = read_size(c, scalar(c, c.input(1)).to(i64))
    axis = axis_of(c.integer("axis", -1), indices.rank + 1)
    front = (indices < 0).choose(indices + size_of(c, depth), indices, i64)
    counted = positions(c, depth).unsqueeze(*range(1, indices.rank + 1 - axis))
    mask = front.unsqueeze(axis).equal(counted)
    return where(c, mask.x, values.at(0, 1).x, values.at(0, 0).x)


@onnx_op("EyeLike")
def eye_like(c: OnnxContext) -> Imported:
    """Import a matrix of ones on one diagonal."""
    x = c.input(0)
    code = c.attributes.get("dtype")
    dtype = x.dtype if code is None else onnx_dtype(code, "EyeLike")
    rows, columns = x.shape
    offset = positions(c, columns) - positions(c, rows).unsqueeze(1)
    return offset.equal(c.integer("k", 0)).to(dtype).x


def counted_nonzero(c: OnnxContext, mask: Formula) -> Formula:
    """Return the indices of the elements of a mask; their number is known at run time."""
    info = TensorInfo((c.symbol("chosen"), as_expr(mask.rank)), i64)
    found = c.builder.match_cast(c.emit("nonzero", c.plain(mask.x)), info, name="indices")
    return Formula(c, c.tensor(found))


@onnx_op("Compress")
def compress(c: OnnxContext) -> Imported:
    """Import the selection of slices along an axis, or of elements, by a mask."""
    x, axis = Formula(c, c.input(0)), c.attributes.get("axis")
    if axis is None:
        x, axis = x.reshape(product(x.shape)), 0
    chosen = counted_nonzero(c, Formula(c, c.input(1)))
    return x.take(chosen.at(1, 0), axis_of(axis, x.rank)).x


@onnx_op("ReverseSequence")
def reverse_sequence(c: OnnxContext) -> Imported:
    """Import the reversal of the first elements of each sequence of a batch."""
    x, lengths = Formula(c, c.input(0)), Formula(c, c.input(1)).to(i64)
    batch, time = c.integer("batch_axis", 1), c.integer("time_axis", 0)
    return reversed_sequences(x, lengths, batch, time).x


def reversed_sequences(x: Formula, lengths: Formula, batch: int, time: int) -> Formula:
    """Reverse the first elements along an axis, as many as a vector states for the batch."""
    steps = positions(x.e, x.shape[time])
    steps = steps.unsqueeze(*(k for k in range(x.rank) if k != time))
    counts = lengths.unsqueeze(*(k for k in range(x.rank) if k != batch))
    at = (steps < counts).choose(counts - 1 - steps, steps, i64)
    return x.call("gather_elements", at.expand(*x.shape), axis=time)


@onnx_op("MaxUnpool")
def max_unpool(c: OnnxContext) -> Imported:
    """Import the write of elements at the positions that MaxPool returned, in zeros."""
    x, at, given = Formula(c, c.input(0)), Formula(c, c.input(1)), c.optional(2)
    kernel = c.attributes["kernel_shape"]
    strides = c.attributes.get("strides") or [1] * len(kernel)
    pads = c.attributes.get("pads") or [0] * 2 * len(kernel)
    sizes = list(x.shape[:2])
    for k, extent in enumerate(kernel):
        whole = (x.shape[k + 2] - 1) * strides[k] + extent
        sizes.append(whole - pads[k] - pads[k + len(kernel)])
    wanted = tuple(sizes) if given is None else c.sizes(given)
    count, total = product(x.shape), product(sizes)
    zeros = Formula(c, c.uniform(0, (total,), x.dtype))
    found = zeros.call("index_copy", at.reshape(count), x.reshape(count), axis=0)
    found = found.reshape(*sizes)
    return _extended(c, found, wanted).x if given is not None else found.x


def _extended(c: OnnxContext, x: Formula, shape: tuple[Expr, ...]) -> Formula:
    """Return a tensor with zeros after its elements, up to a shape."""
    for axis, size in enumerate(shape):
        more = size - x.shape[axis]
        if const_value(more) != 0:
            (count,) = c.read(size_of(c, more).x) if const_value(more) is None else (more,)
            dims = (*x.shape[:axis], count, *x.shape[axis + 1 :])
            x = joined([x, Formula(c, c.uniform(0, dims, x.dtype))], axis)
    return x
