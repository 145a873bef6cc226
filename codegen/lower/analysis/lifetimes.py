"""The live ranges of temporaries in a prepared function, as positions of its statements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from ....ir.identity import Uid
from ....ir.loop.nodes import Bind, Buffer, Element, For, Let, Load, PrimFunc, Stmt, Store
from ....ir.loop.visit import children, walk_element
from ....ir.sizes import shape_bytes
from ....ir.symbolic import const_value
from ....schedules.launch.annotations import own_iterations

STACK_LIMIT: Final = 16 * 1024
"""The largest temporary on the stack, in bytes."""

STACK_BYTES: Final = 128 * 1024
"""The largest sum of the temporaries on the stack, in bytes."""

LiveRange: TypeAlias = "tuple[int, int]"
"""The first and the last position of a temporary, both inclusive."""


def fits_stack(buffer: Buffer) -> bool:
    """Return whether a temporary is small enough for the stack."""
    size = const_value(shape_bytes(buffer.shape, buffer.dtype))
    return size is not None and size <= STACK_LIMIT


def on_stack(buffers: tuple[Buffer, ...]) -> frozenset[Buffer]:
    """Return the temporaries of a CPU kernel that are on the stack, smaller ones first."""
    found: set[Buffer] = set()
    room = STACK_BYTES
    small = [b for b in buffers if fits_stack(b)]
    for buffer in sorted(small, key=lambda b: const_value(shape_bytes(b.shape, b.dtype)) or 0):
        room -= const_value(shape_bytes(buffer.shape, buffer.dtype)) or 0
        if room < 0:
            break
        found.add(buffer)
    return frozenset(found)


def live_ranges(func: PrimFunc) -> dict[Buffer, LiveRange]:
    """Return the live ranges of the temporaries that a prepared function accesses.

    A temporary is live from its first to its last access. In a loop that is not known to provide
    new elements to each iteration, an element may be read by a later iteration, so the temporary
    is live in the whole loop. The iterations of parallel and vectorized loops run at the same time:
    only the iterations of a parallel loop whose workers have their own elements are separate.

    Examples
    --------
    >>> from ....ir.script import parse
    >>> f = parse('''
    ... @prim_func
    ... def f(x: Buffer[(8,), f32], y: Out[(8,), f32], z: Out[(8,), f32]):
    ...     s = alloc((8,), f32)
    ...     t = alloc((8,), f32)
    ...     for i in range(8): s[i] = x[i]
    ...     for j in range(8): y[j] = s[7 - j]
    ...     for k in range(8): t[k] = x[k]
    ...     for l in range(8): z[l] = t[7 - l]
    ... ''').prim("f")
    >>> ranges = live_ranges(f)
    >>> ranges[f.buffers[0]][1] < ranges[f.buffers[1]][0]
    True
    """
    names = own_iterations(func)
    own = {b: names.get(b.name, frozenset()) for b in func.buffers}
    scan = _Scan(own)
    scan.statement(func.body)
    return {b: (first, scan.last[b]) for b, first in scan.first.items()}


@dataclass(slots=True)
class _Loop:
    """A loop around the current statement, and the temporaries that are live in all of it."""

    uid: Uid
    first: int
    live: set[Buffer] = field(default_factory=set[Buffer])


class _Scan:
    """One traversal in program order."""

    def __init__(self, own: Mapping[Buffer, frozenset[Uid]]) -> None:
        self._own = own
        self._position = 0
        self._loops: list[_Loop] = []
        self.first: dict[Buffer, int] = {}
        self.last: dict[Buffer, int] = {}

    def statement(self, statement: Stmt) -> None:
        self._position += 1
        match statement:
            case Store(buffer=buffer, value=value):
                self._access(buffer)
                self._elements(value)
            case Bind(value=value):
                self._elements(value)
            case Let(load=load):
                self._elements(load)
            case For(uid=uid):
                self._loops.append(_Loop(uid, self._position))
            case _:
                pass
        for child in children(statement):
            self.statement(child)
        if isinstance(statement, For):
            for buffer in self._loops.pop().live:
                self.last[buffer] = max(self.last.get(buffer, 0), self._position)

    def _elements(self, element: Element) -> None:
        for part in walk_element(element):
            if isinstance(part, Load):
                self._access(part.buffer)

    def _access(self, buffer: Buffer) -> None:
        own = self._own.get(buffer)
        if own is None:
            return
        outer = next((x for x in self._loops if x.uid not in own), None)
        first = self._position if outer is None else outer.first
        self.first[buffer] = min(self.first.get(buffer, first), first)
        if outer is None:
            self.last[buffer] = max(self.last.get(buffer, 0), self._position)
        else:
            outer.live.add(buffer)
