"""Selection of the integer terms of a kernel that are computed with 32-bit integers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Self

from ....ir.loop.nodes import PrimFunc
from ....ir.symbolic import Bool, Cmp, Expr, FloorDiv, Mod, Var, postorder
from ....ir.symbolic.assumptions import Assumptions
from ....ir.thread.function import ThreadFunc
from ....ir.thread.index_width import prefix_length, scaled
from ....ir.thread.nodes import (
    Address,
    AtomicLoad,
    AtomicStore,
    AtomicUpdate,
    Cast,
    CompareExchange,
    Gather,
    Index,
    Load,
    Loop,
    Offset,
    Predicate,
    Scatter,
    Stmt,
    Store,
    Value,
)
from ....ir.thread.visit import statement_values, walk, walk_values
from ....schedules.launch.lowering_pass import ANY, ThreadPass
from ....target.target import Target
from ...llvm.processor import resolve
from ..analysis.index_width import index_width, lane_variables, ranges_of

LONG_BITS: Final = 64
"""The number of bits of an integer that may be a size."""

MASKS_FROM: Final = 512
"""The width in bits of the vectors of CPUs that have registers for masks."""


@dataclass(frozen=True, slots=True)
class NarrowIndices(ThreadPass):
    """Compute indices with 32-bit integers where they fit, or in a guarded version.

    Before::
        def f(x, y, n, m):  # 64-bit indices
    After::
        def f$i32(x, y, n, m):  # 32-bit indices; runs if n * m < 2**31
        def f(x, y, n, m):  # 64-bit indices where 32 bits may not suffice; runs else

    A term fits if the ranges of its variables prove that its value and all intermediate values are
    less than ``2**31`` in magnitude. If this depends on the sizes, the kernel gets a second
    version, which runs if all limits are less than ``2**31``. On a GPU all terms are considered,
    on a CPU those of vectors. The other version of a GPU kernel has 64-bit integers only, because a
    variable of both widths requires registers for both. Addresses are 64-bit integers; the width
    applies to the number of elements.

    Parameters
    ----------
    assumptions : Assumptions
        The facts about the parameters of the kernel.
    """

    targets: ClassVar = ANY

    assumptions: Assumptions = field(default_factory=Assumptions)

    @classmethod
    def for_function(cls, func: PrimFunc) -> Self:
        """Return the pass with the facts of the function."""
        return cls(Assumptions.of(func.facts))

    def run(self, kernel: ThreadFunc, target: Target) -> ThreadFunc:
        """Return the kernel with the widths of its terms."""
        bits = 0 if target.is_gpu else resolve(target).vector_bits
        roots = tuple(dict.fromkeys(_roots(kernel, bits)))
        if not roots:
            return kernel
        ranges = ranges_of(kernel, self.assumptions, lane_variables(kernel))
        width = index_width(ranges, roots)
        if kernel.launch is not None and width.limits:
            width = replace(width, proved=frozenset(), guarded=width.proved | width.guarded)
        return replace(kernel, width=width)


def _roots(kernel: ThreadFunc, bits: int) -> Iterator[Expr]:
    """Yield the terms to compute with 32-bit integers; ``bits`` is the width of a CPU vector."""
    offsets: set[int] = set()  # of gathers and scatters, whose terms are numbers of units
    floats: set[int] = set()  # converted to floats
    scalars = kernel.launch is not None
    for statement in walk(kernel.body):
        if isinstance(statement, Scatter):
            offsets.add(id(statement.offsets))
            yield from _of_offsets(statement.offsets)
        elif scalars:
            yield from _of_statement(statement)
        for value in walk_values(statement_values(statement)):  # a value before its operands
            if isinstance(value, Gather):
                offsets.add(id(value.offsets))
                yield from _of_offsets(value.offsets)
            elif isinstance(value, Cast) and value.type.dtype.is_float:
                floats.add(id(value.operand))
            elif isinstance(value, Index | Predicate):
                if id(value) in offsets:
                    continue
                if scalars:
                    yield from _of_value(value)
                else:
                    yield from _of_vector(value, bits, converted=id(value) in floats)
            elif scalars and isinstance(value, Offset | Load):
                offset = value.offset if isinstance(value, Offset) else value.address.offset
                yield scaled(offset).index


def _of_statement(statement: Stmt) -> Iterator[Expr]:
    match statement:
        case Loop(start=start, stop=stop, var=var):
            yield from (start, stop, var)
        case (
            Store(address=Address(offset=offset))
            | AtomicUpdate(address=Address(offset=offset))
            | AtomicLoad(address=Address(offset=offset))
            | AtomicStore(address=Address(offset=offset))
            | CompareExchange(address=Address(offset=offset))
        ):
            yield scaled(offset).index
        case _:
            pass


def _of_value(value: Index | Predicate) -> Iterator[Expr]:
    match value:
        case Index(expr=expr):
            yield expr
        case Predicate(condition=condition):
            yield from _compared(condition)


def _of_vector(value: Index | Predicate, bits: int, *, converted: bool) -> Iterator[Expr]:
    """Yield the terms of a value of a CPU that differ per lane, if narrow ones are faster.

    They are if they have quotients, which CPUs compute for each 64-bit lane alone, if the value is
    converted to floats, or if the 64-bit integers of a mask need several vectors and masks are
    vectors, too.
    """
    match value:
        case Index(expr=expr, lane=lane, lanes=lanes):
            varies = lane is not None and lanes > 1 and lane in expr.free
            if varies and (converted or _has_quotients(expr, lane)):
                yield expr
        case Predicate(condition=condition, lane=lane, lanes=lanes):
            if lane is not None and lanes > 1:
                for part in postorder(condition):
                    if isinstance(part, Cmp) and lane in part.free:
                        wide = bits < MASKS_FROM and lanes * LONG_BITS > bits
                        wide = wide or _has_quotients(part, lane)
                        if wide and prefix_length(part, lane) is None:
                            yield from (part.left, part.right)


def _has_quotients(term: Expr | Bool, lane: Var | None) -> bool:
    parts = postorder(term)
    return any(isinstance(p, FloorDiv | Mod) and lane in p.free for p in parts)


def _of_offsets(offsets: Value) -> Iterator[Expr]:
    if isinstance(offsets, Index) and offsets.lane is not None:
        yield scaled(offsets.expr).index


def _compared(condition: Bool) -> Iterator[Expr]:
    for part in postorder(condition):
        if isinstance(part, Cmp):
            yield from (part.left, part.right)
