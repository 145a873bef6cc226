"""What the lowering of a statement depends on: unrolled variables, lanes, mask, what is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import overload

from ....ir.symbolic import TRUE, Bool, Expr, Var, substitute
from ....ir.thread.nodes import NO_SOURCE, Source
from ..loops.known import Known


@dataclass(frozen=True, slots=True)
class Lanes:
    """The variable that counts the lanes of a vector, and how many there are."""

    var: Var
    count: int


@dataclass(frozen=True, slots=True)
class Context:
    """Where a statement stands.

    Parameters
    ----------
    known : Known
        What holds here.
    values : Mapping[Var, Expr]
        Loop variables that have become other terms: unrolled ones constants, vectorized ones
        the lane variable plus a constant.
    lanes : Lanes or None
        Set inside a vectorized loop.
    mask : Bool
        Which lanes run; mentions the lane variable, or is true.
    source : Source
        The block or loop the statement came from.
    parallel : bool
        Whether this is inside a parallel region.
    """

    known: Known = field(default_factory=Known)
    values: Mapping[Var, Expr] = field(default_factory=dict[Var, Expr])
    lanes: Lanes | None = None
    mask: Bool = TRUE
    source: Source = NO_SOURCE
    parallel: bool = False

    @overload
    def term(self, e: Expr) -> Expr: ...
    @overload
    def term(self, e: Bool) -> Bool: ...
    def term(self, e: Expr | Bool) -> Expr | Bool:
        """Replace the loop variables that have become other terms."""
        if not self.values or e.free.isdisjoint(self.values.keys()):
            return e
        return substitute(e, self.values)

    def binding(self, var: Var, value: Expr) -> Context:
        """Let a loop variable become another term."""
        return replace(self, values={**self.values, var: value})

    def varies(self, e: Expr | Bool) -> bool:
        """Whether a term differs from lane to lane."""
        return self.lanes is not None and self.lanes.var in e.free

    def lane(self, index: Expr) -> Context:
        """Leave the vector: the context of one lane alone."""
        if self.lanes is None:
            return self
        swap = {self.lanes.var: index}
        values = {v: substitute(e, swap) for v, e in self.values.items()}
        return replace(self, values=values, lanes=None, mask=TRUE)

    @property
    def count(self) -> int:
        """Number of lanes, 1 outside vectors."""
        return 1 if self.lanes is None else self.lanes.count
