"""Kernel launches on a device, through a launch record and the ``launch`` of the runtime table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ....errors import TilewrightError
from ....ir.graph.devices import devices_in
from ....ir.graph.nodes import DEFAULT_DEVICE, Binding, LaunchKernel, operand_info
from ....ir.host import nodes as host
from ....ir.identity import fresh_name
from ....ir.loop.nodes import Buffer, BufferParam, PrimFunc
from ....ir.symbolic import Const, Expr, Var, const_value, substitute, to_text
from ....ir.thread import runtime_table
from ....ir.thread.function import LaunchGrid
from ....target.gpus import BLOCK_AXES, THREAD_AXES, limits_of
from ...manifest import CheckSite, KernelSpec
from ...nvidia import dynamic_bytes
from ...rtlib import layout
from ..pipeline import LoweredKernel
from .context import CALL, INSTANCE, OWN, SINK, HostContext, HostKernel, integer
from .index_limits import limit_texts, short_indices, short_name

AXES: Final = (*BLOCK_AXES, *THREAD_AXES)
"""The launch axes in the order of the launch record."""


class PlacementError(TilewrightError):
    """A tensor on a device where the compiled program cannot use it."""

    title = "Unsupported device of a tensor"


class NoDeviceLibraryError(TilewrightError):
    """A call of a host library function with tensors in device memory."""

    title = "Unavailable library function"


@dataclass(frozen=True, slots=True)
class Enqueued:
    """A kernel launch: the grid, buffer addresses, values of the symbols, and scratch."""

    kernel: HostKernel
    grid: LaunchGrid
    buffers: tuple[host.Value, ...]
    values: tuple[Expr, ...]
    scratch: host.Value | None = None
    stream: int = 0

    def extents(self) -> tuple[Expr, ...]:
        """Return the number of thread blocks and threads per axis, in launch record order."""
        known: dict[Var, Expr | int] = dict(zip(self.kernel.symbols, self.values, strict=True))
        given = {a.tag: substitute(a.extent, known) for a in self.grid.axes}
        return tuple(given.get(tag, Const(1)) for tag in AXES)


def host_kernel(kernel: LoweredKernel) -> HostKernel:
    """Return the calling convention of a lowered kernel."""
    return HostKernel(
        kernel.symbols,
        kernel.scratch,
        kernel.threads,
        kernel.function.launch,
        dynamic_bytes(kernel.function),
        kernel.function.width.limits,
        tuple((t.name, t.size, t.offset) for t in kernel.temporaries),
    )


def kernel_spec(source: PrimFunc, kernel: LoweredKernel, grid: LaunchGrid) -> KernelSpec:
    """Return the launch description of a kernel, for callers that launch it themselves."""
    names: dict[Var, str] = {}
    for symbol in kernel.symbols:
        names[symbol] = fresh_name(symbol.name, names.values())
    given = {a.tag: a.extent for a in grid.axes}
    extents = [given.get(tag, Const(1)) for tag in AXES]
    return KernelSpec(
        kernel.name,
        tuple(b.name for b in source.buffer_params),
        tuple(names.values()),
        tuple(to_text(e, names) for e in extents[:3]),
        tuple(const_value(e) or 1 for e in extents[3:]),
        dynamic_bytes(kernel.function),
        "" if kernel.scratch is None else to_text(kernel.scratch, names),
        tuple(_type(b, names) for b in source.buffer_params),
        tuple(p.access for p in source.params if isinstance(p, BufferParam)),
        tuple(dict.fromkeys(_required(source, names))),
        narrow=short_name(kernel.name) if kernel.function.width.limits else "",
        limits=limit_texts(kernel.function.width.limits, names),
    )


def _required(source: PrimFunc, names: Mapping[Var, str]) -> Iterator[str]:
    """Yield the declared bounds of the symbols, then the facts that the kernel assumes."""
    for symbol, name in names.items():
        if symbol.lower is not None:
            yield f"{name} >= {symbol.lower}"
        if symbol.upper is not None:
            yield f"{name} <= {symbol.upper}"
        if symbol.multiple_of > 1:
            yield f"{name} % {symbol.multiple_of} == 0"
    for fact in source.facts:
        if fact.usable and fact.predicate.free <= names.keys():
            yield to_text(fact.predicate, names)


def _type(buffer: Buffer, names: Mapping[Var, str]) -> str:
    shape = ", ".join(to_text(extent, names) for extent in buffer.shape)
    return f"{buffer.dtype.name}[{shape}]"


def enqueue(context: HostContext, name: str, launch: Enqueued) -> None:
    """Emit a kernel launch, skipped if the grid is empty; ``launches`` already contains it."""
    extents = launch.extents()
    some: list[host.Value] = []
    for tag, extent in zip(AXES, extents, strict=True):
        _check(context, name, tag, extent)
        if const_value(extent) is None:
            some.append(host.Comparison("gt", context.ready(extent, name), integer(0)))
    if any(const_value(extent) == 0 for extent in extents):
        return
    with context.nested() as body:
        _start(context, name, launch, extents)
    for condition in some:
        body = [host.When(condition, tuple(body))]
    context.emit(*body)


def _check(context: HostContext, name: str, tag: str, extent: Expr) -> None:
    """Emit a check of the grid against the launch limits."""
    limit = limits_of(context.target).axes[tag]
    if tag not in BLOCK_AXES or (extent.upper is not None and extent.upper <= limit):
        return
    given = context.ready(extent, f"grid of {name!r}")
    fits = host.Comparison("le", given, integer(limit))
    site = CheckSite("grid", f"{name}: {tag}", names=("blocks", "limit"))
    context.guard(fits, site, given, integer(limit))


def _handle(context: HostContext, name: str) -> host.Value:
    if name not in context.handles:
        context.handles.append(name)
    handles = host.Read("ptr", INSTANCE, integer(layout.INSTANCE_KERNELS))
    return host.Read("ptr", handles, integer(8 * context.handles.index(name)))


def _chosen_handle(context: HostContext, name: str, launch: Enqueued) -> host.Value:
    """Return the handle of the version of a kernel that runs for these sizes."""
    kernel, values = launch.kernel, launch.values
    choice = short_indices(context, name, kernel.limits, zip(kernel.symbols, values, strict=True))
    if isinstance(choice, bool):
        return _handle(context, short_name(name) if choice else name)
    handle = context.local("handle", "ptr")
    either = (host.Assign(handle, _handle(context, n)) for n in (short_name(name), name))
    context.emit(host.When(choice, *((assign,) for assign in either)))
    return handle


def _start(context: HostContext, name: str, launch: Enqueued, extents: tuple[Expr, ...]) -> None:
    record = context.local("record", "ptr")
    context.emit(host.Reserve(record, layout.RECORD_SIZE))
    handle = _chosen_handle(context, name, launch)
    context.emit(host.Write("ptr", record, integer(layout.RECORD_HANDLE), handle))
    for k, extent in enumerate(extents):
        offset = integer(layout.RECORD_GRID + 8 * k)
        context.emit(host.Write("i64", record, offset, context.ready(extent, name)))
    shared = integer(launch.kernel.shared)
    context.emit(host.Write("i64", record, integer(layout.RECORD_SHARED), shared))
    words = {layout.RECORD_STREAM: launch.stream}
    words |= {layout.RECORD_CLUSTER + 8 * k: 0 for k in range(3)}
    for offset, word in (words | {layout.RECORD_ATTRIBUTES: 0}).items():
        context.emit(host.Write("i64", record, integer(offset), integer(word)))
    arguments, count = _arguments(context, name, launch)
    _call(context, name, record, arguments, count)


def _arguments(context: HostContext, name: str, launch: Enqueued) -> tuple[host.Value, int]:
    """Emit the array of argument addresses, followed by the argument values."""
    symbols = tuple(context.ready(v, f"launch of {name!r}") for v in launch.values)
    scratch = () if launch.scratch is None else (launch.scratch,)
    count = len(launch.buffers) + len(symbols) + len(scratch)
    block = context.local("arguments", "ptr")
    context.emit(host.Reserve(block, max(16 * count, 8)))
    integers = range(len(launch.buffers), len(launch.buffers) + len(symbols))
    for k, word in enumerate((*launch.buffers, *symbols, *scratch)):
        offset = 8 * (count + k)
        width: host.Width = "i64" if k in integers else "ptr"
        context.emit(host.Write(width, block, integer(offset), word))
        context.emit(host.Write("ptr", block, integer(8 * k), host.Moved(block, integer(offset))))
    return block, count


def _call(
    context: HostContext, name: str, record: host.Value, arguments: host.Value, count: int
) -> None:
    ordinal = len(context.launches) - 1
    watched = host.Comparison("ne", SINK, host.NullPointer())
    clock = host.Read("ptr", OWN, integer(runtime_table.PROFILE))
    begin, end = (
        host.When(watched, (host.Invoke(clock, (CALL, integer(ordinal), integer(phase))),))
        for phase in (0, 1)
    )
    code = context.local("code", "code")
    entry = host.Read("ptr", OWN, integer(runtime_table.LAUNCH))
    call = host.Invoke(entry, (CALL, record, arguments, integer(count)), code)
    context.emit(begin, call, end)
    fine = host.Comparison("eq", code, integer(0))
    context.guard(fine, CheckSite("launch", name, names=("code",)), code)


def refuse_library(context: HostContext, symbol: str, binding: Binding) -> None:
    """Reject a host library call if the tensors are in device memory."""
    if context.remote:
        raise NoDeviceLibraryError(
            f"library function {symbol!r} requires tensors in host memory; target "
            f"{context.target} keeps them in device memory",
            where=f"function {context.function.name!r}, binding {binding.value.name!r}",
            hint="lower the operation to a kernel instead of a library call",
        )


def on_default_device(
    context: HostContext, name: str, launch: LaunchKernel, binding: Binding
) -> None:
    """Reject the launch of a kernel that is compiled for another device than its arguments."""
    for device in {context.tensor(a).device for a in launch.args} - {DEFAULT_DEVICE}:
        raise PlacementError(
            f"kernel {name!r} is compiled for {context.target}, but its arguments are on "
            f"{device!r}",
            where=f"function {context.function.name!r}, binding {binding.value.name!r}",
            hint="copy the arguments to the default device before the launch",
        )


def check_ends(context: HostContext) -> None:
    """Reject parameters and results on other devices than the default one."""
    func = context.function
    values = [(f"parameter {p.value.name!r}", p.value.info) for p in func.params]
    values += [(f"result {k}", operand_info(r)) for k, r in enumerate(func.results)]
    for name, info in values:
        for device in devices_in(info):
            if device != DEFAULT_DEVICE:
                raise PlacementError(
                    f"{name} is on {device!r}; parameters and results of a call are on the default "
                    "device",
                    where=f"function {func.name!r}",
                    hint="copy it to or from storage of the device inside the function",
                )
