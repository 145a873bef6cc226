"""Memory planning: the conversion of graph-level functions to the memory stage."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

from ...errors import MalformedProgramError
from ..dtype import u8
from ..identity import NO_ORIGIN, Names, Origins, UidSource
from ..loop.nodes import BufferParam
from ..module import Module
from ..symbolic import Bool, Const, Expr, Var, eq, is_proved, to_text
from .appends import APPEND
from .in_place_updates import InPlaceUpdates, Root
from .inline import inline_calls
from .live_ranges import LiveRanges, tensor_bytes
from .nodes import (
    AllocStorage,
    Binding,
    Branch,
    Call,
    CallDPSLibrary,
    CallTIR,
    Check,
    ConstantRef,
    CopyTensor,
    GraphFunc,
    GrowTensor,
    IfElse,
    Info,
    Kill,
    LaunchKernel,
    LaunchLibrary,
    Loop,
    MakeTuple,
    ObjectInfo,
    Operand,
    Rhs,
    TensorInfo,
    TupleInfo,
    TupleItem,
    Value,
    ViewTensor,
    operand_info,
)
from .plan_loops import LoopPlan, Move
from .sharing import shared_storages
from .visit import (
    all_values,
    branches_of,
    defining_infos,
    info_terms,
    map_operands,
    param_symbols,
)

_T = TypeVar("_T")
_ZERO = Const(0)

_Field: TypeAlias = "tuple[Value, TensorInfo]"
"""A tensor of the value of a call, and the annotation of its memory."""


class _Mint(UidSource):
    """A source of uids that are unused in a function."""

    def __init__(self, first: int) -> None:
        super().__init__()
        self._next = first

    def __call__(self) -> int:
        self._next += 1
        return self._next - 1


class Planner:
    """The conversion of calls to launches; each output gets its own storage."""

    def __init__(self, module: Module, func: GraphFunc, mint: UidSource, names: Names) -> None:
        self.module = module
        self.func = func
        self.mint = mint
        self.names = names
        self.decisions = InPlaceUpdates(func)
        self.returned = frozenset(func.results)
        self.replaced: dict[Value, Operand] = {}
        self.tuples: dict[Value, tuple[Operand, ...]] = {}
        self.placed: dict[Value, tuple[Value, Expr]] = {}
        self.symbols = param_symbols(func)
        self.growing: set[Operand] = set()

    def fresh(self, name: str, info: Info) -> Value:
        """Return a new value with an unused name."""
        return Value(self.mint(), self.names.fresh(name), info)

    def changed(self, operand: Operand) -> Operand:
        """Return the operand that replaces an operand."""
        while isinstance(operand, Value) and operand in self.replaced:
            operand = self.replaced[operand]
        return operand

    def bindings(self, bindings: Sequence[Binding]) -> Iterator[Binding]:
        """Yield the planned bindings of a list."""
        for binding in bindings:
            yield from self.binding(binding, map_operands(binding.right, self.changed))

    def binding(self, binding: Binding, right: Rhs) -> Iterator[Binding]:
        """Yield the planned form of a binding, whose right-hand side has replaced operands."""
        match right:
            case CallTIR():
                yield from self.kernel(binding, right)
            case CallDPSLibrary():
                yield from self.library(binding, right)
            case Call():
                yield from self.view(binding, right)
            case Kill():
                return  # of a function that was planned before; all ends follow from the uses
            case MakeTuple(fields=fields):
                self.tuples[binding.value] = fields
            case TupleItem(tuple_=whole, index=index) if whole in self.tuples:
                self.replaced[binding.value] = self.tuples[whole][index]
            case IfElse(condition=condition):
                then, otherwise = map(self.branch, branches_of(binding.right))
                yield replace(binding, right=IfElse(condition, then, otherwise))
            case Loop():
                if isinstance(binding.right, Loop):
                    yield from LoopPlan(self, binding, binding.right).bindings()
            case _:
                for info in defining_infos(binding):
                    self.symbols.update(t for t in info_terms(info) if isinstance(t, Var))
                yield replace(binding, right=right)

    def branch(self, branch: Branch) -> Branch:
        """Return a branch with planned bindings."""
        inner = tuple(self.bindings(branch.bindings))
        return Branch(inner, self.flat(branch.results))

    def flat(self, results: Sequence[Operand]) -> tuple[Operand, ...]:
        """Return operands, of which tuples are replaced by their fields."""
        found: list[Operand] = []
        for result in map(self.changed, results):
            inner = self.tuples.get(result) if isinstance(result, Value) else None
            found += [result] if inner is None else self.flat(inner)
        return tuple(found)

    def effect(self, binding: Binding, right: LaunchKernel | LaunchLibrary) -> Binding:
        """Return the binding of a launch."""
        name = right.function if isinstance(right, LaunchKernel) else right.symbol.replace(".", "_")
        value = self.fresh(f"run_{name}", ObjectInfo())
        return Binding(value, right, binding.origins, binding.attributes)

    def fields(self, binding: Binding, infos: Sequence[TensorInfo]) -> list[_Field]:
        """Return the tensors of the value of a call, with their annotations."""
        value = binding.value
        single = not isinstance(value.info, TupleInfo)
        tensors = [
            value if single else self.fresh(f"{value.name}_{k}", info)
            for k, info in enumerate(infos)
        ]
        if not single:
            self.tuples[value] = tuple(tensors)
        return list(zip(tensors, infos, strict=True))

    def allocations(self, origins: Origins, fields: Sequence[_Field]) -> Iterator[Binding]:
        """Yield the allocations of tensors, except of slices of another one."""
        for tensor, info in fields:
            if tensor in self.placed:
                stack, offset = self.placed[tensor]
                yield Binding(tensor, ViewTensor(stack, offset, info), origins)
                continue
            storage = self.fresh(f"{tensor.name}_storage", ObjectInfo())
            size = tensor_bytes(info)
            yield Binding(storage, AllocStorage(size, info.device), origins)
            yield Binding(tensor, ViewTensor(storage, _ZERO, info), origins)

    def kernel(self, binding: Binding, call: CallTIR) -> Iterator[Binding]:
        """Yield the launch of a kernel, after allocations and copies."""
        operands = [call.args[k] for k in call.updates if k < len(call.args)]
        infos = [info for o in operands if isinstance(info := operand_info(o), TensorInfo)]
        fields = self.fields(binding, (*call.outputs, *infos))
        made, updated = fields[: len(call.outputs)], fields[len(call.outputs) :]
        yield from self.allocations(binding.origins, made)
        args = list(call.args)
        for k, target in zip(call.updates, updated, strict=True):
            args[k] = yield from self.update(binding, k, args[k], target)
        call = replace(call, args=tuple(args))
        outputs = [tensor for tensor, _ in made]
        launch = LaunchKernel(
            call.function, self.arguments(call, outputs), call.scalars, call.versions
        )
        yield self.effect(binding, launch)

    def library(self, binding: Binding, call: CallDPSLibrary) -> Iterator[Binding]:
        """Yield the launch of a library function, after the allocations of outputs and workspace.

        The launch has the values of all attributes of a registered function, in order.
        """
        from .libraries import LIBRARY_FUNCTIONS

        if call.symbol == APPEND:
            yield from self.append(binding, call)
            return
        function = LIBRARY_FUNCTIONS.get(call.symbol)
        made, attributes = self.fields(binding, call.outputs), call.attributes
        if function is not None:
            attributes = tuple(function.values(dict(attributes)).items())
        if function is not None and function.workspace is not None:
            infos = [i for a in call.args if isinstance(i := operand_info(a), TensorInfo)]
            info = TensorInfo((function.workspace(infos),), u8)
            made.append((self.fresh(f"{binding.value.name}_workspace", info), info))
        yield from self.allocations(binding.origins, made)
        tensors = tuple(tensor for tensor, _ in made)
        yield self.effect(binding, LaunchLibrary(call.symbol, call.args, tensors, attributes))

    def append(self, binding: Binding, call: CallDPSLibrary) -> Iterator[Binding]:
        """Yield a concatenation by copies; a carried value that can grow is not copied."""
        tensor, info = binding.value, call.outputs[0]
        first, offset = call.args[0], _ZERO
        parts = call.args
        if self.decisions.grows(tensor) and isinstance(first, Value) and first in self.growing:
            yield replace(binding, right=GrowTensor(first, info))
            parts, offset = parts[1:], tensor_bytes(tensor_info(first))
        else:
            yield from self.allocations(binding.origins, ((tensor, info),))
        for operand in parts:
            own = tensor_info(operand)
            part = self.fresh(f"{tensor.name}_part", own)
            yield Binding(part, ViewTensor(tensor, offset, own), binding.origins)
            yield self.copy(operand, part, f"a part of {tensor.name!r}", binding.origins)
            offset += tensor_bytes(own)

    def update(
        self, binding: Binding, position: int, operand: Operand, field: _Field
    ) -> Generator[Binding, None, Operand]:
        """Yield the copy of an operand that is not updated in place; return the written tensor."""
        target, info = field
        reason = self.decisions.reason(binding.value, position)
        if reason or not isinstance(operand, Value):
            yield from self.allocations(binding.origins, (field,))
            yield self.copy(operand, target, reason, binding.origins)
            return target
        same = operand.info == target.info
        if same and target not in self.returned:
            self.replaced[target] = operand
        else:
            yield from self.equal_shapes(operand, target.name, target.info)
            yield Binding(target, ViewTensor(operand, _ZERO, info), binding.origins)
        return operand

    def copy(
        self, source: Operand, target: Value, reason: str, origins: Origins = NO_ORIGIN
    ) -> Binding:
        """Return the copy of a tensor; the shapes of both are known."""
        for name, info in ((target.name, target.info), (_name(source), operand_info(source))):
            if not isinstance(info, TensorInfo) or info.shape is None:
                raise MalformedProgramError(
                    f"{name!r} is copied, but its shape is not known: {reason}",
                    where=f"function {self.func.name!r}",
                    hint="declare the shape, or update it in place after a match_cast",
                )
        value = self.fresh(f"copy_{target.name}", ObjectInfo())
        return Binding(value, CopyTensor(source, target, reason), origins)

    def equal_shapes(self, operand: Operand, name: str, wanted: Info) -> Iterator[Binding]:
        """Yield checks that an operand has the shape of an annotation, unless it is proved."""
        given = operand_info(operand)
        old = given.shape if isinstance(given, TensorInfo) else None
        new = wanted.shape if isinstance(wanted, TensorInfo) else None
        for axis, (dim, expected) in enumerate(zip(old or (), new or (), strict=False)):
            if dim is not expected:
                text = f"{to_text(dim)} == {to_text(expected)}"
                message = f"value {name!r}, dimension {axis}: {text}"
                yield from self.holds(eq(dim, expected), message)

    def holds(self, claim: Bool, message: str) -> Iterator[Binding]:
        """Yield the check of a condition, unless it is proved."""
        if not is_proved(claim, self.func.facts):
            yield Binding(self.fresh("check", ObjectInfo()), Check(claim, message))

    # ------------------------------------------------------------ last values

    def last_values(self) -> Generator[Binding, None, tuple[Operand, ...]]:
        """Yield the copies of last values to their parameters; return the results.

        A result that is the last value of an inout parameter is the parameter itself.
        """
        func = self.func
        access = {p.value: p.access for p in func.params}
        last = {u.param: u.value for u in func.updates}
        copied = [
            (p, v) for p, v in last.items() if self.decisions.roots(v) != frozenset({Root(p)})
        ]
        written = frozenset(Root(p) for p, _ in copied)
        own = {v: p for p, v in last.items() if isinstance(v, Value) and access[p] == "inout"}
        results: list[Operand] = []
        for result in func.results:
            if isinstance(result, Value) and result in own:
                results.append(own[result])
            elif self.decisions.roots(result) & written:
                results.append((yield from self.kept(result)))
            else:
                results += self.flat((result,))
        yield from self.moves(
            [
                Move(
                    p,
                    self.changed(v),
                    frozenset({Root(p)}),
                    self.decisions.roots(v),
                    f"the last value of {p.name!r}",
                )
                for p, v in copied
            ]
        )
        return tuple(results)

    def kept(self, result: Operand) -> Generator[Binding, None, Operand]:
        """Yield a copy of a result in the memory of a parameter that is written later."""
        (operand,) = self.flat((result,))
        made = yield from self.duplicate(operand, "the parameter in its memory is written")
        return made

    @staticmethod
    def collect(into: list[Binding], steps: Generator[Binding, None, _T]) -> _T:
        """Append the bindings that a generator yields; return its result."""
        while True:
            try:
                into.append(next(steps))
            except StopIteration as end:
                return end.value

    def duplicate(self, operand: Operand, reason: str) -> Generator[Binding, None, Value]:
        """Yield a copy of a tensor in new memory; return the new tensor."""
        info, name = operand_info(operand), getattr(operand, "name", "value")
        if not isinstance(info, TensorInfo):
            raise MalformedProgramError(
                f"{name!r} is not a tensor", where=f"function {self.func.name!r}, return"
            )
        made = self.fresh(f"{name}_kept", info)
        yield from self.allocations(NO_ORIGIN, ((made, info),))
        yield self.copy(operand, made, reason)
        return made

    def moves(self, moves: Sequence[Move]) -> Iterator[Binding]:
        """Yield copies of values as if they happened at the same time.

        A tensor is written after all copies from its memory; in a cycle, a value is copied to new
        memory first.
        """
        waiting = list(moves)
        while waiting:
            free = [m for m in waiting if not any(m.blocks(other) for other in waiting)]
            if not free:
                first = waiting[0]
                made = yield from self.duplicate(first.value, "values are exchanged")
                waiting[0] = replace(first, value=made, roots=frozenset[Root]())
                continue
            for move in free:
                target = move.target
                yield from self.equal_shapes(move.value, target.name, target.info)
                yield self.copy(move.value, target, move.reason)
            waiting = [m for m in waiting if m not in free]

    def arguments(self, call: CallTIR, outputs: Sequence[Value]) -> tuple[Operand, ...]:
        """Return the arguments of all buffer parameters of a kernel."""
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

    def view(self, binding: Binding, call: Call) -> Iterator[Binding]:
        """Yield the view or the transfer that replaces an operator."""
        from .operators import get_operator

        info, source = binding.value.info, call.args[0]
        if get_operator(call.op).is_transfer and isinstance(info, TensorInfo):
            yield from self.allocations(binding.origins, ((binding.value, info),))
            reason = f"it is on device {info.device!r}"
            yield self.copy(source, binding.value, reason, binding.origins)
            return
        if not get_operator(call.op).is_view or not isinstance(info, TensorInfo):
            raise MalformedProgramError(
                f"operator {call.op!r} is not lowered",
                where=f"function {self.func.name!r}, binding {binding.value.name!r}",
                hint="apply legalize first",
            )
        if isinstance(source, ConstantRef):
            self.replaced[binding.value] = ConstantRef(source.key, info)
        elif isinstance(source, Value):
            yield from self.required(binding, call)
            yield replace(binding, right=ViewTensor(source, _ZERO, info))

    def required(self, binding: Binding, call: Call) -> Iterator[Binding]:
        """Yield checks of the requirements of a view that are not proved."""
        from .operators import infer_call

        found = infer_call(call.op, call.args, call.attributes, self.func.facts)
        for required in found.requirements:
            value = Value(self.mint(), self.names.fresh("check"), ObjectInfo())
            yield Binding(value, Check(required.predicate, required.reason), binding.origins)


def _without(func: GraphFunc, shared: dict[Value, Value]) -> GraphFunc:
    def change(operand: Operand) -> Operand:
        return shared.get(operand, operand) if isinstance(operand, Value) else operand

    kept = tuple(
        replace(b, right=map_operands(b.right, change))
        for b in func.bindings
        if b.value not in shared
    )
    return replace(func, bindings=kept)


def tensor_info(operand: Operand) -> TensorInfo:
    """Return the annotation of an operand that is a tensor."""
    info = operand_info(operand)
    if not isinstance(info, TensorInfo):
        raise MalformedProgramError(f"{_name(operand)!r} is not a tensor", where="an append")
    return info


def _with_kills(func: GraphFunc, planner: Planner) -> GraphFunc:
    """Add a ``Kill`` of every storage after its last use."""
    live = LiveRanges(func)
    kept = live.roots_of(func.results)
    ending: dict[int, list[Value]] = {}
    for own in live.ranges.values():
        if own.storage not in kept and not own.depth:
            ending.setdefault(own.last, []).append(own.storage)
    made: list[Binding] = []
    pending = deque(sorted(ending))
    for position, binding in enumerate(func.bindings):
        made.append(binding)
        following = func.bindings[position + 1 :][:1]
        until = live.positions[following[0]] if following else live.end
        while pending and pending[0] < until:
            made.extend(
                Binding(Value(planner.mint(), "_", ObjectInfo()), Kill(storage))
                for storage in ending[pending.popleft()]
            )
    return replace(func, bindings=tuple(made))


def _result_names(func: GraphFunc, results: Sequence[Operand]) -> tuple[str, ...]:
    """Return the names of the results before planning if they are now other values."""
    names = [r.name for r in func.results if isinstance(r, Value)]
    now = [r.name for r in results if isinstance(r, Value)]
    unique = len(set(names)) == len(names) == len(now) == len(results)
    return tuple(names) if unique and not func.result_names and names != now else func.result_names


def _name(operand: Operand) -> str:
    """Return the name of an operand for messages."""
    return operand.key if isinstance(operand, ConstantRef) else getattr(operand, "name", "value")


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
    values = list(all_values(func))
    mint = _Mint(max([0, *(v.uid for v in values)]) + 1)
    names = Names(v.name for v in values)
    flat = inline_calls(module, func, mint, names)
    planner = Planner(module, flat, mint, names)
    bindings = list(planner.bindings(flat.bindings))
    results = planner.collect(bindings, planner.last_values())
    ordered = replace(
        flat,
        bindings=tuple(bindings),
        results=results,
        stage="memory",
        updates=(),
        result_names=_result_names(flat, results),
    )
    return _with_kills(_without(ordered, shared_storages(ordered)), planner)
