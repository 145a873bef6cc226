"""The decision which updates of a dataflow function are in place."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ..symbolic import Var, free_vars
from .appends import append_axis
from .loops import varying_symbols
from .nodes import (
    Binding,
    Branch,
    Call,
    CallDPSLibrary,
    CallTIR,
    ConstantRef,
    GraphFunc,
    IfElse,
    Loop,
    MakeTuple,
    Operand,
    TupleInfo,
    TupleItem,
    Value,
    operand_info,
)
from .visit import (
    all_bindings,
    branches_of,
    defining_infos,
    denoted_operand,
    info_terms,
    operands_of,
    param_symbols,
    params_of,
    used_operands,
)


@dataclass(frozen=True, slots=True)
class Root:
    """The memory of a value: of a parameter, of one result of a binding, or of a constant."""

    owner: Value | str
    index: int = 0

    def __str__(self) -> str:
        """Return the name of the value or the key of the constant."""
        return self.owner if isinstance(self.owner, str) else self.owner.name


Roots: TypeAlias = "frozenset[Root]"

_NOWHERE: Roots = frozenset()

_Use: TypeAlias = "tuple[int, str]"
"""A use: its position in program order, and a description."""


@dataclass
class InPlaceUpdates:
    """The roots of all values of a dataflow function, and the updates that need a copy.

    An update is in place if no value in the memory of its operand is used after the call: the
    operand, a view of it, a tuple or the result of a branch that contains it, or an earlier value
    that was updated in place. A carried value of a loop is in the memory of its initial value if
    that could be updated in place; values from outside of a loop, and its stacked inputs, are used
    again by its next iteration. Results and last values of parameters are used at the end, and so
    is a state parameter without last value, which keeps its value. Uses are ordered as in the
    program, except that only one branch of an ``if`` runs.

    Examples
    --------
    >>> from ..script import parse
    >>> module = parse('''
    ... @prim_func
    ... def twice(c: InOut[(8,), f32]):
    ...     for i in range(8):
    ...         c[i] = c[i] * 2.0
    ...
    ... @graph_func
    ... def main(s: State[Tensor[(8,), f32]]):
    ...     a = call_tir(twice, s, updates=(0,))
    ...     b = call_tir(twice, a, updates=(0,))
    ...     return a, updates(s=b)
    ... ''')
    >>> decisions = InPlaceUpdates(module.graph())
    >>> [decisions.reason(b.value, 0) for b in module.graph().bindings]
    ['', "'a' is used later, by the results"]
    """

    func: GraphFunc
    reasons: dict[tuple[Value, int], str] = field(default_factory=dict[tuple[Value, int], str])

    def __post_init__(self) -> None:
        """Analyze the function in program order, if it has updates or written parameters."""
        self._fields: dict[Value, tuple[Roots, ...]] = {}
        self._used: dict[Value, list[_Use]] = {}
        self._memories: dict[Root, list[_Use]] = {}
        self._positions: dict[Value, int] = {}
        self._otherwise: dict[Value, range] = {}
        self._writes: list[tuple[Value, Roots]] = []
        self._next: dict[Value, Value] = {}
        self._varying: dict[Value, frozenset[Var]] = {}
        self._symbols = param_symbols(self.func)
        self._skipped: list[range] = []
        self._written = {p.value for p in self.func.params if p.access != "in"}
        self._read_only = {p.value for p in self.func.params if p.access == "in"}
        if self._moves(self.func.bindings) or any(p.access != "in" for p in self.func.params):
            self._uses()
            for param in self.func.params:
                self._define(param.value, (frozenset({Root(param.value)}),))
            self._bindings(self.func.bindings)

    @staticmethod
    def _moves(bindings: Sequence[Binding]) -> bool:
        """Return whether bindings contain a loop or a call that updates an argument."""
        return any(
            isinstance(b.right, Loop) or (isinstance(b.right, CallTIR) and bool(b.right.updates))
            for b in all_bindings(bindings)
        )

    def reason(self, call: Value, position: int) -> str:
        """Return why an operand of a call is copied; empty if its update is in place."""
        return self.reasons.get((call, position), "")

    def writes(self, operands: Iterable[Operand]) -> Iterator[Value]:
        """Yield the calls that update the memory of some of the operands in place, in order."""
        roots = _NOWHERE.union(*map(self.roots, operands))
        return (value for value, written in self._writes if written & roots)

    def in_place(self, value: Value) -> bool:
        """Return whether an update operator with this result can change a parameter in place."""
        return self.reasons.get((value, 0), "unknown") == ""

    def grows(self, value: Value) -> bool:
        """Return whether a value is a carried value with more elements, in the same block."""
        return value in self._next and self.reasons.get((value, 0), "unknown") == ""

    def roots(self, operand: Operand) -> Roots:
        """Return the memory that may hold an operand."""
        match operand:
            case Value():
                return _NOWHERE.union(*self._fields.get(operand, ()))
            case ConstantRef(key=key):
                return frozenset({Root(key)})
            case _:
                return _NOWHERE

    # ------------------------------------------------------------ uses

    def _uses(self) -> None:
        end = self._use_all(self.func.bindings, 0)
        for result in self.func.results:
            self._use(result, end, "the results")
        stated = {u.param for u in self.func.updates}
        for update in self.func.updates:
            self._use(update.value, end, f"the last value of {update.param.name!r}")
        for param in self.func.params:
            if param.access in ("inout", "state") and param.value not in stated:
                self._use(param.value, end, "the parameter, which keeps its value")

    def _use_all(self, bindings: Sequence[Binding], position: int) -> int:
        """Record the uses in bindings; return the position after them."""
        for binding in bindings:
            self._positions[binding.value] = position
            for operand in operands_of(binding.right):
                self._use(operand, position, repr(binding.value.name))
            position += 1
            for branch in branches_of(binding.right):
                start = position
                position = self._use_all(branch.bindings, position) + 1
                for result in branch.results:
                    self._use(result, position, repr(binding.value.name))
                position += 1
                self._otherwise[binding.value] = range(start, position)
            if isinstance(binding.right, Loop):
                self._use_again(binding.right, position, binding.value.name)
                position += 1
        return position

    def _use_again(self, loop: Loop, position: int, name: str) -> None:
        """Record the uses in the next iteration of the values from outside of a loop.

        Each iteration reads a slice of every stacked input.
        """
        inner = [*loop.body.bindings, *(loop.condition.bindings if loop.condition else ())]
        own = {p.value for p in loop.params}
        for binding in all_bindings(inner):
            own |= {binding.value, *params_of(binding.right)}
        results = (o for b in branches_of(loop) for o in b.results)
        used = (*used_operands(inner), *results, *(p.given for p in loop.elements))
        for operand in dict.fromkeys(used):
            if isinstance(operand, Value) and operand not in own:
                self._use(operand, position, f"the next iteration of {name!r}")

    def _use(self, operand: Operand, position: int, user: str) -> None:
        if isinstance(operand, Value):
            text = f"{operand.name!r} is used later, by {user}"
            self._used.setdefault(operand, []).append((position, text))

    # ------------------------------------------------------------ memory

    def _define(self, value: Value, fields: tuple[Roots, ...]) -> None:
        """Set the memory of a value, which its uses keep alive."""
        self._fields[value] = fields
        for root in _NOWHERE.union(*fields):
            memory = self._memories.setdefault(root, [])
            for use in self._used.get(value, ()):
                insort(memory, use)

    def _bindings(self, bindings: Sequence[Binding]) -> None:
        for binding in bindings:
            if isinstance(binding.right, Loop):
                self._params(binding.value, binding.right)
            for branch in branches_of(binding.right):
                first = isinstance(binding.right, IfElse) and branch is binding.right.then
                self._skipped.append(self._otherwise[binding.value] if first else range(0))
                self._bindings(branch.bindings)
                self._skipped.pop()
            self._define(binding.value, self._made(binding))
            for info in defining_infos(binding):
                self._symbols.update(t for t in info_terms(info) if isinstance(t, Var))

    def _params(self, value: Value, loop: Loop) -> None:
        """Set the memory of the values of an iteration.

        A carried value is in the memory of its initial value if that is not used otherwise.
        """
        given = [p.given for p in loop.carried]
        self._varying[value] = frozenset(varying_symbols(loop, self._symbols))
        self._symbols |= self._varying[value]
        body = {b.value: b.right for b in loop.body.bindings}
        for param, own in zip(loop.carried, loop.next_values, strict=False):
            right = body.get(own) if isinstance(own, Value) else None
            if isinstance(own, Value) and right is not None and append_axis(right) is not None:
                first, *parts = operands_of(right)
                if (
                    first is param.value
                    and self._varies(value, first)
                    and not any(self._varies(value, part) for part in parts)
                ):  # parts as large as the value would be copied twice
                    self._next[own] = param.value
        for k, param in enumerate(loop.carried):
            reason = self.reasons[value, k] = self._obstacle(value, given, k)
            self._written.add(param.value)
            self._define(param.value, (_own(param.value) if reason else self.roots(given[k]),))
        for param in loop.elements:
            self._define(param.value, (self.roots(param.given),))

    def _made(self, binding: Binding) -> tuple[Roots, ...]:
        """Return the memory of the fields of a value; a single value is one field."""
        value, right = binding.value, binding.right
        match right:
            case CallTIR():
                return tuple(self._kernel(value, right))
            case Call(args=args) | CallDPSLibrary(args=args) if value in self._next:
                return (self._append(value, args),)
            case Call(op=op, args=args):
                return (self._operator(value, op, args),)
            case CallDPSLibrary(outputs=outputs):
                return tuple(_own(value, k) for k in range(len(outputs)))
            case MakeTuple(fields=fields):
                return tuple(map(self.roots, fields))
            case TupleItem(tuple_=whole, index=index):
                fields = self._fields.get(whole, ())
                return (fields[index] if 0 <= index < len(fields) else self.roots(whole),)
            case IfElse(then=then, otherwise=otherwise):
                return self._merged(then, otherwise)
            case Loop():
                self._symbols -= self._varying[value]
                return tuple(self._loop(value, right))
            case _:
                operand = denoted_operand(right)
                return (_own(value) if operand is None else self.roots(operand),)

    def _varies(self, loop: Value, operand: Operand) -> bool:
        """Return whether the shape of an operand may differ between iterations."""
        terms = info_terms(operand_info(operand))
        return any(free_vars(t) & self._varying[loop] for t in terms)

    def _loop(self, value: Value, loop: Loop) -> Iterator[Roots]:
        """Yield the memory of the results of a loop.

        A carried value whose shape varies ends in the memory of its initial value or in a block.
        """
        for k, param in enumerate(loop.carried):
            roots = self.roots(param.value)
            yield roots | _own(value, k) if self._varies(value, param.value) else roots
        for k in range(len(loop.carried), len(loop.body.results)):
            yield _own(value, k)

    def _append(self, value: Value, args: Sequence[Operand]) -> Roots:
        """Return the memory of the next value of a carried value that grows at its end.

        The block of the carried value moves, so that the value must not be used later.
        """
        reason = self.reasons[value, 0] = self._obstacle(value, args, 0)
        if reason:
            return _own(value)
        self._writes.append((value, self.roots(args[0])))
        return self.roots(args[0]) | _own(value)

    def _operator(self, value: Value, op: str, args: Sequence[Operand]) -> Roots:
        """Return the memory of the result of an operator.

        An update operator is lowered to an update in place only if it changes a parameter.
        """
        from .operators import get_operator  # operators import this package

        known = get_operator(op)
        if known.is_view:
            return self.roots(args[0])
        if known.is_update and all(r.owner in self._written for r in self.roots(args[0])):
            self.reasons[value, 0] = self._obstacle(value, args, 0)
            return _own(value) if self.reasons[value, 0] else self.roots(args[0])
        return _own(value)

    def _merged(self, then: Branch, otherwise: Branch) -> tuple[Roots, ...]:
        pairs = zip(then.results, otherwise.results, strict=False)
        if any(isinstance(o, Value) and isinstance(o.info, TupleInfo) for o in then.results):
            everything = map(self.roots, (*then.results, *otherwise.results))
            return (_NOWHERE.union(*everything),)
        return tuple(self.roots(a) | self.roots(b) for a, b in pairs)

    def _kernel(self, value: Value, call: CallTIR) -> Iterator[Roots]:
        count = len(call.outputs)
        for k in range(count):
            yield _own(value, k)
        for k, position in enumerate(call.updates):
            reason = self._obstacle(value, call.args, position)
            if reason:
                self.reasons[value, position] = reason
                yield _own(value, count + k)
            else:
                self._writes.append((value, self.roots(call.args[position])))
                yield self.roots(call.args[position])

    def _obstacle(self, value: Value, args: Sequence[Operand], position: int) -> str:
        """Return why an operand cannot be updated in place, or an empty string."""
        operand = args[position]
        roots = self.roots(operand)
        if not roots:
            return "the operand is not a tensor in memory"
        for root in sorted(roots, key=str):
            if isinstance(root.owner, str):
                return f"constant {root.owner!r} is not written"
            if root.owner in self._read_only:
                return f"parameter {root.owner.name!r} has access mode 'in'"
        for k, other in enumerate(args):
            if k != position and self.roots(other) & roots:
                name = getattr(other, "name", "")
                return f"operand {k}, {name!r}, has the same memory"
        return next(self._later(self._positions[value], roots), "")

    def _later(self, now: int, roots: Roots) -> Iterator[str]:
        """Yield the uses of memory after a position, last first, except in another branch."""
        for root in sorted(roots, key=str):
            for position, text in reversed(self._memories.get(root, ())):
                if position <= now:
                    break
                if not any(position in skipped for skipped in self._skipped):
                    yield text


def _own(value: Value, index: int = 0) -> Roots:
    """Return the memory of one result of a binding."""
    return frozenset({Root(value, index)})
