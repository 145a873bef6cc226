"""The order of operations on different streams of a device.

Operations are emitted in program order. Before an operation that accesses memory which an earlier
operation of another stream accessed, and one of them writes, its stream waits for the other one.
A storage may be at the address of one whose live range has ended, so its first operation waits for
all operations on such storages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ....ir.graph.devices import stream_of
from ....ir.graph.live_ranges import LiveRanges
from ....ir.graph.nodes import (
    AllocStorage,
    Binding,
    GrowTensor,
    IfElse,
    LaunchKernel,
    LaunchLibrary,
    Loop,
    MatchCast,
    Operand,
    Rhs,
    Value,
    VersionSwitch,
)
from ....ir.graph.visit import inner_bindings, operands_of, written_operands
from ....ir.host import nodes as host
from ....ir.loop.nodes import BufferParam
from ...manifest import CheckSite
from .context import CALL, HostContext, integer


def stream_count(bindings: Sequence[Binding]) -> int:
    """Return the number of streams that bindings use; at least 1, for stream 0.

    Examples
    --------
    >>> stream_count(())
    1
    """
    counts = [stream_of(b.right) + 1 for b in bindings]
    nested = [stream_count(inner) for b in bindings for inner in inner_bindings(b.right)]
    return max([1, *counts, *nested])


_NESTED: Final = (IfElse, VersionSwitch, Loop, GrowTensor)
"""The right-hand sides that contain operations, or move memory that earlier operations use."""


@dataclass
class _Uses:
    """The times of the last read and the last write of a memory on each stream."""

    reads: dict[int, int] = field(default_factory=dict[int, int])
    writes: dict[int, int] = field(default_factory=dict[int, int])


class Streams:
    """The waits of one function between its streams; nothing is emitted for a single stream."""

    def __init__(self, context: HostContext) -> None:
        """Start with all streams ordered after the caller."""
        func = context.function
        self.count = stream_count(func.bindings) if context.remote else 1
        self._context = context
        self._func = func
        self._live = LiveRanges(func) if self.count > 1 else None
        self._roots: dict[Value, frozenset[Value]] = {
            p.value: frozenset({p.value}) for p in func.params
        }
        self._uses: dict[Value, _Uses] = {}
        self._clock = 0
        self._last: dict[int, int] = {}
        self._waited: dict[tuple[int, int], int] = {}

    def begin(self) -> None:
        """Let all streams wait for the operations of earlier calls."""
        for stream in range(1, self.count):
            self._order(0, stream)

    def before(self, binding: Binding) -> None:
        """Emit the waits of an operation before it."""
        if self._live is None:
            return
        right = binding.right
        self._define(binding)
        if isinstance(right, _NESTED):
            self.join()
            return
        accesses = isinstance(right, LaunchKernel | LaunchLibrary | MatchCast)
        if not (accesses or written_operands(right)):
            return
        stream = stream_of(right)
        written = self._written(right)
        roots = self._roots_of(operands_of(right))
        new = [r for r in roots if r not in self._uses and r in self._live.ranges]
        for root in sorted(roots, key=lambda r: r.uid):
            known = self._uses.get(root, _Uses())
            self._after(stream, known.writes)
            if root in written:
                self._after(stream, known.reads)
        if new:
            for ended in self._ended(self._live.positions[binding]):
                self._after(stream, ended.reads)
                self._after(stream, ended.writes)
        self._clock += 1
        self._last[stream] = self._clock
        for root in roots:
            uses = self._uses.setdefault(root, _Uses())
            (uses.writes if root in written else uses.reads)[stream] = self._clock

    def after(self, binding: Binding) -> None:
        """Emit the waits after branches and loops, whose operations may not have run."""
        right = binding.right
        if self._live is None or not isinstance(right, _NESTED):
            return
        self.join()
        if isinstance(right, IfElse):
            results = (*right.then.results, *right.otherwise.results)
            self._roots[binding.value] = self._roots_of(results)

    def join(self) -> None:
        """Let every stream wait for all operations so far, around branches."""
        for stream in range(1, self.count):
            self._order(stream, 0)
        self.begin()

    def finish(self) -> None:
        """Let stream 0 wait for all operations, so that results can be copied."""
        self._after(0, self._last)

    def _ended(self, position: int) -> Iterable[_Uses]:
        """Return the uses of the storages whose live ranges end before a position."""
        live = self._live
        ranges = {} if live is None else live.ranges
        return [u for r, u in self._uses.items() if r in ranges and ranges[r].last < position]

    def _after(self, stream: int, times: Mapping[int, int]) -> None:
        """Let a stream wait for the operations at the given times of other streams."""
        for other, time in sorted(times.items()):
            if other != stream and self._waited.get((stream, other), 0) < time:
                self._order(other, stream)

    def _order(self, before: int, after: int) -> None:
        context = self._context
        for other in range(self.count):  # a wait implies the earlier waits of the other stream
            known = max(self._waited.get((s, other), 0) for s in (before, after))
            self._waited[after, other] = known
        self._waited[after, before] = self._clock
        code = context.local("code", "code")
        args = (CALL, integer(before), integer(after))
        context.emit(host.Invoke("tw_order_streams", args, code))
        fine = host.Comparison("eq", code, integer(0))
        site = CheckSite("device", f"wait of stream {after} for stream {before}", names=("code",))
        context.guard(fine, site, code)

    def _define(self, binding: Binding) -> None:
        """Record the memory that a value may be in."""
        right = binding.right
        own = isinstance(right, AllocStorage | Loop)  # a loop returns blocks of its own
        known = self._roots_of(operands_of(right))
        self._roots[binding.value] = known | {binding.value} if own else known
        for param in right.params if isinstance(right, Loop) else ():
            self._roots[param.value] = self._roots_of((param.given,)) | {param.value}

    def _roots_of(self, operands: Iterable[Operand]) -> frozenset[Value]:
        sets = [self._roots.get(o, frozenset[Value]()) for o in operands if isinstance(o, Value)]
        return frozenset[Value]().union(*sets)

    def _written(self, right: Rhs) -> frozenset[Value]:
        """Return the memory that an operation writes."""
        match right:
            case LaunchKernel(function=name, args=args):
                params = self._context.module.prim(name).params
                access = [p.access for p in params if isinstance(p, BufferParam)]
                outs = [a for a, how in zip(args, access, strict=True) if how != "in"]
                return self._roots_of(outs)
            case _:
                return self._roots_of(written_operands(right))
