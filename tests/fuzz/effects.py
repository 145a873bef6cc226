"""The effect of a step that only a disabled requirement rejects."""

from __future__ import annotations

import random
from contextlib import contextmanager
from typing import TYPE_CHECKING
from unittest import mock

from tilewright.errors import TilewrightError
from tilewright.ir.interpreter.graph import GraphCheckError
from tilewright.ir.loop import verify as loop_verify
from tilewright.ir.loop.nodes import For, PrimFunc
from tilewright.ir.loop.rules import RACES, VALID_NAMES
from tilewright.ir.loop.visit import walk
from tilewright.ir.module import Module
from tilewright.ir.script import to_text
from tilewright.ir.verify import violations
from tilewright.schedules.apply import rewritten
from tilewright.schedules.block_scope import whole
from tilewright.schedules.verify import verify

from tests.codegen.kernels import LEVELS
from tests.fuzz import oracles
from tests.fuzz.inputs import NoSizesError, copies, sizes
from tests.fuzz.oracles import Original, RefusedError
from tests.fuzz.program import Program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tilewright.schedules.apply import Primitive
    from tilewright.schedules.state import State

EFFECTS = (
    "wrong result", "ill-formed program", "error in the step", "refused by lowering", "implied",
    "none",
)  # fmt: skip
"""The effects, the most serious one first; a description may follow after a colon."""

RACING = f"{RACES.number} {RACES.name}"
"""The rule that the iterations of parallel, vectorized and thread-bound loops are independent."""

UNROLLED = 64
"""The largest number of copies of a statement in a program that is compiled."""


def effect(step: Primitive, state: State) -> str:
    """Apply a step with a requirement disabled, and return the defect of the result."""
    try:
        problems = list(step.check(state))
        if problems:
            return f"implied: {', '.join(sorted({p.requirement.key for p in problems}))}"
        state = whole(state)
        made = rewritten(step, state)
        to_text(made.module)
    except Exception as error:  # noqa: BLE001 - any error is an effect
        return f"error in the step: {type(error).__name__}"
    return next(_wrong(state.module, made.module), "none")


def _wrong(before: Module, after: Module) -> Iterator[str]:
    """Yield the defects of a program after a step.

    A program that is only ill-formed because its iterations are not independent is run, too: its
    results are those of a machine without this rule.
    """
    found = _violated(after) - _violated(before)
    if found and found != {RACING}:
        yield f"ill-formed program: {', '.join(sorted(found))}"
    elif found:
        with races_permitted():
            results = list(_wrong(before, after))
        yield from (text for text in results if text.startswith(EFFECTS[0]))
        yield f"ill-formed program: {RACING}"
    try:
        if not verify(before, after, runs=12).ok:
            yield "wrong result: interpreter"
    except GraphCheckError:
        pass  # the data violate a condition of the program
    except Exception as error:  # noqa: BLE001 - any error is an effect
        yield f"wrong result: interpreter, {type(error).__name__}"
    for old in before.prims:
        new = after.functions.get(old.name)
        if isinstance(new, PrimFunc) and new is not old and copies(new.body) <= UNROLLED:
            yield from _on_machines(old, new)


@contextmanager
def races_permitted() -> Iterator[None]:
    """Disable the rule that the iterations of some loops are independent."""
    with (
        mock.patch.object(loop_verify, "races", return_value=()),
        mock.patch.object(loop_verify, "_VERIFIED", set[tuple[str, str]]()),
    ):
        yield


def _violated(module: Module) -> set[str]:
    """Return the violated rules of a module."""
    found = {v.rule for v in violations(module)} - {VALID_NAMES}
    return {f"{rule.number} {rule.name}" for rule in found}


def _on_machines(old: PrimFunc, new: PrimFunc) -> Iterator[str]:
    """Yield the differences of native code, and of the emulated GPU for bound loops."""
    module = Module().with_functions(old)
    original, rng = (
        Original(Program("step", to_text(module), exact=False), module),
        random.Random(1),
    )
    try:
        kinds = ("small", "prime", "large")
        envs = [sizes(rng, original.program, new, kind) for kind in kinds]
        for env in envs:
            original.inputs(env)
    except (NoSizesError, TilewrightError):
        return  # the reference cannot run
    bound = any(isinstance(s, For) and s.kind == "thread" for s in walk(new.body))
    where = "emulated GPU" if bound else "native code"
    try:
        if bound:
            kernel = oracles.lowered(new, oracles.SIMT)
            for env in envs:
                oracles.run_simt(original, kernel, env, where)
        else:
            code = oracles.native(new, (*LEVELS, "")[0], opt=0)
            for env in envs:
                oracles.run_native(original, code, env, where)
    except RefusedError as error:
        yield f"refused by lowering: {type(error.__cause__).__name__}"
    except oracles.WrongResultError:
        yield f"wrong result: {where}"
    except TilewrightError as error:
        yield f"refused by lowering: {type(error).__name__}"
    except Exception as error:  # noqa: BLE001 - any error is an effect
        yield f"wrong result: {where}, {type(error).__name__}"


def rank(found: str) -> int:
    """Return the position of an effect in `EFFECTS`."""
    return next(k for k, name in enumerate(EFFECTS) if found.startswith(name))


def is_defect(found: str) -> bool:
    """Return whether an effect is a wrong result or an ill-formed program.

    A race is only a defect with the wrong result of a machine, which another step may show.
    """
    race = f"ill-formed program: {RACING}"
    return found != race and rank(found) < EFFECTS.index("error in the step")
