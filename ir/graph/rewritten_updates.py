"""Rewriting of calls that write their arguments as calls with updates, for fixes in messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from ..identity import Names, Uid
from ..loop.nodes import BufferParam, PrimFunc
from ..module import Module
from .nodes import (
    Binding,
    CallTIR,
    GraphFunc,
    Info,
    Operand,
    TupleInfo,
    TupleItem,
    Update,
    Value,
    operand_info,
    result_info,
)
from .visit import all_bindings, all_values, map_operands, map_updates, used_values


def rewritten_text(func: GraphFunc, module: Module | None) -> str:
    """Return a function as text whose calls update the arguments that their callees write.

    The result is empty if there is no such form: calls in branches and loops are not rewritten, nor
    are calls whose tuple of outputs is used.
    """
    if module is None:
        return ""
    made = rewritten(func, module)
    return "" if made is None else str(made)


def rewritten(func: GraphFunc, module: Module) -> GraphFunc | None:
    """Return a function whose calls update the arguments that their callees write, or None.

    Each call defines a new value for each written argument, which later bindings use instead of the
    argument. The last values of parameters are their latest values.
    """
    nested = set(all_bindings(func.bindings)) - set(func.bindings)
    if any(_written(b, module) for b in nested):
        return None
    rewriting = _Rewriting(func, module)
    bindings = tuple(rewriting.bindings())
    if rewriting.failed:
        return None
    new = rewriting.latest
    own = tuple(
        Update(p.value, new[p.value]) for p in func.params if p.access != "in" and p.value in new
    )
    stated = {u.param for u in func.updates}
    updates = (*map_updates(func.updates, rewriting.changed),
               *(u for u in own if u.param not in stated))  # fmt: skip
    return replace(
        func,
        bindings=bindings,
        results=tuple(map(rewriting.changed, func.results)),
        updates=tuple(replace(u, value=rewriting.changed(u.value)) for u in updates),
    )


def _written(binding: Binding, module: Module) -> tuple[int, ...]:
    """Return the operands that a kernel call writes but does not update."""
    right = binding.right
    callee = module.functions.get(right.function) if isinstance(right, CallTIR) else None
    if not isinstance(right, CallTIR) or not isinstance(callee, PrimFunc):
        return ()
    params = (p for p in callee.params if isinstance(p, BufferParam) and p.access != "out")
    written = tuple(k for k, p in enumerate(params) if p.access != "in")
    return () if set(written) <= set(right.updates) else written


@dataclass
class _Rewriting:
    """The latest value of each written value."""

    func: GraphFunc
    module: Module
    failed: bool = False
    latest: dict[Value, Value] = field(default_factory=dict[Value, Value])

    def __post_init__(self) -> None:
        values = list(all_values(self.func))
        self._names = Names(v.name for v in values)
        self._used = frozenset(used_values(self.func.bindings)) | set(self.func.returned)
        self._next: Uid = max((v.uid for v in values), default=0) + 1

    def changed(self, operand: Operand) -> Operand:
        """Return the latest value of an operand."""
        while isinstance(operand, Value) and operand in self.latest:
            operand = self.latest[operand]
        return operand

    def _value(self, name: str, info: Info) -> Value:
        self._next += 1
        return Value(self._next - 1, self._names.fresh(name), info)

    def bindings(self) -> Iterator[Binding]:
        """Yield the rewritten bindings."""
        for binding in self.func.bindings:
            right = map_operands(binding.right, self.changed)
            written = _written(binding, self.module)
            if not written or not isinstance(right, CallTIR):
                yield replace(binding, right=right)
                continue
            call = replace(right, updates=written)
            old = [right.args[k] for k in written if k < len(right.args)]
            targets = [o for o in old if isinstance(o, Value)]
            several = isinstance(binding.value.info, TupleInfo)
            if len(targets) < len(written) or (several and binding.value in self._used):
                self.failed = True
                return
            made = [self._value(t.name, operand_info(t)) for t in targets]
            yield from self._call(binding, call, made)
            self.latest |= _pairs(targets, made)

    def _call(self, binding: Binding, call: CallTIR, made: list[Value]) -> Iterator[Binding]:
        kept = [] if isinstance(binding.value.info, TupleInfo) else [binding.value]
        items = [*kept, *made]
        if len(kept) < len(call.outputs):
            self.failed = True
        elif len(items) == 1:
            yield replace(binding, value=items[0], right=call)
        else:
            whole = self._value(f"{call.function}_results", result_info(call))
            yield replace(binding, value=whole, right=call)
            for k, item in enumerate(items):
                yield Binding(item, TupleItem(whole, k), binding.origins)


def _pairs(old: list[Value], new: list[Value]) -> Mapping[Value, Value]:
    return dict(zip(old, new, strict=True))
