"""Accesses of a thread to memory that other threads share, and conflicts between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ....ir.analysis.distances import equal_pairs, never_overlap
from ....ir.symbolic import (
    Bool,
    Eq,
    Expr,
    Facts,
    Var,
    all_of,
    any_of,
    as_expr,
    conjuncts,
    const_value,
    eq,
    is_proved,
    substitute,
    var,
)
from ....ir.thread.nodes import (
    NO_SOURCE,
    Address,
    AtomicUpdate,
    Gather,
    Index,
    Load,
    MachineOp,
    Offset,
    Reg,
    Scatter,
    Source,
    Stmt,
    Store,
    Value,
)
from ....ir.thread.types import PointerType, VectorType
from ....ir.thread.visit import statement_values, walk_values


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """An access of every thread of a block to shared or global memory.

    Parameters
    ----------
    base : Reg
        The pointer to the memory.
    write : bool
        Whether the access is a write.
    offset : Expr or None
        The offset from ``base`` in bytes; None if it is unknown.
    size : int
        The number of bytes.
    source : Source
        The statement of the program.
    loops : frozenset of Var
        Variables of loops that have ended: the access happens for all their values.
    fixed : Mapping of Var to Expr
        The thread index along each axis of which only one thread does the access.
    atomic : bool
        Whether the access is an atomic update; such accesses do not conflict with each other.
    """

    base: Reg
    write: bool
    offset: Expr | None
    size: int
    source: Source
    loops: frozenset[Var] = frozenset()
    fixed: Mapping[Var, Expr] = field(default_factory=dict[Var, Expr])
    atomic: bool = False

    def after(self, loop: Var) -> MemoryAccess:
        """Return the access as seen after a loop, or from another iteration of the loop."""
        return replace(self, loops=self.loops | {loop})


def memory_accesses(statement: Stmt, fixed: Mapping[Var, Expr]) -> tuple[MemoryAccess, ...]:
    """Return the accesses of a statement without nested statements, reads first."""
    source = getattr(statement, "source", NO_SOURCE)
    found = [*_reads(statement), *_writes(statement)]
    return tuple(replace(t, source=source, fixed=fixed) for t in found)


def _reads(statement: Stmt) -> Iterator[MemoryAccess]:
    for value in walk_values(statement_values(statement)):
        match value:
            case Load(type=VectorType() as of, address=address, stride=stride):
                yield from _vector_accesses(address, of, stride, write=False)
            case Gather(type=of, base=base, offsets=offsets):
                yield from _indexed_accesses(base, offsets, of, write=False)
            case _:
                pass
    if isinstance(statement, MachineOp):
        for effect in statement.operation.effects:
            address = Address(statement.args[effect.operand], as_expr(0))
            yield from _access_at(address, effect.bytes, write=effect.action == "write")


def _writes(statement: Stmt) -> Iterator[MemoryAccess]:
    match statement:
        case Store(address=address, value=value, stride=stride):
            if isinstance(value.type, VectorType):
                yield from _vector_accesses(address, value.type, stride, write=True)
        case Scatter(base=base, offsets=offsets, value=value):
            if isinstance(value.type, VectorType):
                yield from _indexed_accesses(base, offsets, value.type, write=True)
        case AtomicUpdate(address=address, value=value):
            size = value.type.width if isinstance(value.type, VectorType) else 8
            for access in _access_at(address, size, write=True):
                yield replace(access, atomic=True)
        case _:
            return


def _vector_accesses(
    address: Address, of: VectorType, stride: Expr | None, *, write: bool
) -> Iterator[MemoryAccess]:
    width = of.width
    if stride is None:
        yield from _access_at(address, width * of.lanes, write=write)
        return
    for lane in range(of.lanes):
        yield from _access_at(
            replace(address, offset=address.offset + stride * lane), width, write=write
        )


def _indexed_accesses(
    base: Value, offsets: Value, of: VectorType, *, write: bool
) -> Iterator[MemoryAccess]:
    for access in _access_at(Address(base, as_expr(0)), of.width, write=write):
        match offsets:
            case Index(expr=expr, lane=Var() as lane):
                yield replace(access, offset=expr, loops=frozenset((lane,)))
            case _:
                yield replace(access, offset=None)


def _access_at(address: Address, size: int, *, write: bool) -> Iterator[MemoryAccess]:
    base, offset = address.base, address.offset
    while isinstance(base, Offset):
        base, offset = base.base, offset + base.offset
    if not isinstance(base, Reg) or not isinstance(base.type, PointerType):
        return
    if base.type.space != "generic":
        yield MemoryAccess(base, write, offset, size, NO_SOURCE)


def fixed_axes(condition: Bool, axes: frozenset[Var]) -> dict[Var, Expr]:
    """Return the axes whose index a condition fixes to a constant, with that index."""
    sides = [
        pair
        for part in conjuncts(condition)
        if isinstance(part, Eq)
        for pair in ((part.left, part.right), (part.right, part.left))
    ]
    return {
        one: other
        for one, other in sides
        if isinstance(one, Var) and one in axes and const_value(other) is not None
    }


def _prove(claim: Bool) -> bool:
    return is_proved(claim, Facts())


def may_conflict(
    first: MemoryAccess,
    second: MemoryAccess,
    axes: Mapping[Var, int],
    prove: Callable[[Bool], bool] = _prove,
    *,
    repeated: bool = False,
) -> bool:
    """Return whether two threads of a block may access the same bytes, one of them writing.

    The answer depends on the difference of the offsets only, not on a constant in both of them.

    Parameters
    ----------
    first, second : MemoryAccess
        Two accesses in program order, without a barrier between them.
    axes : Mapping of Var to int
        The thread indices and their extents.
    prove : callable
        Returns whether a claim is proved; called if simpler arguments do not decide.
    repeated : bool
        Whether several threads execute the same iteration of the block of the first access.
    """
    if first.base is not second.base or not (first.write or second.write):
        return False
    if first.atomic and second.atomic:
        return False
    if not repeated and _same_instance(first, second):
        return False
    if first.offset is None or second.offset is None:
        return True
    ours, theirs = _instance(first, axes, fresh=True), _instance(second, axes, fresh=False)
    distance = theirs.offset - ours.offset
    wanted = [
        (a, ours.fixed.get(a), theirs.fixed.get(a)) for a, extent in axes.items() if extent > 1
    ]
    if any(x is not None and y is not None and x != y for _, x, y in wanted):
        same = False
        pairs: list[tuple[Var, Var]] = []
    else:
        same = True
        pairs = [(theirs.axes[a], ours.axes[a]) for a, x, y in wanted if x is None or y is None]
    sizes = first.size, second.size
    if never_overlap(distance, sizes):
        return False
    if same and equal_pairs(distance, pairs, max(sizes)) >= {*pairs}:
        return False
    claims: list[Bool] = [distance >= first.size, distance <= -second.size]
    if same:
        claims.append(all_of(*(eq(a, b) for a, b in pairs)))
    return not prove(any_of(*claims))


def _same_instance(first: MemoryAccess, second: MemoryAccess) -> bool:
    """Return whether ``bind`` proved that different threads access different bytes.

    This applies to accesses of one block to global memory at one address: its iterations inside of
    the loops that are bound to threads are independent, and none of its offset's variables changed.
    Each iteration must belong to one thread.
    """
    block = first.source.uid
    if first.base.type != PointerType("global") or block is None or block != second.source.uid:
        return False
    if first.offset is None or first.offset != second.offset:
        return False
    return first.offset.free.isdisjoint(first.loops | second.loops)


@dataclass(frozen=True, slots=True)
class _Instance:
    offset: Expr
    axes: Mapping[Var, Var]
    fixed: Mapping[Var, Expr]


def _instance(access: MemoryAccess, axes: Mapping[Var, int], *, fresh: bool) -> _Instance:
    """Rename the variables that the other access does not share: ended loops, another thread."""
    names: dict[Var, Expr] = {v: var(v.name, lower=v.lower, upper=v.upper) for v in access.loops}
    mine = {a: var(a.name, lower=0, upper=n - 1) if fresh else a for a, n in axes.items()}
    names.update(mine)
    names.update(access.fixed)
    offset = as_expr(0) if access.offset is None else substitute(access.offset, names)
    return _Instance(offset, mine, access.fixed)
