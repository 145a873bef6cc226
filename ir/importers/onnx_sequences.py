"""Import handlers of the ONNX operators on sequences of tensors.

The length of a sequence is a constant, so its operators only choose among values; or it consists of
the tensors that a loop appends, and is their stack. No program contains a sequence.
"""

from __future__ import annotations

from itertools import pairwise

from ..dtype import bool_, f32, i64
from ..symbolic import Expr, as_expr, const_value, eq, is_proved, to_text
from .elementwise import convert
from .indexing import take
from .onnx_context import Datum, OnnxContext, onnx_op
from .onnx_file import onnx_dtype
from .onnx_schema import malformed
from .shaping import axis_of, concat, expand_dims, reshape, slice_exact
from .tensors import Imported, StackedSequence, TensorSequence
from .unsupported import UnsupportedFormError


@onnx_op("OptionalHasElement")
def optional_has_element(c: OnnxContext) -> Imported:
    """Import whether an optional value is present, which is known at import."""
    present = bool(c.inputs) and c.inputs[0] is not None
    return c.uniform(value=present, shape=(), dtype=bool_)


@onnx_op("Optional", "OptionalGetElement")
def optional_element(c: OnnxContext) -> Datum:
    """Import the value of an optional that is present."""
    found = c.inputs[0] if c.inputs else None
    if found is None:
        raise UnsupportedFormError("an optional without a value has no tensor")
    return found


@onnx_op("SequenceEmpty")
def sequence_empty(c: OnnxContext) -> TensorSequence:
    """Import a sequence without tensors."""
    code = c.attributes.get("dtype")
    return TensorSequence((), f32 if code is None else onnx_dtype(code, "a sequence"))


@onnx_op("SequenceConstruct")
def sequence_construct(c: OnnxContext) -> TensorSequence:
    """Import a sequence of given tensors."""
    items = c.given()
    return TensorSequence(tuple(items), items[0].dtype)


@onnx_op("SequenceInsert")
def sequence_insert(c: OnnxContext) -> TensorSequence:
    """Import the insertion of a tensor, by default at the end."""
    sequence, x = c.sequence(0), c.input(1)
    if x.dtype != sequence.dtype:
        text = f"the sequence contains tensors of dtype {sequence.dtype}, got {x.dtype}"
        raise malformed(c.node, text)
    at = _position(c, 2, len(sequence.items) + 1, default=len(sequence.items))
    items = (*sequence.items[:at], x, *sequence.items[at:])
    return TensorSequence(items, sequence.dtype)


@onnx_op("SequenceErase")
def sequence_erase(c: OnnxContext) -> TensorSequence:
    """Import the removal of a tensor, by default of the last one."""
    sequence = c.sequence(0)
    at = _position(c, 1, len(sequence.items), default=len(sequence.items) - 1)
    return TensorSequence((*sequence.items[:at], *sequence.items[at + 1 :]), sequence.dtype)


@onnx_op("SequenceLength")
def sequence_length(c: OnnxContext) -> Imported:
    """Import the number of tensors."""
    if isinstance(found := c.inputs[0], StackedSequence):
        length = c.apply("shape_to_tensor", (found.stack.shape[0],))
        return convert(c, reshape(c, length, ()), i64)
    return c.uniform(len(c.sequence(0).items), (), i64)


@onnx_op("SequenceAt")
def sequence_at(c: OnnxContext) -> Imported:
    """Import the selection of a tensor; one at a computed position is selected from a stack."""
    at = reshape(c, c.input(1), ())
    if isinstance(found := c.inputs[0], StackedSequence):
        return take(c, found.stack, at, 0, wrap=True)
    sequence = c.sequence(0)
    known = c.elements(at)
    if known is not None and const_value(known[0]) is not None:
        return sequence.items[_position(c, 1, len(sequence.items), default=0)]
    first = sequence.items[0] if sequence.items else None
    if first is None or not all(_alike(c, first, x) for x in sequence.items):
        raise UnsupportedFormError(
            "the position depends on data or on the iteration of a loop, and the tensors of the "
            "sequence have different shapes",
            hint="pad the tensors to one shape, or select by a constant position",
        )
    stack = concat(c, [expand_dims(c, x, (0,)) for x in sequence.items], 0)
    return take(c, stack, at, 0, wrap=True)


@onnx_op("SplitToSequence")
def split_to_sequence(c: OnnxContext) -> TensorSequence:
    """Import the parts of a tensor along an axis, by default of size 1."""
    x = c.input(0)
    axis = axis_of(c.integer("axis", 0), x.rank)
    starts = [as_expr(0)]
    for size in _parts(c, x.shape[axis]):
        starts.append(starts[-1] + size)
    c.same_size(x.shape[axis], starts[-1], "the sizes of a split must sum to the dimension")
    items = [slice_exact(c, x, axis, bounds) for bounds in pairwise(starts)]
    if c.optional(1) is None and not c.integer("keepdims", 1):
        items = [reshape(c, i, (*i.shape[:axis], *i.shape[axis + 1 :])) for i in items]
    return TensorSequence(tuple(items), x.dtype)


@onnx_op("ConcatFromSequence")
def concat_from_sequence(c: OnnxContext) -> Imported:
    """Import the concatenation of all tensors, along a new axis if stated."""
    new = bool(c.integer("new_axis", 0))
    if isinstance(found := c.inputs[0], StackedSequence):
        return _concat_stacked(c, found.stack, new=new)
    items = list(c.sequence(0).items)
    if not items:
        raise UnsupportedFormError("a concatenation of an empty sequence has no shape")
    axis = axis_of(c.integer("axis"), items[0].rank + new)
    return concat(c, [expand_dims(c, x, (axis,)) if new else x for x in items], axis)


def _concat_stacked(c: OnnxContext, stack: Imported, *, new: bool) -> Imported:
    """Concatenate the slices of a stack along an axis of theirs, or along a new one."""
    axis = axis_of(c.integer("axis"), stack.rank - 1 + new)
    order = (*range(1, axis + 1), 0, *range(axis + 1, stack.rank))
    moved = stack if not axis else c.apply("permute_dims", c.plain(stack), axes=order)
    if new:
        return moved
    shape = moved.shape
    return reshape(c, moved, (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))


def _parts(c: OnnxContext, whole: Expr) -> tuple[Expr, ...]:
    """Return the sizes of the parts of a split, whose number is a constant."""
    given = c.optional(1)
    if given is not None and given.rank:
        return c.values(given)
    size, known = 1 if given is None else c.fixed(given)[0], const_value(whole)
    if known is None:
        raise UnsupportedFormError(
            f"a split into parts of {size} needs a dimension of constant size, got "
            f"{to_text(whole)}",
            hint="state the size of each part, or replace the sequence by a loop with scan inputs",
        )
    if size < 1:
        raise malformed(c.node, f"the size of the parts must be at least 1, got {size}")
    return tuple(as_expr(min(size, known - k)) for k in range(0, known, size))


def _position(c: OnnxContext, operand: int, count: int, *, default: int) -> int:
    """Return a position, which must be a constant; negative ones count from the end."""
    given = c.optional(operand)
    at = default if given is None else c.fixed(given)[0]
    if not -count <= at < count or not count:
        length = len(c.sequence(0).items)
        raise malformed(c.node, f"position {at} is out of range of a sequence of length {length}")
    return at % count


def _alike(c: OnnxContext, a: Imported, b: Imported) -> bool:
    pairs = zip(a.shape, b.shape, strict=False)
    return a.rank == b.rank and all(
        x is y or is_proved(eq(x, y), c.builder.facts) for x, y in pairs
    )
