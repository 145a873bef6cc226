"""Memory planning: the conversion of graph-level functions to the memory stage."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace

from ...errors import MalformedProgramError
from ..identity import Names, UidSource
from ..loop.nodes import BufferParam
from ..module import Module
from ..symbolic import Const, Expr, Facts, Proved, evaluate, prove
from .inline import inline_calls
from .live_ranges import LiveRange, LiveRanges, tensor_bytes
from .nodes import (
    AllocStorage,
    Binding,
    Branch,
    Call,
    CallDPSLibrary,
    CallTIR,
    ConstantRef,
    GraphFunc,
    IfElse,
    Kill,
    LaunchKernel,
    LaunchLibrary,
    MakeTuple,
    ObjectInfo,
    Operand,
    Rhs,
    TensorInfo,
    TupleInfo,
    TupleItem,
    Value,
    ViewTensor,
)
from .visit import inner_bindings, map_operands

_ZERO = Const(0)


class _Mint(UidSource):
    """A source of uids that are unused in a function."""

    def __init__(self, first: int) -> None:
        super().__init__()
        self._next = first

    def __call__(self) -> int:
        self._next += 1
        return self._next - 1


def _all(bindings: Sequence[Binding]) -> Iterator[Binding]:
    for binding in bindings:
        yield binding
        for inner in inner_bindings(binding.right):
            yield from _all(inner)


class _Planner:
    """The conversion of calls to launches; each output gets its own storage."""

    def __init__(self, module: Module, func: GraphFunc, mint: UidSource, names: Names) -> None:
        self.module = module
        self.func = func
        self.mint = mint
        self.names = names
        self.replaced: dict[Value, Operand] = {}
        self.tuples: dict[Value, tuple[Operand, ...]] = {}

    def fresh(self, name: str, info: ObjectInfo | TensorInfo) -> Value:
        return Value(self.mint(), self.names.fresh(name), info)

    def changed(self, operand: Operand) -> Operand:
        while isinstance(operand, Value) and operand in self.replaced:
            operand = self.replaced[operand]
        return operand

    def bindings(self, bindings: Sequence[Binding]) -> Iterator[Binding]:
        for binding in bindings:
            yield from self.binding(binding, map_operands(binding.right, self.changed))

    def binding(self, binding: Binding, right: Rhs) -> Iterator[Binding]:
        match right:
            case CallTIR(outputs=outputs):
                made = yield from self.outputs(binding, outputs)
                launch = LaunchKernel(
                    right.function, self.arguments(right, made), right.scalars, right.versions
                )
                yield self.effect(binding, launch)
            case CallDPSLibrary(symbol=symbol, args=args, outputs=outputs):
                made = yield from self.outputs(binding, outputs)
                yield self.effect(binding, LaunchLibrary(symbol, args, tuple(made)))
            case Call(op=op, args=args):
                yield from self.view(binding, op, args[0])
            case MakeTuple(fields=fields):
                self.tuples[binding.value] = fields
            case TupleItem(tuple_=whole, index=index) if whole in self.tuples:
                self.replaced[binding.value] = self.tuples[whole][index]
            case IfElse(condition=condition, then=then, otherwise=otherwise):
                choice = IfElse(condition, self.branch(then), self.branch(otherwise))
                yield replace(binding, right=choice)
            case _:
                yield replace(binding, right=right)

    def branch(self, branch: Branch) -> Branch:
        inner = tuple(self.bindings(branch.bindings))
        return Branch(inner, self.flat(branch.results))

    def flat(self, results: Sequence[Operand]) -> tuple[Operand, ...]:
        found: list[Operand] = []
        for result in map(self.changed, results):
            inner = self.tuples.get(result) if isinstance(result, Value) else None
            found += [result] if inner is None else self.flat(inner)
        return tuple(found)

    def effect(self, binding: Binding, right: LaunchKernel | LaunchLibrary) -> Binding:
        name = right.function if isinstance(right, LaunchKernel) else right.symbol.replace(".", "_")
        value = self.fresh(f"run_{name}", ObjectInfo())
        return Binding(value, right, binding.origins, binding.attributes)

    def outputs(
        self, binding: Binding, outputs: Sequence[TensorInfo]
    ) -> Generator[Binding, None, list[Value]]:
        """Yield the allocations of the outputs of a call; return the output tensors."""
        value = binding.value
        single = not isinstance(value.info, TupleInfo)
        tensors = [
            value if single else self.fresh(f"{value.name}_{k}", info)
            for k, info in enumerate(outputs)
        ]
        if not single:
            self.tuples[value] = tuple(tensors)
        for tensor, info in zip(tensors, outputs, strict=True):
            storage = self.fresh(f"{tensor.name}_storage", ObjectInfo())
            size = tensor_bytes(info)
            yield Binding(storage, AllocStorage(size, info.device), binding.origins)
            yield Binding(tensor, ViewTensor(storage, _ZERO, info), binding.origins)
        return tensors

    def arguments(self, call: CallTIR, outputs: Sequence[Value]) -> tuple[Operand, ...]:
        func = self.module.prim(call.function)
        given, made = iter(call.args), iter(outputs)
        found: list[Operand | None] = [
            next(made if p.access == "out" else given, None)
            for p in func.params
            if isinstance(p, BufferParam)
        ]
        if None in found or next(given, None) is not None or next(made, None) is not None:
            counts = f"{len(call.args)} arguments and {len(outputs)} outputs"
            raise MalformedProgramError(
                f"{counts} do not match its parameters",
                where=f"function {self.func.name!r}, call of {call.function!r}",
            )
        return tuple(o for o in found if o is not None)

    def view(self, binding: Binding, op: str, source: Operand) -> Iterator[Binding]:
        from .operators import get_operator

        info = binding.value.info
        if not get_operator(op).is_view or not isinstance(info, TensorInfo):
            raise MalformedProgramError(
                f"operator {op!r} is not lowered",
                where=f"function {self.func.name!r}, binding {binding.value.name!r}",
                hint="apply legalize first",
            )
        if isinstance(source, ConstantRef):
            self.replaced[binding.value] = ConstantRef(source.key, info)
        elif isinstance(source, Value):
            yield replace(binding, right=ViewTensor(source, _ZERO, info))


_SAMPLES = (3, 64, 1000)
_PROOF_MS = 5


def _fits(need: Expr, have: Expr, facts: Facts) -> bool:
    """Return whether a storage can be reused: ``need <= have <= 2 * need`` is proved."""
    if need is have:
        return True
    for sample in _SAMPLES:  # evaluating samples is 1000 times faster than a proof
        values = dict.fromkeys(need.free | have.free, sample)
        if not evaluate(need, values) <= evaluate(have, values) <= 2 * evaluate(need, values):
            return False
    claims = (need <= have, have <= 2 * need)
    return all(isinstance(prove(c, facts, budget_ms=_PROOF_MS), Proved) for c in claims)


def _share(func: GraphFunc) -> dict[Value, Value]:
    """Map storages to earlier ones whose live ranges have ended and whose size is sufficient."""
    live = LiveRanges(func)
    kept = live.roots_of(func.results)
    pool: list[LiveRange] = []
    shared: dict[Value, Value] = {}
    known: dict[tuple[Expr, Expr], bool] = {}
    for own in sorted(live.ranges.values(), key=lambda x: x.first):
        if own.storage in kept or own.depth:
            continue
        for candidate in pool:
            if candidate.last >= own.first:
                continue
            pair = (own.size, candidate.size)
            if pair not in known:
                known[pair] = _fits(*pair, func.facts)
            if known[pair]:
                shared[own.storage] = candidate.storage
                candidate.last = own.last
                break
        else:
            pool.append(own)
    return shared


def _without(func: GraphFunc, shared: dict[Value, Value]) -> GraphFunc:
    def change(operand: Operand) -> Operand:
        return shared.get(operand, operand) if isinstance(operand, Value) else operand

    kept = tuple(
        replace(b, right=map_operands(b.right, change))
        for b in func.bindings
        if b.value not in shared
    )
    return replace(func, bindings=kept)


def _with_kills(func: GraphFunc, planner: _Planner) -> GraphFunc:
    """Add a ``Kill`` of every storage after its last use."""
    live = LiveRanges(func)
    kept = live.roots_of(func.results)
    ending: dict[int, list[Value]] = {}
    for own in live.ranges.values():
        if own.storage not in kept and not own.depth:
            ending.setdefault(own.last, []).append(own.storage)
    made: list[Binding] = []
    pending = sorted(ending)
    for position, binding in enumerate(func.bindings):
        made.append(binding)
        following = func.bindings[position + 1 :][:1]
        until = live.positions[following[0]] if following else live.end
        while pending and pending[0] < until:
            made.extend(
                Binding(Value(planner.mint(), "_", ObjectInfo()), Kill(storage))
                for storage in ending[pending.pop(0)]
            )
    return replace(func, bindings=tuple(made))


def plan_memory(module: Module, func: GraphFunc) -> GraphFunc:
    """Convert a function to the memory stage: assign a storage to every tensor.

    Before::
        y = call_tir(f, (x,), out=Tensor((n,), f32))
    After::
        y_storage = alloc_storage(4 * n)
        y = view(y_storage, 0)
        f(x, y)

    A storage is reused once its live range ends, for tensors of any dtype, if its size is proved
    sufficient and at most twice the required size. Calls of graph-level functions are inlined. The
    offsets in the arena are computed at run time, when the sizes are known. A function in the
    memory stage is returned unchanged.

    Raises
    ------
    MalformedProgramError
        If an operator is not lowered, or the arguments of a call do not match its callee.

    Examples
    --------
    >>> from ..dtype import f32
    >>> from ..symbolic import var
    >>> from .builder import GraphBuilder
    >>> n, g = var("n", lower=0), GraphBuilder("main")
    >>> x = g.param("x", TensorInfo((n,), f32))
    >>> y = g.emit("reshape", x, (n, 1))
    >>> [type(b.right).__name__ for b in plan_memory(Module(), g.finish((y,))).bindings]
    ['ViewTensor']
    """
    if func.stage == "memory":
        return func
    everything = list(_all(func.bindings))
    first = max([0, *(b.value.uid for b in everything), *(p.value.uid for p in func.params)]) + 1
    mint = _Mint(first)
    names = Names(b.value.name for b in everything)
    names.update(p.value.name for p in func.params)
    flat = inline_calls(module, func, mint, names)
    planner = _Planner(module, flat, mint, names)
    bindings = tuple(planner.bindings(flat.bindings))
    ordered = replace(flat, bindings=bindings, results=planner.flat(flat.results), stage="memory")
    return _with_kills(_without(ordered, _share(ordered)), planner)
