"""The context of lowering a statement: assumptions, unrolled variables, lanes, and mask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import overload

from ....ir.loop.nodes import PrimFunc
from ....ir.script.excerpt import access_line
from ....ir.symbolic import TRUE, Bool, Expr, Var, substitute
from ....ir.symbolic.assumptions import Assumptions
from ....ir.thread.nodes import NO_SOURCE, Source


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lane variable and the number of lanes of a vector."""

    var: Var
    count: int


@dataclass(frozen=True, slots=True)
class LoweringContext:
    """The context of a statement during lowering.

    Parameters
    ----------
    assumptions : Assumptions
        The assumptions in scope.
    values : Mapping[Var, Expr]
        The terms that replace loop variables: a constant for an unrolled loop, the lane variable
        plus a constant for a vectorized loop.
    lanes : Lanes or None
        The lanes of the enclosing vectorized loop, if any.
    mask : Bool
        The condition under which a lane runs.
    source : Source
        The block or loop that the statement belongs to.
    parallel : bool
        Whether the statement is inside a parallel region.
    scheduled : PrimFunc or None
        The function before all passes, whose lines are parts of error messages.
    native : frozenset of str
        The element functions of floats that the target computes with its own functions.
    """

    assumptions: Assumptions = field(default_factory=Assumptions)
    values: Mapping[Var, Expr] = field(default_factory=dict[Var, Expr])
    lanes: Lanes | None = None
    mask: Bool = TRUE
    source: Source = NO_SOURCE
    parallel: bool = False
    scheduled: PrimFunc | None = None
    native: frozenset[str] = frozenset()

    @overload
    def term(self, e: Expr) -> Expr: ...
    @overload
    def term(self, e: Bool) -> Bool: ...
    def term(self, e: Expr | Bool) -> Expr | Bool:
        """Substitute the values of loop variables in a term."""
        if not self.values or e.free.isdisjoint(self.values.keys()):
            return e
        return substitute(e, self.values)

    def binding(self, var: Var, value: Expr) -> LoweringContext:
        """Return the context with a loop variable replaced by a term."""
        return replace(self, values={**self.values, var: value})

    def varies(self, e: Expr | Bool) -> bool:
        """Return whether a term differs per lane."""
        return self.lanes is not None and self.lanes.var in e.free

    def lane(self, index: Expr) -> LoweringContext:
        """Return the scalar context of one lane."""
        if self.lanes is None:
            return self
        swap = {self.lanes.var: index}
        values = {v: substitute(e, swap) for v, e in self.values.items()}
        return replace(self, values=values, lanes=None, mask=TRUE)

    @property
    def lane_var(self) -> Var:
        """The lane variable of a vector."""
        if self.lanes is None:
            raise TypeError("the statement is not in a vectorized loop")
        return self.lanes.var

    @property
    def count(self) -> int:
        """The number of lanes, 1 outside of vectors."""
        return 1 if self.lanes is None else self.lanes.count

    def line(self, access: str) -> str:
        """Return the number and the text of the line of an access, as a part of a message.

        ``access`` is how the access begins: ``x[`` or ``checked(x[``.
        """
        if self.scheduled is None:
            return ""
        found = access_line(self.scheduled, self.source.uid, access)
        return f", line {found[0]} of {self.scheduled.name!r}: {found[1]}" if found else ""
