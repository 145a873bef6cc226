"""Dataflow -> memory stage: every tensor gets a storage, storages are shared where proved."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace

from ..errors import MalformedProgramError
from ..identity import UidSource, fresh_name
from ..loop.nodes import BufferParam
from ..module import Module
from ..symbolic import Const, Expr, Facts, Proved, evaluate, prove
from .inline import inline_calls
from .lives import Life, Lives, tensor_bytes
from .memory import AllocStorage, Kill, Launch, LaunchLibrary, ViewTensor
from .nodes import (
    Binding,
    Branch,
    Call,
    CallDPSLibrary,
    CallTIR,
    ConstantRef,
    GraphFunc,
    IfElse,
    MakeTuple,
    ObjectInfo,
    Operand,
    Right,
    TensorInfo,
    TupleInfo,
    TupleItem,
    Value,
)
from .visit import inner_bindings, map_operands

_ZERO = Const(0)


class _Mint(UidSource):
    """Mints uids above those of a function."""

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
    """Turns calls into launches on storages of their own."""

    def __init__(self, module: Module, func: GraphFunc, mint: UidSource, names: set[str]) -> None:
        self.module = module
        self.func = func
        self.mint = mint
        self.names = names
        self.replaced: dict[Value, Operand] = {}
        self.tuples: dict[Value, tuple[Operand, ...]] = {}

    def fresh(self, name: str, info: ObjectInfo | TensorInfo) -> Value:
        chosen = fresh_name(name, self.names)
        self.names.add(chosen)
        return Value(self.mint(), chosen, info)

    def changed(self, operand: Operand) -> Operand:
        while isinstance(operand, Value) and operand in self.replaced:
            operand = self.replaced[operand]
        return operand

    def bindings(self, bindings: Sequence[Binding]) -> Iterator[Binding]:
        for binding in bindings:
            yield from self.binding(binding, map_operands(binding.right, self.changed))

    def binding(self, binding: Binding, right: Right) -> Iterator[Binding]:
        match right:
            case CallTIR(outputs=outputs):
                made = yield from self.outputs(binding, outputs)
                launch = Launch(
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

    def effect(self, binding: Binding, right: Launch | LaunchLibrary) -> Binding:
        name = right.function if isinstance(right, Launch) else right.symbol.replace(".", "_")
        value = self.fresh(f"run_{name}", ObjectInfo())
        return Binding(value, right, binding.origins, binding.attributes)

    def outputs(
        self, binding: Binding, outputs: Sequence[TensorInfo]
    ) -> Generator[Binding, None, list[Value]]:
        """Allocate the outputs of a call; the tensors are the generator's result."""
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
            raise MalformedProgramError(
                f"{len(call.args)} arguments and {len(outputs)} outputs do not fit its parameters",
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


# ---------------------------------------------------------------- sharing


_SAMPLES = (3, 64, 1000)
_PROOF_MS = 5


def _fits(need: Expr, have: Expr, facts: Facts) -> bool:
    """Whether a storage may serve again: large enough, and never more than twice too large."""
    if need is have:
        return True
    for sample in _SAMPLES:  # numbers first: a proof costs a thousand times as much
        values = dict.fromkeys(need.free | have.free, sample)
        if not evaluate(need, values) <= evaluate(have, values) <= 2 * evaluate(need, values):
            return False
    claims = (need <= have, have <= 2 * need)
    return all(isinstance(prove(c, facts, budget_ms=_PROOF_MS), Proved) for c in claims)


def _share(func: GraphFunc) -> dict[Value, Value]:
    """Map storages to earlier ones that are dead by then and provably large enough."""
    lives = Lives(func)
    kept = lives.roots_of(func.results)
    pool: list[Life] = []
    shared: dict[Value, Value] = {}
    known: dict[tuple[Expr, Expr], bool] = {}
    for life in sorted(lives.lives.values(), key=lambda x: x.first):
        if life.storage in kept or life.depth:
            continue
        for candidate in pool:
            if candidate.last >= life.first:
                continue
            pair = (life.size, candidate.size)
            if pair not in known:
                known[pair] = _fits(*pair, func.facts)
            if known[pair]:
                shared[life.storage] = candidate.storage
                candidate.last = life.last
                break
        else:
            pool.append(life)
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
    """End the life of every storage after its last use."""
    lives = Lives(func)
    kept = lives.roots_of(func.results)
    dying: dict[int, list[Value]] = {}
    for life in lives.lives.values():
        if life.storage not in kept and not life.depth:
            dying.setdefault(life.last, []).append(life.storage)
    made: list[Binding] = []
    pending = sorted(dying)
    for position, binding in enumerate(func.bindings):
        made.append(binding)
        following = func.bindings[position + 1 :][:1]
        until = lives.moments[following[0]] if following else lives.moment
        while pending and pending[0] < until:
            made.extend(
                Binding(Value(planner.mint(), "_", ObjectInfo()), Kill(storage))
                for storage in dying[pending.pop(0)]
            )
    return replace(func, bindings=tuple(made))


def plan_memory(module: Module, func: GraphFunc) -> GraphFunc:
    """Give every tensor of a function its memory, in program order.

    Before::
        y = call_tir(f, (x,), out=Tensor((n,), f32))
    After::
        y_storage = alloc_storage(4 * n)
        y = view(y_storage, 0)
        f(x, y)

    Storages are shared where one is dead when the other begins and the proof engine shows that
    it is large enough, whatever their dtypes. Offsets in the arena are left to the run time, which
    knows the sizes. Calls of other graph functions are put in place. A function that is in memory
    stage already is given back.

    Raises
    ------
    MalformedProgramError
        If an operator is not lowered yet, or a call does not fit its function.

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
    names = {b.value.name for b in everything} | {p.value.name for p in func.params}
    flat = inline_calls(module, func, mint, names)
    planner = _Planner(module, flat, mint, names)
    bindings = tuple(planner.bindings(flat.bindings))
    ordered = replace(flat, bindings=bindings, results=planner.flat(flat.results), stage="memory")
    return _with_kills(_without(ordered, _share(ordered)), planner)
