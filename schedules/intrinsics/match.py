"""Unification of a nest of a program with the semantics of an instruction.

The loops of the program may have any order and kind. Operands of commutative operations may be
exchanged. A buffer of the semantics matches a window of a buffer of the program with the required
strides. Differences are returned as data (TensorIR, section 4.2).

A guard is accepted if it only shortens a loop: it contains one loop variable of the instruction
and bounds it from above, so that the first iterations run. Guards without loop variables of the
instruction do not affect it. The guards stay in the program.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from ...ir.analysis import injective_in, ranges_of
from ...ir.loop.nodes import For, IterKind, Load
from ...ir.symbolic import (
    Bool,
    Le,
    Lt,
    Var,
    as_expr,
    const_value,
    free_vars,
    is_proved,
    linear_form,
    to_text,
)
from .contract import Intrinsic
from .difference import Difference
from .elements import Pairing, pair_values
from .nest import Nest, pattern_nest
from .windows import Window, Windows, partners

Assigned: TypeAlias = "tuple[For | None, ...]"
"""The loop of the program for each loop of the semantics; None if there are too few loops."""

MOST_LOOPS = 6
"""The number of innermost loops of the program that are tried in all orders."""


@dataclass(frozen=True, slots=True)
class Unified:
    """The outcome of a comparison; the nests are equal if ``differences`` is empty.

    Parameters
    ----------
    program : Nest
        The nest of the program.
    pattern : Nest
        The nest of the semantics.
    loops : tuple of For
        The loop of the program for each loop of the semantics; shorter if there are too few.
    extra : tuple of For
        Loops of the program with several iterations and no counterpart in the semantics.
    windows : tuple of (Window | None)
        The window of each buffer parameter of the semantics.
    differences : tuple of Difference
        All differences.
    """

    program: Nest
    pattern: Nest
    loops: tuple[For, ...]
    extra: tuple[For, ...]
    windows: tuple[Window | None, ...]
    differences: tuple[Difference, ...]


@lru_cache(maxsize=256)
def pattern_of(intrinsic: Intrinsic) -> Nest:
    """Return the flattened semantics of an instruction; cached."""
    return pattern_nest(intrinsic.semantics)


def unify(program: Nest, intrinsic: Intrinsic) -> Unified:
    """Return the comparison of a nest with the semantics of an instruction.

    Parameters
    ----------
    program : Nest
        A nest of the program, scheduled or lowered.
    intrinsic : Intrinsic
        The instruction.

    Returns
    -------
    Unified
        The comparison with the fewest differences.
    """
    pattern = pattern_of(intrinsic)
    best: Unified | None = None
    for pairing in pair_values(program, pattern):
        found = _under(program, pattern, intrinsic, pairing)
        if best is None or len(found.differences) < len(best.differences):
            best = found
        if not found.differences:
            break
    if best is None:
        raise TypeError(f"{intrinsic.name}: nothing was compared")
    return best


def _under(program: Nest, pattern: Nest, intrinsic: Intrinsic, pairing: Pairing) -> Unified:
    """Return the comparison for one pairing of accesses."""
    found = [Difference(d.kind, d.program, d.pattern, d.message) for d in pairing.differences]
    assigned = _assigned(program, pattern, pairing)
    loops = tuple(x for x in assigned if x is not None)
    unit = {x for x in program.loops if const_value(x.extent) == 1 and x not in loops}
    extra = tuple(x for x in program.loops if x not in loops and x not in unit)
    found += _loop_differences(program, pattern, assigned, extra)
    windows = Windows(program, pattern, partners(assigned, pattern.loops), intrinsic.layouts)
    parameters = intrinsic.semantics.buffer_params
    where = tuple(windows.window(k, b, pairing) for k, b in enumerate(parameters))
    found += windows.differences
    found += _aliases(intrinsic, where, pattern)
    found += _guard_differences(program, intrinsic, assigned)
    return Unified(program, pattern, loops, extra, where, tuple(dict.fromkeys(found)))


def _signature(loops: tuple[Var, ...], accesses: Iterable[Load]) -> dict[Var, tuple[bool, ...]]:
    """Return for each loop which accesses depend on it."""
    found = [_variables(a) for a in accesses]
    return {v: tuple(v in used for used in found) for v in loops}


def _variables(load: Load) -> frozenset[Var]:
    return frozenset(v for index in load.indices for v in free_vars(index))


def _assigned(program: Nest, pattern: Nest, pairing: Pairing) -> Assigned:
    """Return the loops of the program for those of the semantics, with the least cost."""
    wanted = _signature(pattern.variables, (s for _, s in pairing.accesses))
    given = _signature(program.variables, (p for p, _ in pairing.accesses))
    candidates = [x for x in program.loops if const_value(x.extent) != 1][-MOST_LOOPS:]
    missing = len(pattern.loops) - len(candidates)
    units = [x for x in program.loops if const_value(x.extent) == 1][: max(missing, 0)]
    pool = (*candidates, *units, *[None] * (missing - len(units)))

    def cost(chosen: Assigned) -> tuple[int, ...]:
        pairs = [(p, s) for p, s in zip(chosen, pattern.loops, strict=True) if p is not None]
        moved = sum(given[p.var] != wanted[s.var] for p, s in pairs)
        kinds = sum(not _same_kind(program, p, pattern, s) for p, s in pairs)
        sizes = sum(p.extent is not s.extent for p, s in pairs)
        positions = [program.loops.index(p) for p, _ in pairs]
        inversions = sum(a > b for a, b in itertools.combinations(positions, 2))
        return (moved, kinds, sizes, inversions, -sum(positions))

    return min(itertools.permutations(pool, len(pattern.loops)), key=cost)


def _same_kind(program: Nest, loop: For, pattern: Nest, other: For) -> bool:
    given = program.kinds.get(loop.var)
    return given is None or given == pattern.kinds.get(other.var)


def _loop_differences(
    program: Nest, pattern: Nest, assigned: Assigned, extra: tuple[For, ...]
) -> Iterator[Difference]:
    """Yield differences of extents and iteration kinds, and loops without a counterpart."""
    for number, (loop, wanted) in enumerate(zip(assigned, pattern.loops, strict=True)):
        if loop is not None:
            yield from _pair_differences(program, pattern, loop, number)
            continue
        message = (
            f"the program has no counterpart of loop {wanted.var.name!r} of extent "
            f"{to_text(wanted.extent)} of the instruction"
        )
        yield Difference("extent", "", _loop_text(wanted), message, None, number)
    for loop in extra:
        message = (
            f"the instruction has no counterpart of loop {loop.var.name!r} of extent "
            f"{to_text(loop.extent)}"
        )
        yield Difference("extent", _loop_text(loop), "", message, loop)


def _pair_differences(program: Nest, pattern: Nest, loop: For, number: int) -> Iterator[Difference]:
    wanted = pattern.loops[number]
    texts = _loop_text(loop), _loop_text(wanted)
    if loop.extent is not wanted.extent:
        message = (
            f"extent {to_text(loop.extent)} of loop {loop.var.name!r} differs from extent "
            f"{to_text(wanted.extent)} of loop {wanted.var.name!r} of the instruction"
        )
        yield Difference("extent", *texts, message, loop, number)
    if not _same_kind(program, loop, pattern, wanted):
        given = _kind_text(program.kinds[loop.var])
        asked = _kind_text(pattern.kinds.get(wanted.var, frozenset()))
        message = (
            f"loop {loop.var.name!r} {given}; loop {wanted.var.name!r} of the instruction {asked}"
        )
        yield Difference("reduction", *texts, message, loop, number)


def _loop_text(loop: For) -> str:
    word = "range" if loop.kind == "serial" else loop.kind
    return f"for {loop.var.name} in {word}({to_text(loop.extent)})"


def _kind_text(kinds: frozenset[IterKind]) -> str:
    names = " and ".join(sorted(kinds))
    return f"binds {names} iteration variables" if names else "binds no iteration variables"


def _aliases(
    intrinsic: Intrinsic, windows: tuple[Window | None, ...], pattern: Nest
) -> Iterator[Difference]:
    """Yield a difference for each input that is the same buffer as the output."""
    parameters = intrinsic.semantics.buffer_params
    target = parameters.index(pattern.store.buffer)
    written = windows[target]
    if written is None:
        return
    for number, window in enumerate(windows):
        if number != target and window is not None and window.buffer is written.buffer:
            message = (
                f"{written.buffer.name!r} is both {parameters[target].name!r} and "
                f"{parameters[number].name!r} of the instruction"
            )
            name = written.buffer.name
            yield Difference(
                "access", name, parameters[number].name, message, written.buffer, number
            )


def overlap(unified: Unified) -> tuple[Var, ...]:
    """Return the loops whose iterations may write the same elements, unlike in the semantics.

    Spatial loops of the semantics write different elements in each iteration, and the instruction
    may execute their iterations in any order.
    """
    nest, pattern = unified.program, unified.pattern
    if len(unified.loops) < len(pattern.loops):
        return ()
    found = injective_in(nest.store.indices, ranges_of(nest.loops), nest.facts)
    return tuple(
        p.var
        for p, s in zip(unified.loops, pattern.loops, strict=True)
        if p.var not in found and pattern.kinds[s.var] == frozenset({"spatial"})
    )


def _guard_differences(
    program: Nest, intrinsic: Intrinsic, assigned: Assigned
) -> Iterator[Difference]:
    numbers = {x.var: k for k, x in enumerate(assigned) if x is not None}
    for guard in program.guards:
        inside = [v for v in free_vars(guard) if v in numbers]
        if not inside or is_proved(guard, program.facts):
            continue
        number = numbers[inside[0]]
        prefix = len(inside) == 1 and _is_prefix(guard, inside[0])
        if prefix and (intrinsic.scope == "thread" or number in intrinsic.partial):
            continue
        names = ", ".join(sorted(v.name for v in inside))
        reason = (
            f"a {intrinsic.scope} executes either all iterations of {names} or none"
            if prefix
            else f"the condition is not an upper bound of the single loop {names}"
        )
        message = f"unsupported guard {to_text(guard)}: {reason}"
        yield Difference("predicate", f"guard({to_text(guard)})", "", message, guard, number)


def _is_prefix(guard: Bool, variable: Var) -> bool:
    """Return whether a condition is an upper bound of a variable."""
    if not isinstance(guard, Le | Lt):
        return False
    form = linear_form(guard.right - guard.left, (variable,))
    step = None if form is None else const_value(form.coefficients.get(variable, as_expr(0)))
    return step is not None and step < 0
