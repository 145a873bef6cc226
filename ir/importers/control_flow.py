"""Emission of branches and loops; the importers translate the bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ..dtype import bool_
from ..graph.loops import loop_info
from ..graph.nodes import (
    Branch,
    ConstantRef,
    IfElse,
    Info,
    Loop,
    LoopParam,
    Rhs,
    TensorInfo,
    TupleInfo,
    Value,
)
from ..graph.visit import loop_symbols
from ..symbolic import ContradictoryFactsError, Expr, Var, eq, is_proved, to_text
from .elementwise import convert
from .emitter import Emitter
from .shaping import reshape
from .tensors import Imported
from .unsupported import UnsupportedFormError

Tensors = Sequence[Imported]


@dataclass(frozen=True, slots=True)
class Iteration:
    """The values of one iteration: its index, the carried values, and the slices."""

    index: Var
    carried: list[Imported]
    elements: list[Imported]


@dataclass(frozen=True, slots=True)
class LoopForm:
    """A loop of a source model.

    Parameters
    ----------
    carried : sequence of Imported
        The initial values.
    body : callable
        The translation of the body: the next values and the slices of stacked outputs.
    condition : callable, optional
        The translation of the condition of an iteration.
    count : Expr, optional
        The most iterations.
    elements : sequence of Imported
        The stacked inputs, with axis 0 as the axis of the iterations.
    """

    carried: Tensors
    body: Callable[[Iteration], tuple[Tensors, Tensors]]
    condition: Callable[[Iteration], Imported] | None = None
    count: Expr | None = None
    elements: Tensors = ()


def test(e: Emitter, x: Imported) -> Value | ConstantRef:
    """Return a condition as a bool tensor of shape ``()``."""
    if x.rank and not all(is_proved(eq(d, 1), e.builder.facts) for d in x.shape):
        shape = ", ".join(map(to_text, x.shape))
        raise UnsupportedFormError(f"expected a condition of one element, got shape ({shape})")
    return e.plain(convert(e, reshape(e, x, ()), bool_))


def emit_choice(
    e: Emitter,
    condition: Imported,
    then: Callable[[], Tensors],
    otherwise: Callable[[], Tensors],
) -> list[Imported]:
    """Emit a branch; both sides return tensors of the same shapes and dtypes."""
    chosen = test(e, condition)
    sides: list[Branch] = []
    infos: list[tuple[TensorInfo, ...]] = []
    for side in (then, otherwise):
        with e.region() as bindings:
            results = [e.plain(x) for x in side()]
        sides.append(Branch(tuple(bindings), tuple(results)))
        infos.append(tuple(_plain_info(r) for r in results))
    for k, (a, b) in enumerate(zip(*infos, strict=True)):
        if not _alike(e, a, b):
            raise UnsupportedFormError(
                f"result {k} of the branches differs: {a} in the first, {b} in the second"
            )
    return _results(e, "chosen", IfElse(chosen, sides[0], sides[1]), list(infos[0]))


def _plain_info(operand: Value | ConstantRef) -> TensorInfo:
    """Return the annotation of a tensor without the values of its elements."""
    info = operand.info
    if not isinstance(info, TensorInfo):
        raise UnsupportedFormError(f"expected a tensor, got {info}")
    return TensorInfo(info.shape, info.dtype, info.device)


def _alike(e: Emitter, a: TensorInfo, b: TensorInfo) -> bool:
    left, right = a.shape or (), b.shape or ()
    return (
        a.dtype == b.dtype
        and len(left) == len(right)
        and all(
            x is y or is_proved(eq(x, y), e.builder.facts) for x, y in zip(left, right, strict=True)
        )
    )


def _results(e: Emitter, name: str, right: Rhs, infos: Sequence[Info]) -> list[Imported]:
    """Bind the value of a branch or a loop; return its fields."""
    if not infos:
        return []
    info = infos[0] if len(infos) == 1 else TupleInfo(tuple(infos))
    value = e.builder.bind(name, info, right, e.origins)
    return [e.tensor(value)] if len(infos) == 1 else e.items(value)


def emit_loop(e: Emitter, form: LoopForm) -> list[Imported]:
    """Emit a loop; return the last carried values, then the stacked outputs.

    A dimension of a carried value whose next value has another size becomes a symbol, and the body
    is translated again, until no further dimension varies.
    """
    given = [e.plain(x) for x in form.carried]
    sources = [e.plain(x) for x in form.elements]
    infos = [_plain_info(g) for g in given]
    index, varying = e.symbol("iteration"), list[Var]()
    while True:
        loop = _translated(e, form, index, list(zip(infos, given, strict=True)), sources)
        found = [_plain_info(o) for o in loop.next_values if isinstance(o, Value | ConstantRef)]
        grown = [_grown(e, a, b, varying) for a, b in zip(infos, found, strict=True)]
        if grown == infos:
            break
        infos = grown
    outer = set(loop_symbols(loop)) - {index, *varying}
    info = loop_info(loop, outer, e.symbol_names.fresh)
    count = len(loop.body.results)
    fields = info.fields if isinstance(info, TupleInfo) and count != 1 else (info,)
    return _results(e, "looped", loop, fields if count else ())


def _translated(
    e: Emitter,
    form: LoopForm,
    index: Var,
    carried: Sequence[tuple[TensorInfo, Value | ConstantRef]],
    sources: Sequence[Value | ConstantRef],
) -> Loop:
    """Translate the condition and the body for the annotations of the carried values."""
    builder, outside = e.builder, e.builder.facts
    params = [LoopParam(builder.value("carried", info), given) for info, given in carried]
    slices = [LoopParam(builder.value("slice", _slice(s)), s) for s in sources]
    values = [[e.tensor(p.value) for p in part] for part in (params, slices)]
    now = Iteration(index, values[0], values[1])
    condition: Branch | None = None
    if form.count is not None:
        with suppress(ContradictoryFactsError):  # then the loop has no iterations
            builder.facts = outside.assume(index < form.count, origin="the count of the loop")
    if form.condition is not None:
        with e.region() as bindings:
            chosen = test(e, form.condition(now))
        condition = Branch(tuple(bindings), (chosen,))
    with e.region() as bindings:
        following, stacked = form.body(now)
        results = [e.plain(x) for x in (*following, *stacked)]
    builder.facts = outside
    if len(following) != len(params):
        raise UnsupportedFormError(
            f"expected a next value for each of the {len(params)} carried values, got "
            f"{len(following)}"
        )
    body = Branch(tuple(bindings), tuple(results))
    return Loop(index, form.count, tuple(params), tuple(slices), condition, body)


def _slice(source: Value | ConstantRef) -> TensorInfo:
    info = _plain_info(source)
    if not info.shape:
        raise UnsupportedFormError(f"a stacked input has no axis: {info}")
    return TensorInfo(info.shape[1:], info.dtype, info.device)


def _grown(e: Emitter, info: TensorInfo, found: TensorInfo, varying: list[Var]) -> TensorInfo:
    """Return an annotation with symbols for the dimensions that differ in the next value."""
    shape, other = info.shape or (), found.shape or ()
    if info.dtype != found.dtype or len(shape) != len(other):
        raise UnsupportedFormError(
            f"a carried value is {info} at first, but its next value is {found}; dtype and rank of "
            "carried values must not change"
        )
    dims = list[Expr]()
    for a, b in zip(shape, other, strict=True):
        if a not in varying and a is not b and not is_proved(eq(a, b), e.builder.facts):
            varying.append(e.symbol("size"))
            dims.append(varying[-1])
        else:
            dims.append(a)
    return TensorInfo(tuple(dims), info.dtype, info.device)
