"""Requirements that many primitives share."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.symbolic import Proved, Refuted, Unknown
from .problem import Problem
from .refs import LoopRef
from .state import State


def serial_problems(state: State, ref: LoopRef, requirement: int) -> Iterator[Problem]:
    """Yield a problem where a loop is not a plain serial one."""
    loop = state.loop(ref)
    if loop.kind != "serial":
        yield Problem(
            requirement,
            f"loop {loop.var.name!r} is {loop.kind}; only serial loops are reshaped",
            (ref,),
            {"kind": loop.kind},
        )
    elif loop.annotations:
        keys = ", ".join(key for key, _ in loop.annotations)
        yield Problem(
            requirement,
            f"loop {loop.var.name!r} carries annotations ({keys}) that a new loop would lose",
            (ref,),
            {"annotations": keys},
        )


def counterexample(verdict: Proved | Refuted | Unknown) -> dict[str, int] | None:
    """Give the values that a refutation found, by the names of the symbols."""
    if not isinstance(verdict, Refuted):
        return None
    return {v.name: value for v, value in verdict.counterexample.items()}
