"""Import handlers of the ONNX operators with subgraphs: If, Loop, Scan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ..dtype import bool_, i64
from ..graph.nodes import TensorInfo
from ..symbolic import Expr, as_expr, const_value, free_vars, maximum, to_text
from .control_flow import Iteration, LoopForm, emit_choice, emit_loop
from .elementwise import convert
from .onnx_context import Datum, OnnxContext, onnx_op, tensor_of
from .shaping import concat, expand_dims, reshape
from .tensors import Imported, StackedSequence, TensorSequence, Uniform
from .unsupported import UnsupportedFormError

_MOST_UNROLLED: Final = 256
"""The most iterations of a loop that is unrolled."""


@onnx_op("If")
def if_(c: OnnxContext) -> Sequence[Datum]:
    """Import a branch, whose sides have no inputs; a known condition selects one of them."""
    sides = [c.attributes[name] for name in ("then_branch", "else_branch")]
    known = c.elements(reshape(c, c.input(0), ()))
    if known is not None and const_value(known[0]) is not None:
        return c.translate(sides[0 if const_value(known[0]) else 1], ())
    return emit_choice(
        c, c.input(0), lambda: c.subgraph(sides[0], ()), lambda: c.subgraph(sides[1], ())
    )


@onnx_op("Loop")
def loop(c: OnnxContext) -> Sequence[Datum]:
    """Import a loop with a trip count, a condition that it carries, or both.

    The condition that a body returns is the condition of the next iteration. A loop that carries a
    sequence is unrolled, because the length of the sequence differs between iterations. If that is
    not possible, but the body only appends to the sequence, its tensors are a stacked output.
    """
    body, first = c.attributes["body"], c.optional(1)
    count, carries = _count(c, c.optional(0)), _is_condition(c, body, first)
    given = [x for x in c.inputs[2:] if x is not None]
    lists = {k: x for k, x in enumerate(given) if not isinstance(x, Imported)}
    appended = all(_is_appended(body, k, x) for k, x in lists.items())
    if lists and (_is_unrolled(count, carries=carries) or not appended):
        return _unrolled(c, body, count, carries=carries)
    true = c.uniform(value=True, shape=(), dtype=bool_)
    start = true if first is None else convert(c, reshape(c, first, ()), bool_)
    held = [start] if carries else []

    def step(now: Iteration) -> tuple[Sequence[Imported], Sequence[Imported]]:
        index = reshape(c, c.apply("shape_to_tensor", (now.index,)), ())
        condition = now.carried[0] if carries else true
        own = iter(now.carried[len(held) :])
        values = [lists[k] if k in lists else next(own) for k in range(len(given))]
        going, *made = c.translate(body, (convert(c, index, i64), condition, *values))
        following, appended = list[Imported](), list[Imported]()
        for k, (x, value) in enumerate(zip(made, given, strict=False)):
            if isinstance(x, TensorSequence):
                appended.append(x.items[-1])
            else:
                following.append(_as_declared(c, body, k, *_tensors(value, x)))
        stacked = [
            _as_stacked(c, output, tensor_of(x, "a scan output"), now.index)
            for output, x in zip(body.output[1 + len(given) :], made[len(given) :], strict=True)
        ]
        again = [convert(c, reshape(c, tensor_of(going, "the condition"), ()), bool_)]
        return [*(again if carries else ()), *following], [*appended, *stacked]

    tensors = [x for x in given if isinstance(x, Imported)]
    form = LoopForm(
        [*held, *tensors], step, (lambda now: now.carried[0]) if carries else None, count
    )
    found = emit_loop(c, form)[len(held) :]
    finals, stacks = iter(found[: len(tensors)]), iter(found[len(tensors) :])
    results = [
        StackedSequence(next(stacks)) if k in lists else next(finals) for k in range(len(given))
    ]
    return [*results, *stacks]


def _tensors(given: Datum, made: Datum) -> tuple[Imported, Imported]:
    return tensor_of(given, "a carried value"), tensor_of(made, "the next value")


def _is_appended(body: Any, position: int, given: Datum) -> bool:
    """Return whether a sequence is empty at first, and the body only appends one tensor to it."""
    name, result = body.input[position + 2].name, body.output[position + 1].name
    users = [n for n in body.node if name in _names_in(n)]
    if not isinstance(given, TensorSequence) or given.items or len(users) != 1:
        return False
    at_end = users[0].op_type == "SequenceInsert" and not any(users[0].input[2:])
    uses = sum(result in _names_in(n) for n in body.node) + [o.name for o in body.output].count(
        result
    )
    return at_end and users[0].input[0] == name and users[0].output[0] == result and uses == 1


def _names_in(node: Any) -> set[str]:
    """Return the names of the values that a node or its subgraphs read."""
    graphs = [g for a in node.attribute for g in (a.g, *a.graphs)]
    inner = (_names_in(n) | set[str](o.name for o in g.output) for g in graphs for n in g.node)
    return set(node.input).union(*inner, *({o.name for o in g.output} for g in graphs))


def _as_declared(
    c: OnnxContext, body: Any, position: int, given: Imported, made: Imported
) -> Imported:
    """Return the next value of a carried tensor with the sizes that the body declares for both.

    They are checked at run time, if they are those of the initial value but not proved.
    """
    declared = [_sizes(v) for v in (body.input[position + 2], body.output[position + 1])]
    if not all(len(d) == made.rank == given.rank for d in declared):
        return made
    known = [
        own if own == then == const_value(first) else None
        for own, then, first in zip(*declared, given.shape, strict=True)
    ]
    return _refined(c, made, known)


def _as_stacked(c: OnnxContext, declared: Any, made: Imported, index: Expr) -> Imported:
    """Return the slice of a stacked output with declared sizes for those of each iteration."""
    sizes = _sizes(declared)
    if len(sizes) != made.rank:
        return made
    known = [
        own if index in free_vars(now) else None for own, now in zip(sizes, made.shape, strict=True)
    ]
    return _refined(c, made, known)


def _sizes(declared: Any) -> list[int | None]:
    dims = declared.type.tensor_type.shape.dim
    return [d.dim_value if d.HasField("dim_value") else None for d in dims]


def _refined(c: OnnxContext, x: Imported, known: Sequence[int | None]) -> Imported:
    """Return a tensor with known sizes, which are checked at run time."""
    shape = tuple(
        now if size is None or const_value(now) is not None else as_expr(size)
        for size, now in zip(known, x.shape, strict=True)
    )
    if shape == x.shape:
        return x
    info = TensorInfo(shape, x.dtype)
    return c.tensor(c.builder.match_cast(c.plain(x), info, name="declared"))


def _is_unrolled(count: Expr | None, *, carries: bool) -> bool:
    trips = None if count is None else const_value(count)
    return trips is not None and not carries and trips <= _MOST_UNROLLED


def _unrolled(c: OnnxContext, body: Any, count: Expr | None, *, carries: bool) -> Sequence[Datum]:
    """Translate each iteration of a loop with a constant trip count and no condition."""
    trips = None if count is None else const_value(count)
    if trips is None or not _is_unrolled(count, carries=carries):
        found = "a condition" if carries or count is None else f"{to_text(count)} iterations"
        raise UnsupportedFormError(
            f"the loop carries a sequence of tensors and has {found}; expected a constant number "
            f"of at most {_MOST_UNROLLED} iterations and no condition",
            hint="carry a tensor to which the body concatenates, or use a scan output",
        )
    carried = [x for x in c.inputs[2:] if x is not None]
    slices: list[list[Imported]] = [[] for _ in body.output[1 + len(carried) :]]
    true = c.uniform(value=True, shape=(), dtype=bool_)
    for k in range(trips):
        index = c.uniform(k, (), i64)
        _, *made = c.translate(body, (index, true, *carried))
        carried, stacked = made[: len(carried)], made[len(carried) :]
        for own, x in zip(slices, stacked, strict=True):
            own.append(expand_dims(c, tensor_of(x, "a scan output"), (0,)))
    if slices and not trips:
        raise UnsupportedFormError("the scan outputs of a loop without iterations have no shape")
    return [*carried, *(concat(c, own, 0) for own in slices)]


def _is_condition(c: OnnxContext, body: Any, first: Imported | None) -> bool:
    """Return whether the condition of a loop may be false: initially, or in a later iteration."""
    result, given = body.output[0].name, body.input[1].name
    same = {given} | {
        n.output[0] for n in body.node if n.op_type == "Identity" and n.input[0] == given
    }
    initially = first is None or first.known == Uniform(value=True)
    return c.optional(0) is None or not initially or result not in same


def _count(c: OnnxContext, given: Imported | None) -> Expr | None:
    """Return the trip count as a term; one that depends on data is read when the loop starts."""
    if given is None:
        return None
    scalar = reshape(c, given, ())
    known = c.elements(scalar)
    if known is None:
        symbol = c.symbol("trips", lower=None)
        plain = c.plain(convert(c, scalar, i64))
        info = TensorInfo((), i64, elements=(symbol,))
        c.builder.match_cast(plain, info, name="trip_count")
        return maximum(symbol, 0)
    return maximum(next(iter(known)), 0)


@onnx_op("Scan")
def scan(c: OnnxContext) -> list[Imported]:
    """Import a scan over any axes in both directions."""
    if c.opset < 9:
        raise UnsupportedFormError("Scan with a batch axis (opset 8) is not supported")
    body, inputs, count = c.attributes["body"], c.given(), c.integer("num_scan_inputs")
    carried, sources = inputs[: len(inputs) - count], inputs[len(inputs) - count :]
    outputs = len(body.output) - len(carried)
    axes = c.attributes.get("scan_input_axes") or [0] * count
    back = c.attributes.get("scan_input_directions") or [0] * count
    slices = [
        _flipped(c, _moved(c, x, axis % x.rank, 0), backward=bool(way))
        for x, axis, way in zip(sources, axes, back, strict=True)
    ]
    if not slices:
        raise UnsupportedFormError("a scan without stacked inputs has no number of iterations")
    length = slices[0].shape[0]
    for other in slices[1:]:
        length = c.same_size(length, other.shape[0], "stacked inputs have one length")

    def step(now: Iteration) -> tuple[Sequence[Imported], Sequence[Imported]]:
        made = c.subgraph(body, (*now.carried, *now.elements))
        return made[: len(carried)], made[len(carried) :]

    found = emit_loop(c, LoopForm(carried, step, count=length, elements=slices))
    axes = c.attributes.get("scan_output_axes") or [0] * outputs
    back = c.attributes.get("scan_output_directions") or [0] * outputs
    stacked = [
        _moved(c, _flipped(c, x, backward=bool(way)), 0, axis % x.rank)
        for x, axis, way in zip(found[len(carried) :], axes, back, strict=True)
    ]
    return [*found[: len(carried)], *stacked]


def _moved(c: OnnxContext, x: Imported, source: int, target: int) -> Imported:
    """Move an axis."""
    if source == target:
        return x
    order = [k for k in range(x.rank) if k != source]
    order.insert(target, source)
    return c.apply("permute_dims", c.plain(x), axes=tuple(order))


def _flipped(c: OnnxContext, x: Imported, *, backward: bool) -> Imported:
    """Reverse axis 0 if a scan runs backward."""
    return c.apply("flip", c.plain(x), axes=(0,)) if backward else x
