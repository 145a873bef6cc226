"""Import handlers of ONNX operators that choose elements by comparing all pairs."""

from __future__ import annotations

from ..dtype import bool_, f32, i64
from ..graph.nodes import TensorInfo
from ..symbolic import product
from .control_flow import Iteration, LoopForm, emit_loop
from .formulas import Formula, number, positions, size_of, stacked
from .onnx_context import OnnxContext, onnx_op
from .onnx_given_sizes import scalar
from .onnx_scatter import counted_nonzero
from .shaping import axis_of
from .tensors import Imported


def _overlaps(c: OnnxContext, boxes: Formula) -> Formula:
    """Return the intersection over union of all pairs of boxes of each batch."""
    values = [boxes.at(2, k) for k in range(4)]
    if c.integer("center_point_box", 0):
        middle, half = values[:2], [v / 2.0 for v in values[2:]]
        ends = [(m - h, m + h) for m, h in zip(middle, half, strict=True)]
    else:
        ends = [(a.minimum(b), a.maximum(b)) for a, b in (values[0::2], values[1::2])]
    area = (ends[0][1] - ends[0][0]) * (ends[1][1] - ends[1][0])
    common = number(c, 1.0, boxes.dtype)
    for low, high in ends:
        start = low.unsqueeze(1).maximum(low.unsqueeze(2))
        common = common * (high.unsqueeze(1).minimum(high.unsqueeze(2)) - start).maximum(0.0)
    union = area.unsqueeze(1) + area.unsqueeze(2) - common
    real = (common > 0.0) & (union > 0.0)
    return real.choose(common, 0.0, boxes.dtype) / real.choose(union, 1.0, boxes.dtype)


@onnx_op("NonMaxSuppression")
def non_max_suppression(c: OnnxContext) -> Imported:
    """Import the choice of boxes by score that overlap no better box of the class too much.

    A loop visits the boxes of each class in the order of scores, for all classes at once.
    """
    boxes, scores = Formula(c, c.input(0)), Formula(c, c.input(1))
    batch, classes, count = scores.shape
    most = number(c, 0, i64) if c.optional(2) is None else scalar(c, c.input(2)).to(i64)
    limits = [
        number(c, 0.0, f32) if c.optional(k) is None else scalar(c, c.input(k)) for k in (3, 4)
    ]
    order = Formula(c, c.apply("argsort", c.plain(scores.x), axis=2, descending=True))
    sorted_scores = scores.call("gather_elements", order, axis=2)
    candidate = number(c, value=True, dtype=bool_).expand(*scores.shape)
    if c.optional(4) is not None:
        candidate = sorted_scores > limits[1]
    overlap = _overlaps(c, boxes) > limits[0]
    rows = overlap.to(i64).unsqueeze(1).expand(batch, classes, count, count)
    at = order.unsqueeze(3).expand(batch, classes, count, count)
    rows = rows.call("gather_elements", at, axis=2)
    other = order.unsqueeze(2).expand(batch, classes, count, count)
    rows = rows.call("gather_elements", other, axis=3).equal(1)
    given = [rows.permute(2, 0, 1, 3), candidate.permute(2, 0, 1)]

    def step(now: Iteration) -> tuple[list[Imported], list[Imported]]:
        kept = Formula(c, now.carried[0])
        close, valid = (Formula(c, v) for v in now.elements)
        blocked = (kept & close).reduce("any", 2)
        free = kept.to(i64).sum(2) < most
        chosen = (valid & ~blocked & free).unsqueeze(2)
        own = positions(c, count).equal(size_of(c, now.index))
        return [(kept | (chosen & own)).x], []

    start = c.uniform(value=False, shape=scores.shape, dtype=bool_)
    form = LoopForm([start], step, count=count, elements=[g.x for g in given])
    kept = counted_nonzero(c, Formula(c, emit_loop(c, form)[0]))
    lead = [kept.at(1, k) for k in range(3)]
    flat = (lead[0] * size_of(c, classes) + lead[1]) * size_of(c, count) + lead[2]
    box = order.reshape(product(scores.shape)).take(flat, 0)
    return stacked([lead[0], lead[1], box], 1).x


@onnx_op("Unique")
def unique(c: OnnxContext) -> list[Imported]:
    """Import distinct elements, or distinct slices along an axis."""
    if "axis" in c.attributes:
        return _unique_slices(c)
    x = c.input(0)
    count = c.symbol("values")
    found = c.emit("unique", c.plain(x))

    def known(position: int, name: str) -> Formula:
        info = TensorInfo((count,), i64 if position else x.dtype)
        item = c.builder.item(found, position)
        return Formula(c, c.tensor(c.builder.match_cast(item, info, name=name)))

    numbers = Formula(c, c.tensor(c.builder.item(found, 2))).reshape(product(x.shape))
    parts = [known(0, "values"), known(1, "positions"), known(3, "counts")]
    return _in_order(c, parts, numbers, 0)


def _in_order(c: OnnxContext, parts: list[Formula], numbers: Formula, axis: int) -> list[Imported]:
    """Return values, first positions, numbers, and counts, in the order that the node states."""
    values, first, counts = parts
    if c.integer("sorted", 1):
        return [values.x, first.x, numbers.x, counts.x]
    order = first.call("argsort")
    rank = order.call("argsort")
    return [
        values.take(order, axis).x, first.take(order, 0).x, rank.take(numbers, 0).x,
        counts.take(order, 0).x,
    ]  # fmt: skip


def _unique_slices(c: OnnxContext) -> list[Imported]:
    """Return distinct slices, which are compared in pairs, in lexicographic order."""
    x = Formula(c, c.input(0))
    axis = axis_of(c.integer("axis"), x.rank)
    order = [axis, *(k for k in range(x.rank) if k != axis)]
    size = x.shape[axis]
    rows = x.permute(*order).reshape(size, product([x.shape[k] for k in order[1:]]))
    left, right = rows.unsqueeze(1), rows.unsqueeze(0)
    differs = ~left.equal(right)
    shape = differs.shape
    at = Formula(
        c, c.apply("argmax", c.plain(differs.to(i64).x), axis=2, keepdims=True)
    )  # the first difference
    below = (left < right).expand(*shape).to(i64).call("gather_elements", at, axis=2).squeeze(2)
    same = ~differs.reduce("any", 2)
    less = below.equal(1) & ~same
    earlier = positions(c, size).unsqueeze(0) < positions(c, size).unsqueeze(1)
    new = ~(same & earlier).reduce("any", 1)
    group = (less.permute(1, 0) & new.unsqueeze(0)).to(i64).sum(1)
    chosen = counted_nonzero(c, new)
    first = chosen.at(1, 0)
    first = first.take(group.take(first, 0).call("argsort"), 0)
    counts = same.to(i64).sum(1).take(first, 0)
    return _in_order(c, [x.take(first, axis), first, counts], group, axis)
