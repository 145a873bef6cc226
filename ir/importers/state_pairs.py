"""State from pairs of inputs and outputs: the output of a call is the input of the next one.

Exported decoders have such pairs, for example ``past_key_values.0.key`` and ``present.0.key``. A
pair of one shape becomes a state of this shape. A pair that grows along an axis, from ``past`` to
``past + seq`` elements, becomes a state of ``capacity`` elements, of which the first ``past`` are
in use; the state ``length`` has this number. A call writes the new elements after them, in place.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..dtype import DType, i64
from ..graph.builder import operand
from ..graph.nodes import (
    Binding,
    Call,
    GraphFunc,
    GraphParam,
    Info,
    Operand,
    TensorInfo,
    Update,
    Value,
    operand_info,
)
from ..graph.operators import get_operator
from ..graph.visit import info_terms, replace_values
from ..identity import Names
from ..symbolic import Bool, Discharge, Expr, Facts, SymInt, Var, as_expr, eq, is_proved, var
from .state_names import StatePairError, matched_names


@dataclass(frozen=True, slots=True)
class Pair:
    """An input and the output that is its value in the next call.

    Parameters
    ----------
    source, target : str
        The names of the input and the output in the source model.
    param : Value
        The parameter.
    last : Operand
        The value of the output.
    """

    source: str
    target: str
    param: Value
    last: Operand

    @property
    def where(self) -> str:
        """The pair in messages."""
        return f"input {self.source!r} and output {self.target!r}"


@dataclass(frozen=True, slots=True)
class Growth:
    """The input of a pair, the axis along which it grows, and its sizes before and after a call."""

    shape: tuple[Expr, ...]
    dtype: DType
    axis: int
    before: Var
    after: Expr


def with_state(
    function: GraphFunc,
    state: Mapping[str, str],
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> GraphFunc:
    """Return a function whose paired inputs are states, without the paired results.

    Parameters
    ----------
    function : GraphFunc
        The imported function.
    state : Mapping
        The names of inputs with those of outputs, or prefixes of both.
    inputs, outputs : sequence of str
        The names of the parameters and results in the source model.

    Raises
    ------
    StatePairError
        If names do not match, or the tensors of a pair differ in dtype, rank, or a dimension that
        does not grow.
    """
    names = matched_names(state, inputs, outputs)
    params, results = (
        dict(zip(inputs, function.params, strict=True)),
        dict(zip(outputs, function.results, strict=True)),
    )
    pairs = [Pair(a, b, params[a].value, results[b]) for a, b in names.items()]
    for pair in pairs:
        if params[pair.source].access != "in":
            raise StatePairError(
                f"input {pair.source!r} is changed by the program",
                where=pair.where,
                hint="pair inputs that the program only reads",
            )
    removed = {outputs.index(p.target) for p in pairs}
    kept = [k for k in range(len(outputs)) if k not in removed]
    named = function.result_names
    made = replace(
        function,
        results=tuple(function.results[k] for k in kept),
        result_names=tuple(named[k] for k in kept) if named else (),
    )
    return _Writer(made).written(pairs) if pairs else made


def growth_of(pair: Pair, facts: Facts) -> Growth | None:
    """Return the growth of a pair; None if its tensors have one shape.

    Raises
    ------
    StatePairError
        If they differ in dtype, rank, or several dimensions, or the input has no symbol there.
    """
    old, new = pair.param.info, operand_info(pair.last)
    if not isinstance(old, TensorInfo) or not isinstance(new, TensorInfo):
        raise StatePairError("expected two tensors", where=pair.where, hint="pair tensors")
    text = f"the input has {old.dtype}{_shape(old)}, the output {new.dtype}{_shape(new)}"
    if old.shape is None or new.shape is None or len(old.shape) != len(new.shape):
        raise _unpaired(pair, f"their ranks differ: {text}")
    if old.dtype != new.dtype:
        raise _unpaired(pair, f"their dtypes differ: {text}")
    axes = [
        k
        for k, (a, b) in enumerate(zip(old.shape, new.shape, strict=True))
        if not is_proved(eq(a, b), facts)
    ]
    if not axes:
        return None
    if len(axes) > 1:
        raise _unpaired(pair, f"they differ in the dimensions {axes}: {text}")
    before, after = old.shape[axes[0]], new.shape[axes[0]]
    if not isinstance(before, Var):
        raise _unpaired(pair, f"dimension {axes[0]} of the input is {before}, not a symbol: {text}")
    if not is_proved(after >= before, facts):
        raise _unpaired(pair, f"dimension {axes[0]} may become smaller: {text}")
    if sum(d is before for d in old.shape) > 1:
        raise _unpaired(pair, f"symbol {before} is several dimensions of the input: {text}")
    return Growth(old.shape, old.dtype, axes[0], before, after)


def _unpaired(pair: Pair, problem: str) -> StatePairError:
    return StatePairError(
        problem,
        where=pair.where,
        hint="the tensors of a pair have one dtype and shape, or one dimension grows from a symbol "
        "to a larger size",
    )


def _shape(info: TensorInfo) -> str:
    return "(unknown shape)" if info.shape is None else f"({', '.join(map(str, info.shape))})"


@dataclass(frozen=True, slots=True)
class _Length:
    """The states that grow with one symbol: the number of elements in use, and their capacity."""

    after: Expr
    capacity: Var
    param: Value
    first: Pair


class _Writer:
    """The rewriting of one function."""

    def __init__(self, function: GraphFunc) -> None:
        self.function, self.facts = function, function.facts
        values = [x.value for x in (*function.params, *function.bindings)]
        self.uids = itertools.count(max(v.uid for v in values) + 1)
        self.entry = _symbols(p.value for p in function.params)
        self.names = Names({*(s.name for s in _symbols(values)), *(v.name for v in values)})
        self.first: list[Binding] = []
        self.instead: dict[Value, list[Binding]] = {}
        self.last: list[Binding] = []
        self.renamed: dict[Value, Operand] = {}
        self.updates: list[Update] = []
        self.lengths: dict[Var, _Length] = {}

    def written(self, pairs: Sequence[Pair]) -> GraphFunc:
        """Rewrite every pair, then the parameters and bindings."""
        growths = [growth_of(p, self.facts) for p in pairs]
        symbols = {g.before: p for p, g in zip(pairs, growths, strict=True) if g is not None}
        several = len(symbols) > 1
        states: dict[Value, GraphParam] = {}
        for pair, growth in zip(pairs, growths, strict=True):
            self.check_sizes(pair, growth, symbols)
            if growth is None:
                states[pair.param] = GraphParam(pair.param, "state")
                self.updates += [Update(pair.param, pair.last)] * (pair.last != pair.param)
            else:
                length = self.length(pair, growth, several=several)
                states[pair.param] = GraphParam(self.growing(pair, growth, length), "state")
        for length in self.lengths.values():
            new = self.emit(self.last, "shape_to_tensor", (length.after,), name=length.param.name)
            self.updates.append(Update(length.param, new))
        func = self.function
        inputs = [p for p in func.params if p.value not in states]
        lengths = [GraphParam(n.param, "state") for n in self.lengths.values()]
        middle = [b for old in func.bindings for b in self.instead.get(old.value, (old,))]
        made = replace(
            func,
            bindings=(*self.first, *middle, *self.last),
            facts=self.facts,
            updates=(*func.updates, *self.updates),
        )
        made = replace_values(made, self.renamed)
        return replace(made, params=(*inputs, *states.values(), *lengths))

    def check_sizes(self, pair: Pair, growth: Growth | None, symbols: Mapping[Var, Pair]) -> None:
        """Check that no other dimension grows, and that the growth is known when a call starts."""
        info = pair.param.info
        for axis, dim in enumerate(info.shape or () if isinstance(info, TensorInfo) else ()):
            if growth is not None and axis == growth.axis:
                continue
            for symbol in sorted(dim.free & symbols.keys(), key=lambda s: s.serial):
                other = symbols[symbol].where
                raise _unpaired(pair, f"dimension {axis} is {dim}, but {symbol} grows in {other}")
        unknown = (growth.after.free if growth is not None else frozenset[Var]()) - self.entry
        if unknown:
            names = ", ".join(sorted(s.name for s in unknown))
            raise _unpaired(pair, f"the size after a call depends on computed values: {names}")

    def length(self, pair: Pair, growth: Growth, *, several: bool) -> _Length:
        """Return the length of the states that grow with a symbol, which starts at 0."""
        symbol, found = growth.before, self.lengths.get(growth.before)
        if found is None:
            prefix = f"{symbol.name}_" if several else ""
            capacity = var(self.names.fresh(f"{prefix}capacity"), lower=0)
            info = TensorInfo((as_expr(1),), i64, elements=(symbol,))
            param = self.value(f"{prefix}length", info)
            found = self.lengths[symbol] = _Length(growth.after, capacity, param, pair)
            self.assume(growth.after <= capacity, f"capacity of state {param.name!r}")
        if not is_proved(eq(found.after, growth.after), self.facts):
            raise StatePairError(
                f"symbol {symbol} becomes {growth.after}, but {found.after} in {found.first.where}",
                where=pair.where,
                hint="tensors whose sizes are one symbol must grow by the same number of elements",
            )
        return found

    def assume(self, claim: Bool, origin: str) -> None:
        """Add a fact that every call checks."""
        self.facts = self.facts.assume(claim, origin=origin, discharge=Discharge.ENTRY_CHECK)

    def growing(self, pair: Pair, growth: Growth, length: _Length) -> Value:
        """Rewrite a pair; return the new parameter, which has the capacity."""
        axis, old = growth.axis, pair.param
        shape = list(growth.shape)
        shape[axis] = length.capacity
        param = Value(next(self.uids), old.name, TensorInfo(tuple(shape), growth.dtype))
        used = self.sliced(self.first, param, growth.before, axis)
        self.renamed[old] = used
        tail = self.appended(pair, axis, len(shape))
        begin: list[SymInt] = [0] * len(shape)
        if tail is None:
            new = self.emit(self.last, "update_slice", param, pair.last, begin, name=old.name)
        else:
            begin[axis] = growth.before
            value, where = tail
            made = self.instead.setdefault(where, [])
            new = self.emit(made, "update_slice", param, value, begin, name=old.name)
            self.renamed[where] = self.sliced(made, new, growth.after, axis)
        self.updates.append(Update(param, new))
        return param

    def appended(self, pair: Pair, axis: int, rank: int) -> tuple[Operand, Value] | None:
        """Return the new elements of a pair and their concatenation with the old ones, if any."""
        made = next((b for b in self.function.bindings if b.value == pair.last), None)
        if made is None or made.value in self.instead or not isinstance(made.right, Call):
            return None
        right = made.right
        joined = right.op == "concat" and int(str(dict(right.attributes)["axis"])) % rank == axis
        if not joined or len(right.args) != 2 or right.args[0] != pair.param:
            return None
        return right.args[1], made.value

    def sliced(self, out: list[Binding], source: Value, size: Expr, axis: int) -> Value:
        """Emit the first elements of an axis."""
        bounds = (as_expr(0),), (size,)
        return self.emit(out, "strided_slice", source, *bounds, axes=(axis,), steps=(1,))

    def emit(
        self,
        out: list[Binding],
        op: str,
        *args: Operand | Sequence[SymInt],
        name: str = "",
        **attributes: tuple[int, ...],
    ) -> Value:
        """Add the application of an operator; its requirements are proved or checked at entry."""
        operands, given = tuple(map(operand, args)), tuple(attributes.items())
        inferred = get_operator(op).infer(operands, given, self.facts)
        for required in inferred.requirements:
            self.assume(required.predicate, required.reason)
        value = self.value(name or op, inferred.info)
        out.append(Binding(value, Call(op, operands, given)))
        return value

    def value(self, name: str, info: Info) -> Value:
        """Return a new value."""
        return Value(next(self.uids), self.names.fresh(name), info)


def _symbols(values: Iterable[Value]) -> frozenset[Var]:
    """Return the symbols of the annotations of values."""
    return frozenset(s for v in values for term in info_terms(v.info) for s in term.free)
