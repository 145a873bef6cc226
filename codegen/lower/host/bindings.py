"""Lowering of the bindings of a memory-stage function: storage, launches, and branches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from ....errors import MalformedProgramError
from ....ir.graph.call_conditions import CallCondition, kernel_conditions, symbol_values
from ....ir.graph.live_ranges import tensor_bytes
from ....ir.graph.nodes import (
    DEFAULT_DEVICE,
    AllocStorage,
    Binding,
    Branch,
    Call,
    CallDPSLibrary,
    CallGraph,
    CallTIR,
    Check,
    ConstantRef,
    CopyTensor,
    Dims,
    GrowTensor,
    IfElse,
    Info,
    KernelVersion,
    Kill,
    LaunchKernel,
    LaunchLibrary,
    Loop,
    MakeTuple,
    MatchCast,
    Operand,
    ScalarLiteral,
    ShapeInfo,
    TensorInfo,
    TupleInfo,
    TupleItem,
    Value,
    VersionCase,
    VersionSwitch,
    ViewTensor,
)
from ....ir.graph.visit import all_bindings, operands_of
from ....ir.host import nodes as host
from ....ir.loop.nodes import BufferParam, PrimFunc
from ....ir.symbolic import (
    TRUE,
    Expr,
    Fact,
    Var,
    conjuncts,
    const_value,
    eq,
    free_vars,
    substitute,
    to_text,
)
from ...manifest import CheckSite, LaunchSpec
from ...rtlib import layout
from .context import (
    CALL,
    LATE,
    OWN,
    SINK,
    VECTOR_BYTES,
    HostContext,
    fact_site,
    integer,
)
from .devices import Enqueued, enqueue, on_default_device
from .entry import rank_of, read_element, view_of
from .index_limits import short_indices, short_name
from .library_calls import call_library
from .loops import LoopEmitter
from .results import Results
from .storage import Storage, Storages
from .streams import Streams

NO_MEMORY = CheckSite("memory")


def kernel_symbols(
    func: PrimFunc, kernel_symbols_: Sequence[Var], dims: Sequence[tuple[Expr, ...]],
    scalars: Sequence[Expr],
) -> tuple[Expr, ...]:  # fmt: skip
    """Return the value of every symbol of a kernel, from the shapes of its arguments."""
    known = symbol_values(func, dims, scalars)
    missing = [s.name for s in kernel_symbols_ if s not in known]
    if missing:
        raise MalformedProgramError(
            f"the value of {', '.join(missing)} is not determined by the arguments",
            where=f"launch of {func.name!r}",
            hint="each symbol must be a dimension of a buffer parameter or an integer parameter",
        )
    return tuple(known[s] for s in kernel_symbols_)


class Bindings:
    """The lowering of the bindings of one function."""

    def __init__(
        self,
        context: HostContext,
        storages: Storages,
        results: Results,
        offsets: Mapping[int, host.Value],
        views: Mapping[Value, int],
    ) -> None:
        """Initialize; ``offsets`` are the addresses of the arena slots."""
        self.context = context
        self.storages = storages
        self.results = results
        self.offsets = offsets
        self.views = views
        self.tuples: dict[Value, tuple[Operand, ...]] = {}
        self.depth = 0  # of the loops around the binding that is lowered
        self.loops: list[LoopEmitter] = []
        self.launched = {
            operand
            for binding in all_bindings(context.function.bindings)
            if isinstance(binding.right, LaunchKernel | LaunchLibrary)
            for operand in operands_of(binding.right)
        }
        self.streams = Streams(context)
        self.names = {
            binding.right.storage: binding.value.name
            for binding in all_bindings(context.function.bindings)
            if isinstance(binding.right, ViewTensor)
        }

    def run(self, bindings: Sequence[Binding]) -> None:
        """Emit a list of bindings in order."""
        for binding in bindings:
            self.binding(binding)

    def binding(self, binding: Binding) -> None:
        """Emit one binding."""
        value = binding.value
        self.streams.before(binding)
        match binding.right:
            case AllocStorage():
                self.allocate(value)
            case ViewTensor(storage=storage, offset=offset):
                self.view(value, storage, offset)
            case LaunchKernel() as launch:
                self.launch(binding, launch)
            case LaunchLibrary() as launch:
                call_library(self.context, binding, launch)
            case CopyTensor(source=source, target=target, stream=stream):
                self.copy(source, target, stream)
            case GrowTensor(source=source, info=info):
                self.grow(value, source, info)
            case Kill(value=dead):
                self.kill(dead)
            case Check(predicate=predicate, message=message):
                self.context.claim(predicate, CheckSite("check", message))
            case VersionSwitch(cases=cases):
                self.switch(cases)
            case MatchCast(value=operand, info=info):
                self.match_cast(value, operand, info)
            case MakeTuple(fields=fields):
                self.tuples[value] = fields
            case TupleItem(tuple_=whole, index=index):
                self.alike(value.info, self.tuples[whole][index], value.name)
                self.alias(value, self.tuples[whole][index])
            case IfElse() as choice:
                self.choose(value, choice)
            case Loop() as loop:
                self.loop(LoopEmitter(self, binding, loop))
            case Call() | CallTIR() | CallDPSLibrary() | CallGraph() as call:
                raise MalformedProgramError(
                    f"{type(call).__name__} is not allowed in the memory stage",
                    where=f"function {self.context.function.name!r}, binding {value.name!r}",
                    hint="apply plan_memory first",
                )
            case _:
                assert_never(binding.right)
        self.streams.after(binding)

    def allocate(self, value: Value) -> None:
        """Emit the allocation of a storage: in the arena, as a result, or on the heap."""
        storage = self.storages.by_value[value]
        self.context.pointers[value] = self.provide(storage)

    def provide(self, storage: Storage) -> host.Value:
        """Return the address of a storage."""
        context = self.context
        if storage.slot >= 0:
            return self.offsets[storage.slot]
        if storage.result >= 0:
            return self.results.make(storage.result, storage.size)
        self.measured(storage.size)
        size = context.ready(storage.size, f"storage {storage.name}")
        rounded = host.Arithmetic("max", size, integer(layout.ALIGNMENT))
        if self.depth:
            self.release(storage.late, storage)  # of an earlier iteration
        where = context.number(storage.device), integer(storage.stream)
        block = context.invoke("tw_allocate_on", CALL, rounded, *where, kind="ptr")
        context.guard(host.Comparison("ne", block, host.NullPointer()), NO_MEMORY, rounded)
        context.emit(host.Write("ptr", LATE, integer(8 * storage.late), block))
        return block

    def measured(self, size: Expr) -> None:
        """Emit checks of a size that is not known at entry: not negative, no overflow."""
        self.results.sizes.check([size])

    def kill(self, dead: Value) -> None:
        """Emit the release of a heap storage; live ranges in the arena are planned."""
        storage = self.storages.by_value.get(dead)
        if storage is not None and storage.late >= 0:
            self.release(storage.late, storage)

    def release(self, slot: int, storage: Storage | None = None) -> None:
        """Emit the release of the block in a slot, if there is one."""
        self.streams.join()
        offset = integer(8 * slot)
        held = self.context.assign("held", host.Read("ptr", LATE, offset), "ptr")
        device = DEFAULT_DEVICE if storage is None else storage.device
        where = self.context.number(device), integer(0)
        drop = (
            host.Invoke("tw_release_on", (CALL, held, *where)),
            host.Write("ptr", LATE, offset, host.NullPointer()),
        )
        self.context.emit(host.When(host.Comparison("ne", held, host.NullPointer()), drop))

    def copy(self, source: Operand, target: Value, stream: int) -> None:
        """Emit a copy of a tensor."""
        context, where = self.context, f"copy to {target.name!r}"
        size = context.ready(tensor_bytes(context.tensor(source)), where)
        devices = (context.tensor(target).device, context.tensor(source).device)
        context.copy(context.pointer(target), context.pointer(source), size, devices, stream)

    def loop(self, emitter: LoopEmitter) -> None:
        """Emit a loop."""
        self.loops.append(emitter)
        emitter.emit()
        self.loops.pop()

    def grow(self, value: Value, source: Value, info: TensorInfo) -> None:
        """Emit the growth of a carried value of the innermost loop."""
        if not self.loops or source not in self.loops[-1].carried_values:
            raise MalformedProgramError(
                f"{source.name!r} grows, but it is not a carried value of this loop",
                where=f"function {self.context.function.name!r}, binding {value.name!r}",
            )
        self.context.pointers[value] = self.loops[-1].grow(source, info)

    def view(self, value: Value, storage: Value, offset: Expr) -> None:
        """Emit the address of a tensor in a storage."""
        base = self.context.pointer(storage)
        moved = self.context.ready(offset, f"offset of {value.name!r}")
        if self.context.remote and const_value(offset) != 0 and value in self.launched:
            rest = host.Arithmetic("mod", moved, integer(VECTOR_BYTES))
            aligned = host.Comparison("eq", rest, integer(0))
            text = f"offset of {value.name!r} is a multiple of {VECTOR_BYTES} bytes"
            self.context.guard(aligned, CheckSite("check", text, names=("offset",)), moved)
        address = base if const_value(offset) == 0 else host.Moved(base, moved)
        self.context.pointers[value] = self.context.assign(value.name, address, "ptr")

    def alike(self, value: Info, operand: Operand, name: str) -> None:
        """Emit checks that a value has the shape of the operand that it denotes."""
        shape = value.shape if isinstance(value, TensorInfo) else None
        info = operand.info if isinstance(operand, Value | ConstantRef) else None
        given = info.shape if isinstance(info, TensorInfo) else None
        for axis, (wanted, dim) in enumerate(zip(shape or (), given or (), strict=False)):
            if wanted is not dim and (claim := eq(dim, wanted)) is not TRUE:
                text = f"value {name!r}, dimension {axis}: {to_text(dim)} == {to_text(wanted)}"
                self.holds(CallCondition(claim, text))

    def alias(self, value: Value, operand: Operand) -> None:
        """Make a value an alias of an operand."""
        if isinstance(operand, Value) and operand in self.tuples:
            self.tuples[value] = self.tuples[operand]
        elif not isinstance(operand, Dims | ScalarLiteral):
            self.context.pointers[value] = self.context.pointer(operand)

    def launch(self, binding: Binding, launch: LaunchKernel) -> None:
        """Emit the launch of the first version whose guard holds, else of the general kernel."""
        self.versions(binding, launch, launch.versions)

    def versions(
        self, binding: Binding, launch: LaunchKernel, versions: Sequence[KernelVersion]
    ) -> None:
        """Emit a chain of guarded alternatives."""
        if not versions:
            self.start(binding, launch, launch.function, launch.scalars)
            return
        first, context = versions[0], self.context
        context.divisors(first.guard)
        with context.nested() as then:
            context.held.update(conjuncts(first.guard))
            self.start(binding, launch, first.function, first.scalars)
        with context.nested() as otherwise:
            self.versions(binding, launch, versions[1:])
        context.emit(host.When(host.Claim(first.guard), tuple(then), tuple(otherwise)))

    def start(
        self, binding: Binding, launch: LaunchKernel, name: str, scalars: Sequence[Expr]
    ) -> None:
        """Emit the launch of one kernel."""
        context = self.context
        func, kernel = context.module.prim(name), context.kernels[name]
        self.only_params_strided(func, launch)
        dims = [context.dims(a) for a in launch.args]
        values = kernel_symbols(func, kernel.symbols, dims, scalars)
        where = f"launch of {name!r}"
        symbols = tuple(context.ready(v, where) for v in values)
        self.required(func, dims, symbol_values(func, dims, scalars))
        scratch = self.storages.scratch.get(binding.value)
        memory = self.provide(scratch) if scratch is not None and kernel.scratch else None
        ordinal = len(context.launches)
        origins = tuple(sorted(binding.origins))
        results = tuple(self.results_of(func, launch))
        context.launches.append(LaunchSpec(name, binding.value.name, origins, results))
        buffers = tuple(context.pointer(a) for a in launch.args)
        if kernel.grid is not None:
            on_default_device(context, name, launch, binding)
            made = Enqueued(kernel, kernel.grid, buffers, values, memory, launch.stream)
            enqueue(context, name, made)
            return
        limits, given = kernel.limits, zip(kernel.symbols, values, strict=True)
        choice = short_indices(context, name, limits, given)
        names = (short_name(name), name) if choice is not False else (name,)
        launches = [
            (host.HostLaunch(n, ordinal, CALL, OWN, SINK, buffers, symbols, memory),) for n in names
        ]
        if isinstance(choice, bool):
            context.emit(*launches[0])
        else:
            context.emit(host.When(choice, *launches))

    def required(
        self, func: PrimFunc, dims: Sequence[tuple[Expr, ...]], values: Mapping[Var, Expr]
    ) -> None:
        """Emit checks of the shapes, bounds and facts of a kernel that are not proved."""
        for condition in kernel_conditions(func, dims, values):
            self.holds(condition)
        for fact in func.facts:
            claim = substitute(fact.predicate, values)
            if free_vars(claim) <= self.context.bound:
                site = fact_site(Fact(claim, fact.origin, fact.discharge))
                self.context.require(claim, site)

    def holds(self, condition: CallCondition) -> None:
        """Emit a check of a condition of a call, unless it is proved."""
        for symbol in sorted(free_vars(condition.claim), key=lambda v: v.serial):
            self.context.ready(symbol, condition.text)
        self.context.require(condition.claim, CheckSite("check", condition.text))

    def results_of(self, func: PrimFunc, launch: LaunchKernel) -> Iterator[str]:
        """Yield the names of the values that a launch computes: those of views, if there are any.

        A kernel writes a view of the value of the program if it was compiled for another shape.
        """
        params = [p for p in func.params if isinstance(p, BufferParam)]
        for argument, param in zip(launch.args, params, strict=True):
            if param.access != "in" and isinstance(argument, Value):
                yield self.names.get(argument, argument.name)

    def only_params_strided(self, func: PrimFunc, launch: LaunchKernel) -> None:
        """Reject a kernel with explicit strides for an intermediate tensor, which is compact."""
        for buffer, arg in zip(func.buffer_params, launch.args, strict=True):
            if buffer.strides is not None and arg not in self.views:
                raise MalformedProgramError(
                    f"buffer {buffer.name!r} has explicit strides, but its argument is an "
                    "intermediate tensor, which is compact",
                    where=f"function {self.context.function.name!r}, launch of {func.name!r}",
                    hint="remove the strides of the buffer",
                )

    def match_cast(self, value: Value, operand: Operand, info: Info) -> None:
        """Emit a match_cast: bind new symbols and check all others."""
        old, new = self.dims_of(operand), _info_dims(info)
        if new is not None:
            known = self.entry_dims(operand, len(new)) if old is None else old
            for dim, (given, wanted) in enumerate(zip(known, new, strict=True)):
                self.refine(value, dim, given, wanted)
        if isinstance(info, TensorInfo):
            data = self.context.pointer(operand)
            for k, wanted in enumerate(info.elements or ()):
                given = read_element(self.context, info.dtype, data, k)
                self.refine(value, k, given, wanted)
        self.context.facts()
        self.alias(value, operand)

    def dims_of(self, operand: Operand) -> tuple[Expr, ...] | None:
        """Return the dimensions in the annotation of an operand, or None."""
        if isinstance(operand, Dims):
            return operand.dims
        return self.context.tensor(operand).shape

    def entry_dims(self, operand: Operand, rank: int) -> tuple[host.Value, ...]:
        """Emit reads of the dimensions of a parameter whose annotation has no shape."""
        position = self.views.get(operand) if isinstance(operand, Value) else None
        if position is None:
            raise MalformedProgramError(
                f"the shape of {getattr(operand, 'name', operand)!r} is not available at run time",
                where=f"function {self.context.function.name!r}",
                hint="annotate the value with a shape; only parameters may omit it",
            )
        view = view_of(position)
        given = host.Read("i64", view, integer(layout.VIEW_RANK))
        if rank_of(self.context.tensor(operand)) == -1:
            site = CheckSite("dimension", str(rank), position, -1)
            fits = host.Comparison("eq", given, integer(rank))
            self.context.guard(fits, site, integer(rank), given)
        shape = host.Read("ptr", view, integer(layout.VIEW_SHAPE))
        return tuple(host.Read("i64", shape, integer(8 * k)) for k in range(rank))

    def refine(self, value: Value, dim: int, given: Expr | host.Value, wanted: Expr) -> None:
        """Emit the binding or the check of one dimension."""
        context = self.context
        if given is wanted:
            return
        where = f"match_cast {value.name!r}, dimension {dim}"
        held = context.ready(given, where) if isinstance(given, Expr) else given
        if isinstance(wanted, Var) and wanted not in context.bound:
            context.bind(wanted, held)
            return
        right = context.ready(wanted, where)
        if isinstance(given, Expr) and free_vars(given) | free_vars(wanted):
            site = CheckSite("check", f"{where}: {given} == {wanted}")
            context.claim(eq(given, wanted), site)
            return
        site = CheckSite("check", f"{where}: {wanted}", names=("found", "expected"))
        context.guard(host.Comparison("eq", held, right), site, held, right)

    def switch(self, cases: Sequence[VersionCase]) -> None:
        """Emit a chain of branches to the first case whose guard holds."""
        if not cases:
            return
        first, context = cases[0], self.context
        context.divisors(first.guard)
        with context.nested() as then:
            context.held.update(conjuncts(first.guard))
            self.run(first.bindings)
        with context.nested() as otherwise:
            self.switch(cases[1:])
        context.emit(host.When(host.Claim(first.guard), tuple(then), tuple(otherwise)))

    def choose(self, value: Value, choice: IfElse) -> None:
        """Emit a branch; both sides assign the addresses of the results to variables."""
        context = self.context
        condition = context.fetch("u8", context.pointer(choice.condition), 0, 1)
        count = len(choice.then.results)
        targets = [context.local(value.name, "ptr") for _ in range(count)]
        info = value.info
        infos = info.fields if isinstance(info, TupleInfo) and count > 1 else (info,) * count
        shapes = dict(zip(targets, infos, strict=True))
        then, otherwise = (self.side(b, shapes) for b in (choice.then, choice.otherwise))
        context.emit(host.When(host.Comparison("ne", condition, integer(0)), then, otherwise))
        if count == 1 and isinstance(value.info, TensorInfo):
            context.pointers[value] = targets[0]
            return
        fields = tuple(self.named(o, t) for o, t in zip(choice.then.results, targets, strict=True))
        self.tuples[value] = fields

    def named(self, like: Operand, target: host.Local) -> Value:
        """Return a new value for one result of a branch."""
        info = self.context.tensor(like)
        made = Value(-1, target.name, info)
        self.context.pointers[made] = target
        return made

    def side(self, branch: Branch, targets: Mapping[host.Local, Info]) -> host.Body:
        """Emit one side of a branch."""
        with self.context.nested() as body:
            self.run(branch.bindings)
            for (target, info), result in zip(targets.items(), branch.results, strict=True):
                self.alike(info, result, target.name)
                self.context.emit(host.Assign(target, self.context.pointer(result)))
        return tuple(body)


def _info_dims(info: Info) -> tuple[Expr, ...] | None:
    match info:
        case TensorInfo(shape=shape):
            return shape
        case ShapeInfo(dims=dims):
            return dims
        case _:
            return None
