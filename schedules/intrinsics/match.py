"""Unify a nest of a program with the semantics of an instruction (TensorIR §4.2).

The loops of the program may stand in any order and bear any kind; operands of commutative
operations may be exchanged; a buffer of the semantics stands for a window of a buffer of the
program, with the strides that the semantics ask for. What differs is given as data.

A guard is admitted where it only shortens a loop: it mentions one loop of the instruction and
bounds that from above, so the iterations that run are the first ones. Guards that mention no loop
of the instruction are not about it. Nothing else is: since the guards stay in the program, what is
admitted decides only whether the instruction can do the work.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from ...ir.analysis import determined
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
"""The loop of the program for each loop of the semantics; None where there is none left."""

MOST_LOOPS = 6
"""Innermost loops of the program that are tried in all orders."""


@dataclass(frozen=True, slots=True)
class Unified:
    """The outcome: equal where ``differences`` is empty.

    Parameters
    ----------
    program, pattern : Nest
        What was compared.
    loops : tuple of For
        The loop of the program for each loop of the semantics; shorter where there are too few.
    extra : tuple of For
        Loops of the program with more than one iteration that no loop of the semantics stands for.
    windows : tuple of (Window | None)
        For each buffer parameter of the semantics.
    differences : tuple of Difference
        All that was found.
    """

    program: Nest
    pattern: Nest
    loops: tuple[For, ...]
    extra: tuple[For, ...]
    windows: tuple[Window | None, ...]
    differences: tuple[Difference, ...]


@lru_cache(maxsize=256)
def pattern_of(intrinsic: Intrinsic) -> Nest:
    """Flatten the semantics of an instruction, once."""
    return pattern_nest(intrinsic.semantics)


def unify(program: Nest, intrinsic: Intrinsic) -> Unified:
    """Compare a nest with what an instruction computes.

    Parameters
    ----------
    program : Nest
        A nest of the program, scheduled or lowered.
    intrinsic : Intrinsic
        The instruction.
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
    """Compare under one way of pairing accesses."""
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


# ---------------------------------------------------------------- which loop is which


def _signature(loops: tuple[Var, ...], accesses: Iterable[Load]) -> dict[Var, tuple[bool, ...]]:
    """Tell for each loop which accesses move with it."""
    found = [_variables(a) for a in accesses]
    return {v: tuple(v in used for used in found) for v in loops}


def _variables(load: Load) -> frozenset[Var]:
    return frozenset(v for index in load.indices for v in free_vars(index))


def _assigned(program: Nest, pattern: Nest, pairing: Pairing) -> Assigned:
    """Find the loop of the program for each loop of the semantics: the least differences."""
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
        places = [program.loops.index(p) for p, _ in pairs]
        turned = sum(a > b for a, b in itertools.combinations(places, 2))
        return (moved, kinds, sizes, turned, -sum(places))

    return min(itertools.permutations(pool, len(pattern.loops)), key=cost)


def _same_kind(program: Nest, loop: For, pattern: Nest, other: For) -> bool:
    given = program.kinds.get(loop.var)
    return given is None or given == pattern.kinds.get(other.var)


# ---------------------------------------------------------------- loops


def _loop_differences(
    program: Nest, pattern: Nest, assigned: Assigned, extra: tuple[For, ...]
) -> Iterator[Difference]:
    """Compare extents and kinds of iterations, and tell what is left over on either side."""
    for number, (loop, wanted) in enumerate(zip(assigned, pattern.loops, strict=True)):
        if loop is not None:
            yield from _pair_differences(program, pattern, loop, number)
            continue
        message = (
            f"the program has no loop for loop {wanted.var.name!r} of extent "
            f"{to_text(wanted.extent)} of the instruction"
        )
        yield Difference("extent", "", _loop_text(wanted), message, None, number)
    for loop in extra:
        message = (
            f"loop {loop.var.name!r} of extent {to_text(loop.extent)} is inside, and the "
            "instruction has no loop for it"
        )
        yield Difference("extent", _loop_text(loop), "", message, loop)


def _pair_differences(program: Nest, pattern: Nest, loop: For, number: int) -> Iterator[Difference]:
    wanted = pattern.loops[number]
    texts = _loop_text(loop), _loop_text(wanted)
    if loop.extent is not wanted.extent:
        message = (
            f"extent {to_text(loop.extent)} of loop {loop.var.name!r} is not "
            f"{to_text(wanted.extent)}, that of loop {wanted.var.name!r} of the instruction"
        )
        yield Difference("extent", *texts, message, loop, number)
    if not _same_kind(program, loop, pattern, wanted):
        given = _kind_text(program.kinds[loop.var])
        asked = _kind_text(pattern.kinds.get(wanted.var, frozenset()))
        message = (
            f"loop {loop.var.name!r} {given}, where loop {wanted.var.name!r} of the instruction "
            f"{asked}"
        )
        yield Difference("reduction", *texts, message, loop, number)


def _loop_text(loop: For) -> str:
    word = "range" if loop.kind == "serial" else loop.kind
    return f"for {loop.var.name} in {word}({to_text(loop.extent)})"


def _kind_text(kinds: frozenset[IterKind]) -> str:
    words = {"spatial": "runs through results", "reduce": "sums", "ordered": "runs in order"}
    return " and ".join(words[k] for k in sorted(kinds)) or "feeds nothing"


# ---------------------------------------------------------------- aliases, guards


def _aliases(
    intrinsic: Intrinsic, windows: tuple[Window | None, ...], pattern: Nest
) -> Iterator[Difference]:
    """Tell where the program's output is one of its inputs, or its elements meet."""
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
    """Give the loops whose iterations write the same elements, unlike those of the semantics.

    Loops of the semantics that run through results write different elements in each iteration, and
    an instruction may do them in any order.
    """
    nest, pattern = unified.program, unified.pattern
    if len(unified.loops) < len(pattern.loops):
        return ()
    ranges = {x.var: x.extent for x in nest.loops}
    found = determined(nest.store.indices, ranges, nest.facts)
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
            f"a {intrinsic.scope} performs all iterations of {names} together, or none"
            if prefix
            else f"it does not cut off the end of one loop, {names}"
        )
        message = f"it runs only where {to_text(guard)} holds: {reason}"
        yield Difference("predicate", f"guard({to_text(guard)})", "", message, guard, number)


def _is_prefix(guard: Bool, variable: Var) -> bool:
    """Whether a condition holds of the first values of a variable, up to some."""
    if not isinstance(guard, Le | Lt):
        return False
    form = linear_form(guard.right - guard.left, (variable,))
    step = None if form is None else const_value(form.coefficients.get(variable, as_expr(0)))
    return step is not None and step < 0
