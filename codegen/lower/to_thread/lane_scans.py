"""Scans across the lanes of a vector, which reassociate the declared operation.

A vector of ``n`` lanes is scanned in ``log2(n)`` steps: in the step of distance ``d``, each lane is
combined with the lane ``d`` before it. The result of the previous vector is combined last, so that
only this operation waits for it.
"""

from __future__ import annotations

from typing import Final, Protocol

from ....ir.dtype import bool_
from ....ir.loop import nodes as loop
from ....ir.loop.combiners import is_named
from ....ir.loop.scans import Scanning, scanning
from ....ir.loop.straight_line import used_binds
from ....ir.loop.visit import walk
from ....ir.symbolic import (
    TRUE,
    Bool,
    Expr,
    Var,
    all_of,
    as_expr,
    bounds,
    conjuncts,
    const_value,
    substitute,
)
from ....ir.thread.nodes import Assign, Const, Reg, Select, Shuffle, Stmt, Value
from ..analysis.linear_limits import solve
from .context import LoweringContext
from .element_values import Elements, constant, lanes_of, widen

_Values = tuple[Value, ...]

BLOCK_VECTORS: Final = 512
"""The maximum number of vectors whose sums a running sum carries in sequence.

The relative error of a running sum of 10,000,000 equal numbers in one sequence is 6e-3.
"""


class Lowering(Protocol):
    """The parts of the lowering of statements that scans use."""

    @property
    def out(self) -> list[Stmt]:
        """The current output list."""
        ...

    def elements_of(self, context: LoweringContext) -> Elements:
        """Return the lowering of elements at the current position."""
        ...

    def bind_local(self, local: loop.Local, value: Value) -> None:
        """Set the value of a local."""
        ...


def lane_scan(nest: loop.For) -> tuple[loop.Block, Scanning] | None:
    """Return the scan whose steps are the iterations of a loop; None if there is none."""
    for block in walk(nest.body):
        found = scanning(block) if isinstance(block, loop.Block) else None
        if found is not None and isinstance(block, loop.Block) and _is_along(found, nest.var):
            return block, found
    return None


def fills_lanes(nest: loop.For, block: loop.Block) -> bool:
    """Return whether lanes can combine a scan: those that run are the first ones."""
    dtypes = () if block.reducer is None else block.reducer.left
    plain = all(x.dtype != bool_ and x.dtype.is_machine for x in dtypes)
    return plain and _is_limited(nest.body, nest.var)


def _is_limited(statement: loop.Stmt, variable: Var) -> bool:
    """Return whether a statement is a block that runs for the first values of a variable."""
    while isinstance(statement, loop.If) and statement.otherwise is None:
        if not _is_prefix(statement.condition, variable):
            return False
        statement = statement.then
    return isinstance(statement, loop.Block)


def carried_scan(nest: loop.For) -> tuple[loop.For, Scanning] | None:
    """Return the loop of lanes and the scan of a loop over consecutive vectors, or None."""
    lanes = nest.body
    count = const_value(lanes.extent) if isinstance(lanes, loop.For) else None
    if not isinstance(lanes, loop.For) or lanes.kind != "vectorized" or count in (None, 0, 1):
        return None
    found = lane_scan(lanes)
    if found is None or not fills_lanes(lanes, found[0]) or not _is_limited(lanes.body, nest.var):
        return None
    following = {lanes.var: as_expr(0), nest.var: nest.var + 1}
    last = {lanes.var: lanes.extent - 1}
    for target, previous in zip(found[1].targets, found[1].previous, strict=True):
        before = tuple(substitute(i, following) for i in previous.indices)
        if before != tuple(substitute(i, last) for i in target.indices):
            return None
    return lanes, found[1]


def guards_in(lanes: loop.For) -> Bool:
    """Return the condition under which the block of a carried scan runs in a lane."""
    statement, found = lanes.body, list[Bool]()
    while isinstance(statement, loop.If):
        found.append(statement.condition)
        statement = statement.then
    return all_of(*found)


def has_blocks(scan: Scanning, extent: Expr) -> bool:
    """Return whether a scan of so many vectors starts again in each block of vectors.

    Only sums of floats do. Products may not: that of a block may overflow, although the result
    before it is zero.
    """
    reducer = scan.reducer
    upper = bounds(extent).upper
    sums = reducer.name == "add" and is_named(reducer) and reducer.left[0].dtype.is_float
    return sums and (upper is None or upper > BLOCK_VECTORS)


def combine_results(
    scan: Scanning, before: _Values, values: _Values, lowering: Lowering, context: LoweringContext
) -> _Values:
    """Append the combination of the results before a block with results in the block."""
    left = tuple(widen(value, context.count) for value in before)
    return _combined(scan, left, values, lowering, context)


def carry_at(scan: Scanning, lowering: Lowering, context: LoweringContext) -> _Values:
    """Return the left operands of the first lane, in its context."""
    _bind_starts(scan, lowering, context)
    elements = lowering.elements_of(context)
    found: list[Value] = []
    for local, before, start in zip(scan.reducer.left, scan.previous, scan.starts, strict=True):
        element = loop.Where(loop.Condition(scan.follows), before, start)
        value = elements.typed(element, before.dtype)
        found.append(_kept(local.name, value, lowering, context))
    return tuple(found)


def _bind_starts(scan: Scanning, lowering: Lowering, context: LoweringContext) -> None:
    """Bind the locals that the starts use; zeros in a lane that has a previous result."""
    for bind in used_binds(scan.prefix, scan.starts):
        zero = loop.Number(0, bind.local.dtype)
        chosen = loop.Where(loop.Condition(scan.follows), zero, bind.value)
        value = lowering.elements_of(context).typed(chosen, bind.local.dtype)
        lowering.bind_local(bind.local, _kept(bind.local.name, value, lowering, context))


def _is_along(scan: Scanning, variable: Var) -> bool:
    """Return whether the previous results are those of the previous value of a loop variable."""
    before = {variable: variable - 1}
    return all(
        any(variable in i.free for i in target.indices)
        and tuple(substitute(i, before) for i in target.indices) == previous.indices
        for target, previous in zip(scan.targets, scan.previous, strict=True)
    )


def _is_prefix(claim: Bool, variable: Var) -> bool:
    parts = [p for p in conjuncts(claim) if variable in p.free]
    limits = [solve(part, variable) for part in parts]
    return all(limit is not None and limit.above for limit in limits)


def scan_lanes(
    scan: Scanning, carried: _Values, lowering: Lowering, context: LoweringContext
) -> _Values:
    """Append the scan of one vector after carried results; return the results of the lanes."""
    for bind in scan.prefix:
        value = lowering.elements_of(context).typed(bind.value, bind.local.dtype)
        lowering.bind_local(bind.local, _kept(bind.local.name, value, lowering, context))
    values = _terms(scan, lowering, context)
    identities = _identities(scan, context.count)
    distance = 1
    while distance < context.count:
        shifted = tuple(
            _shifted(value, one, distance) for value, one in zip(values, identities, strict=True)
        )
        values = _combined(scan, shifted, values, lowering, context)
        distance *= 2
    return combine_results(scan, carried, values, lowering, context)


def _terms(scan: Scanning, lowering: Lowering, context: LoweringContext) -> _Values:
    """Return the terms of the lanes; those that do not run have the identity."""
    elements = lowering.elements_of(context)
    terms: list[Value] = []
    identities = _identities(scan, context.count)
    for term, target, one in zip(scan.terms, scan.targets, identities, strict=True):
        value = widen(elements.typed(term, target.dtype), context.count)
        mask = None if context.mask is TRUE else elements.mask()
        value = value if mask is None else Select(mask, value, one)
        terms.append(_kept(target.buffer.name, value, lowering, context))
    return tuple(terms)


def _identities(scan: Scanning, count: int) -> _Values:
    return tuple(widen(constant(n.value, n.dtype), count) for n in scan.reducer.identities)


def _shifted(value: Value, identity: Value, distance: int) -> Value:
    """Return a vector with each lane moved up, after lanes of the identity."""
    count = lanes_of(value)
    lanes = (*range(distance), *range(count, 2 * count - distance))
    return Shuffle(identity, value, lanes)


def _combined(
    scan: Scanning, left: _Values, right: _Values, lowering: Lowering, context: LoweringContext
) -> _Values:
    reducer = scan.reducer
    for local, value in zip((*reducer.left, *reducer.right), (*left, *right), strict=True):
        lowering.bind_local(local, _kept(local.name, value, lowering, context))
    for local, value in reducer.binds:
        made = widen(lowering.elements_of(context).typed(value, local.dtype), context.count)
        lowering.bind_local(local, _kept(local.name, made, lowering, context))
    elements = lowering.elements_of(context)
    pairs = zip(reducer.results, reducer.left, strict=True)
    made = [widen(elements.typed(result, x.dtype), context.count) for result, x in pairs]
    return tuple(
        _kept(x.name, value, lowering, context) for x, value in zip(reducer.left, made, strict=True)
    )


def _kept(name: str, value: Value, lowering: Lowering, context: LoweringContext) -> Value:
    if isinstance(value, Const | Reg):
        return value
    reg = Reg(name, value.type)
    lowering.out.append(Assign(reg, value, context.source))
    return reg
