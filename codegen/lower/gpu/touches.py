"""What a statement of a thread touches in memory that other threads see, and when two meet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from ....ir.symbolic import (
    Bool,
    Eq,
    Expr,
    Facts,
    Var,
    all_of,
    any_of,
    as_expr,
    bounds,
    const_value,
    eq,
    is_proved,
    linear_form,
    substitute,
    var,
)
from ....ir.thread.nodes import (
    NO_SOURCE,
    Address,
    Gather,
    Index,
    Load,
    Offset,
    Perform,
    Reg,
    Scatter,
    Source,
    Stmt,
    Store,
    Value,
)
from ....ir.thread.types import PointerType, VectorType
from ....ir.thread.visit import statement_values, walk_values
from ..loops.known import conjuncts


@dataclass(frozen=True, slots=True)
class Touch:
    """Bytes that every thread touches at once.

    Parameters
    ----------
    base : Reg
        The memory.
    write : bool
        Whether it is written.
    offset : Expr or None
        Where, in bytes; None: anywhere.
    size : int
        How many bytes from there.
    source : Source
        The statement of the program.
    own : frozenset of Var
        Variables of loops that are over: the touch happens for all their values.
    fixed : Mapping of Var to Expr
        Indices of the threads that do this, where it is one of an axis alone.
    """

    base: Reg
    write: bool
    offset: Expr | None
    size: int
    source: Source
    own: frozenset[Var] = frozenset()
    fixed: Mapping[Var, Expr] = field(default_factory=dict[Var, Expr])

    def over(self, loop: Var) -> Touch:
        """Give the touch as it looks once a loop is over, or from another of its iterations."""
        return replace(self, own=self.own | {loop})


def touches(statement: Stmt, fixed: Mapping[Var, Expr]) -> tuple[Touch, ...]:
    """Give what a statement itself touches, reads first."""
    source = getattr(statement, "source", NO_SOURCE)
    found = [*_reads(statement), *_writes(statement)]
    return tuple(replace(t, source=source, fixed=fixed) for t in found)


def _reads(statement: Stmt) -> Iterator[Touch]:
    for value in walk_values(statement_values(statement)):
        match value:
            case Load(type=VectorType() as of, address=address, stride=stride):
                yield from _touch(address, of, stride, write=False)
            case Gather(type=of, base=base, offsets=offsets):
                yield from _scattered(base, offsets, of, write=False)
            case _:
                pass
    if isinstance(statement, Perform):
        for effect in statement.operation.effects:
            address = Address(statement.args[effect.operand], as_expr(0))
            yield from _at(address, effect.bytes, write=effect.action == "write")


def _writes(statement: Stmt) -> Iterator[Touch]:
    match statement:
        case Store(address=address, value=value, stride=stride):
            if isinstance(value.type, VectorType):
                yield from _touch(address, value.type, stride, write=True)
        case Scatter(base=base, offsets=offsets, value=value):
            if isinstance(value.type, VectorType):
                yield from _scattered(base, offsets, value.type, write=True)
        case _:
            return


def _touch(
    address: Address, of: VectorType, stride: Expr | None, *, write: bool
) -> Iterator[Touch]:
    width = of.dtype.bytes
    if stride is None:
        yield from _at(address, width * of.lanes, write=write)
        return
    for lane in range(of.lanes):
        yield from _at(replace(address, offset=address.offset + stride * lane), width, write=write)


def _scattered(base: Value, offsets: Value, of: VectorType, *, write: bool) -> Iterator[Touch]:
    for touch in _at(Address(base, as_expr(0)), of.dtype.bytes, write=write):
        match offsets:
            case Index(expr=expr, lane=Var() as lane):
                yield replace(touch, offset=expr, own=frozenset((lane,)))
            case _:
                yield replace(touch, offset=None)


def _at(address: Address, size: int, *, write: bool) -> Iterator[Touch]:
    base, offset = address.base, address.offset
    while isinstance(base, Offset):
        base, offset = base.base, offset + base.offset
    if not isinstance(base, Reg) or not isinstance(base.type, PointerType):
        return
    if base.type.space != "generic":
        yield Touch(base, write, offset, size, NO_SOURCE)


def fixed_by(condition: Bool, axes: frozenset[Var]) -> dict[Var, Expr]:
    """Give the axes whose index a condition tells, and what it is."""
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


# ---------------------------------------------------------------- two touches


def meet(first: Touch, second: Touch, axes: Mapping[Var, int]) -> bool:
    """Whether two threads of a block may touch the same bytes, one of them writing.

    Parameters
    ----------
    first, second : Touch
        In program order, with nothing between them that lets threads wait.
    axes : Mapping of Var to int
        The indices of the threads and their extents.
    """
    if first.base is not second.base or not (first.write or second.write):
        return False
    if _same_instance(first, second):
        return False
    if first.offset is None or second.offset is None:
        return True
    ours, theirs = _apart(first, axes, other=True), _apart(second, axes, other=False)
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
    return not _told_apart(distance, (first.size, second.size), pairs, same=same)


def _same_instance(first: Touch, second: Touch) -> bool:
    """Whether binding proved that different threads touch different bytes.

    That holds of one block's writes to global memory, of one iteration or of the same element.
    """
    block = first.source.uid
    if first.base.type != PointerType("global") or block is None or block != second.source.uid:
        return False
    carried = first.own - second.own
    return not carried or (first.offset is second.offset and first.offset is not None)


@dataclass(frozen=True, slots=True)
class _Apart:
    offset: Expr
    axes: Mapping[Var, Var]
    fixed: Mapping[Var, Expr]


def _apart(touch: Touch, axes: Mapping[Var, int], *, other: bool) -> _Apart:
    """Rename what a touch does not share with the other one: own loops, and another thread."""
    names: dict[Var, Expr] = {v: var(v.name, lower=v.lower, upper=v.upper) for v in touch.own}
    mine = {a: var(a.name, lower=0, upper=n - 1) if other else a for a, n in axes.items()}
    names.update(mine)
    names.update(touch.fixed)
    offset = as_expr(0) if touch.offset is None else substitute(touch.offset, names)
    return _Apart(offset, mine, touch.fixed)


def _told_apart(
    distance: Expr, sizes: tuple[int, int], pairs: list[tuple[Var, Var]], *, same: bool
) -> bool:
    """Whether bytes that overlap are the same thread's, or none overlap.

    ``distance`` is that of the second from the first; overlapping means ``-second < distance <
    first`` of the two sizes.
    """
    first, second = sizes
    span = bounds(distance)
    if span.lower is not None and span.lower >= first:
        return True
    if span.upper is not None and span.upper <= -second:
        return True
    if same and _digits(distance, max(first, second), pairs):
        return True
    claims: list[Bool] = [distance >= first, distance <= -second]
    if same:
        claims.append(all_of(*(eq(a, b) for a, b in pairs)))
    return is_proved(any_of(*claims), Facts())


def _digits(distance: Expr, width: int, pairs: list[tuple[Var, Var]]) -> bool:
    """Read the distance as a number whose digits are differences of indices.

    Where each digit weighs more than all below it can make up for, a distance of nearly 0 has
    only digits that are 0: the same thread.
    """
    form = linear_form(distance, tuple(distance.free))
    rest = None if form is None else const_value(form.rest)
    if form is None or rest is None:
        return False
    weights = {v: const_value(c) for v, c in form.coefficients.items()}
    digits: list[tuple[int, int, bool]] = []
    for mine, other in pairs:
        weight, opposite = weights.pop(mine, 0), weights.pop(other, 0)
        if not weight or opposite is None or weight != -opposite:
            return False
        digits.append((abs(weight), (mine.upper or 0), True))
    for variable, weight in weights.items():
        if weight is None or variable.lower is None or variable.upper is None:
            return False
        digits.append((abs(weight), max(abs(variable.lower), abs(variable.upper)), False))
    return _unique(digits, abs(rest) + width - 1)


def _unique(digits: list[tuple[int, int, bool]], slack: int) -> bool:
    left = sorted(digits)
    while any(needed for *_, needed in left):
        weight, _, _ = left.pop()
        if weight <= slack + sum(w * most for w, most, _ in left):
            return False
    return True
