"""Emission of scans by an associative operation that a source model defines.

An element-wise operation becomes the reducer of a scan in loop-level IR, to which schedules and
default rules apply. Any other one, such as a matrix product, becomes a graph loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from ..dtype import DType, bool_
from ..graph.nodes import (
    Binding,
    Call,
    CallTIR,
    Dims,
    Operand,
    ScalarLiteral,
    TensorInfo,
    Value,
    result_info,
)
from ..graph.operators import LoweredOperator, lower_call
from ..graph.operators.lowering import accumulator, cast_to
from ..loop.builder import Builder
from ..loop.combiners import COMBINERS, reducer_of
from ..loop.nodes import (
    Binary,
    Block,
    Buffer,
    Cast,
    Element,
    For,
    IterKind,
    Load,
    Local,
    Number,
    PrimFunc,
    Reducer,
    Stmt,
    Store,
    Where,
)
from ..loop.scans import free_variables, scan_of
from ..loop.visit import Rebuilder, walk_element
from ..symbolic import Expr, SymInt, Var, as_expr, const_value, eq, is_proved
from .control_flow import Iteration, LoopForm, emit_loop
from .elementwise import convert, elementwise
from .emitter import Emitter
from .shaping import reshape
from .tensors import Imported

Tensors: TypeAlias = Sequence[Imported]
Combine: TypeAlias = Callable[[Tensors, Tensors], Tensors]


def emit_associative_scan(e: Emitter, combine: Combine, terms: Tensors) -> list[Imported]:
    """Emit the inclusive scan of tensors along axis 0.

    Parameters
    ----------
    e : Emitter
        The emitter.
    combine : callable
        The translation of the operation: the values of its result for two operands, which are
        slices of the terms.
    terms : sequence of Imported
        The tensors, with axis 0 as the axis of the scan.
    """
    sizes = [t.shape[0] for t in terms]
    for size in sizes[1:]:
        e.same_size(sizes[0], size, "the terms of a scan have one length")
    reducer = _reducer(e, combine, terms)
    return _looped(e, combine, terms) if reducer is None else _scanned(e, reducer, terms)


# ---------------------------------------------------------------- scans of loop-level IR


def _reducer(e: Emitter, combine: Combine, terms: Tensors) -> Reducer | None:
    """Return an element-wise operation as a reducer; None for another one.

    Terms of 16-bit floats are combined in float32, and the results are rounded once, as those of
    the scan operators.
    """
    shape = terms[0].shape[1:]
    if any(not _equal_shapes(e, t.shape[1:], shape) for t in terms):
        return None
    dtypes = [t.dtype for t in terms]
    operands = [
        [e.builder.value(name, TensorInfo(shape, d)) for d in dtypes] for name in ("left", "right")
    ]
    with e.region() as bindings:
        left, right = ([e.tensor(v) for v in values] for values in operands)
        made = combine(left, right)
        results = [e.plain(convert(e, x, d)) for x, d in zip(made, dtypes, strict=True)]
    locals_ = [
        [Local(f"{name}{k}", accumulator(d)) for k, d in enumerate(dtypes)] for name in ("a", "b")
    ]
    known: dict[Value, Element] = {
        v: local
        for values, side in zip(operands, locals_, strict=True)
        for v, local in zip(values, side, strict=True)
    }
    widens = any(accumulator(d) != d for d in dtypes)
    found = _elements(e, bindings, results, known, widens=widens)
    return None if found is None else _with_identity(locals_[0], locals_[1], *found)


def _equal_shapes(e: Emitter, a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    pairs = zip(a, b, strict=False)
    return len(a) == len(b) and all(
        x is y or is_proved(eq(x, y), e.builder.facts) for x, y in pairs
    )


def _elements(
    e: Emitter,
    bindings: Sequence[Binding],
    results: Sequence[Operand],
    known: dict[Value, Element],
    *,
    widens: bool,
) -> tuple[tuple[tuple[Local, Element], ...], tuple[Element, ...]] | None:
    """Return the shared values and the results of element-wise bindings as elements of operands.

    The result is None if a binding is not element-wise.
    """
    binds: list[tuple[Local, Element]] = []
    uses = Counter(o for b in bindings if isinstance(b.right, Call) for o in b.right.args)
    uses.update(results)
    for binding in bindings:
        found = _element(e, binding, known, widens=widens)
        if found is None:
            return None
        if uses[binding.value] > 1 and not isinstance(found, Local | Number):
            local = Local(f"c{len(binds)}", found.dtype)
            binds.append((local, found))
            found = local
        known[binding.value] = found
    values = [known.get(r) if isinstance(r, Value) else None for r in results]
    made = tuple(v for v in values if v is not None)
    return (tuple(binds), made) if len(made) == len(values) else None


def _element(
    e: Emitter, binding: Binding, known: dict[Value, Element], *, widens: bool
) -> Element | None:
    """Return the value of a binding that has one element for each element of its operands."""
    call, info = binding.right, binding.value.info
    if not isinstance(call, Call) or not isinstance(info, TensorInfo):
        return None
    if not all(isinstance(a, ScalarLiteral | Dims) or a in known for a in call.args):
        return None
    lowered = lower_call(call, info, call.op, e.builder.facts)
    store = _only_store(lowered.function) if isinstance(lowered, LoweredOperator) else None
    if store is None or not isinstance(lowered, LoweredOperator):
        return None
    buffers = dict(zip(lowered.function.buffer_params, lowered.args, strict=False))
    values: dict[Load, Element] = {}
    for part in walk_element(store.value):
        if isinstance(part, Load):
            operand = buffers.get(part.buffer)
            if not isinstance(operand, Value) or not _same_element(part, store):
                return None
            values[part] = known[operand]
    made = _Loaded(values, widens=widens).element(store.value)
    return None if free_variables(made) else made


def _only_store(function: PrimFunc) -> Store | None:
    """Return the statement of a function that is a perfect nest of loops around one store."""
    statement: Stmt = function.body
    while isinstance(statement, For):
        statement = statement.body
    if not isinstance(statement, Block) or statement.init is not None or function.buffers:
        return None
    return statement.body if isinstance(statement.body, Store) else None


def _same_element(load: Load, store: Store) -> bool:
    """Return whether an element is loaded at the indices that are stored, in equal shapes."""
    dims = zip(load.indices, store.indices, load.buffer.shape, store.buffer.shape, strict=False)
    return len(load.indices) == len(store.indices) and all(
        have is want and (i is j or const_value(have) == 1) for i, j, have, want in dims
    )


class _Loaded(Rebuilder):
    """A substitution of elements for loads; if it widens, 16-bit floats become float32."""

    def __init__(self, values: dict[Load, Element], *, widens: bool) -> None:
        self._values = values
        self._widens = widens

    def element(self, element: Element) -> Element:
        match element:
            case Load():
                return self._values[element]
            case Cast(dtype=dtype, operand=operand) if self._widens:
                return cast_to(accumulator(dtype), self.element(operand))
            case Number(value=value, dtype=dtype) if self._widens:
                return Number(value, accumulator(dtype))
            case _:
                return super().element(element)


def _with_identity(
    left: Sequence[Local],
    right: Sequence[Local],
    binds: tuple[tuple[Local, Element], ...],
    results: tuple[Element, ...],
) -> Reducer:
    """Return an operation as a reducer, which has an identity.

    An operation without a known identity gets one more value: whether there is an operand. The
    identity is the operand that is not there.
    """
    for combiner in COMBINERS if len(left) == 1 else ():
        if results[0] in (Binary(combiner, left[0], right[0]), Binary(combiner, right[0], left[0])):
            return reducer_of(combiner, left[0].dtype)
    count = len(left)
    a, b = (Local(f"{name}{count}", bool_) for name in ("a", "b"))
    chosen = tuple(
        Where(a, Where(b, made, x), y) for made, x, y in zip(results, left, right, strict=True)
    )
    identities = tuple(Number(x.dtype.number(0), x.dtype) for x in left)
    return Reducer(
        "combine",
        (*left, a),
        (*right, b),
        binds,
        (*chosen, Binary("or", a, b)),
        (*identities, Number(value=False, dtype=bool_)),
        commutative=False,
    )


def _scanned(e: Emitter, reducer: Reducer, terms: Tensors) -> list[Imported]:
    """Emit the call of a function that computes a scan by a reducer."""
    shape = _symbols_of(e, terms[0].shape)
    builder = Builder("associative_scan", reserved={d.name for d in shape if isinstance(d, Var)})
    sources = [builder.param(f"x{k}", shape, t.dtype) for k, t in enumerate(terms)]
    outs = [builder.param(f"y{k}", shape, t.dtype, "out") for k, t in enumerate(terms)]
    wide = [x.dtype for x in reducer.left]
    targets = [
        out if out.dtype == dtype else builder.temporary(f"wide{k}", shape, dtype)
        for k, (out, dtype) in enumerate(zip(outs, wide, strict=False))
    ]
    if len(wide) > len(terms):
        targets.append(builder.temporary("present", shape, bool_))
    _define(builder, reducer, targets, sources)
    for target, out in zip(targets, outs, strict=False):
        if target is not out:
            _rounded(builder, target, out)
    name = e.add_function(builder.finish())
    infos = tuple(TensorInfo(t.shape, t.dtype) for t in terms)
    call = CallTIR(name, tuple(map(e.plain, terms)), infos)
    whole = e.builder.bind("scanned", result_info(call), call, e.origins)
    return [e.tensor(whole)] if len(terms) == 1 else e.items(whole)


def _symbols_of(e: Emitter, shape: Iterable[Expr]) -> tuple[SymInt, ...]:
    """Return dimensions of a function: each one that is not a constant is a symbol."""
    made: dict[Expr, SymInt] = {}
    for dim in shape:
        constant = const_value(dim) is not None or isinstance(dim, Var)
        made.setdefault(dim, dim if constant else e.symbol("size"))
    return tuple(made[d] for d in shape)


def _define(
    builder: Builder, reducer: Reducer, targets: Sequence[Buffer], sources: Sequence[Buffer]
) -> None:
    """Add the block of a scan along axis 0."""

    def body(*iters: Var) -> Stmt:
        loaded = [
            cast_to(x.dtype, Load(source, iters))
            for x, source in zip(reducer.left, sources, strict=False)
        ]
        present = [Number(value=True, dtype=bool_)] * (len(reducer.left) - len(sources))
        at = tuple(Load(target, iters) for target in targets)
        return scan_of(reducer, at, iters[0], (*loaded, *present)).body()

    kinds: list[tuple[SymInt, IterKind]] = [
        (d, "spatial" if k else "ordered") for k, d in enumerate(targets[0].shape)
    ]
    builder.block(kinds, body, name="scan", reducer=reducer)


def _rounded(builder: Builder, source: Buffer, out: Buffer) -> None:
    """Add the conversion of a temporary."""
    dtype: DType = out.dtype
    builder.compute(
        out, lambda *i: cast_to(dtype, Load(source, tuple(map(as_expr, i)))), name="rounded"
    )


# ---------------------------------------------------------------- graph loops


def _looped(e: Emitter, combine: Combine, terms: Tensors) -> list[Imported]:
    """Emit a loop over the slices; its first iteration takes the slices themselves."""
    starts = [e.uniform(0, t.shape[1:], t.dtype) for t in terms]

    def step(now: Iteration) -> tuple[Tensors, Tensors]:
        index = reshape(e, e.apply("shape_to_tensor", (now.index,)), ())
        first = e.apply("equal", e.plain(index), 0)
        made = combine(now.carried, now.elements)
        chosen = [
            elementwise(e, "where", [first, x, convert(e, y, x.dtype)])
            for x, y in zip(now.elements, made, strict=True)
        ]
        return chosen, chosen

    form = LoopForm(starts, step, count=terms[0].shape[0], elements=terms)
    return emit_loop(e, form)[len(terms) :]
