"""Programs before and after one lowering pass.

The golden of a pass contains a program before the pass, a line ``-- after <pass> --``, and the
program after it. The golden of a check contains a program that it accepts, one that it rejects, and
the message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pytest

from tilewright.codegen.lower.pipeline import PASSES
from tilewright.ir.interpreter import run_prim
from tilewright.ir.script import parse, to_text
from tilewright.ir.verify import violations
from tilewright.schedules.launch.annotations import with_block_names
from tilewright.target.target import Target

from tests.codegen.arrays import data, outputs

if TYPE_CHECKING:
    from tilewright.errors import TilewrightError
    from tilewright.ir.loop.nodes import PrimFunc

CPU: Final = Target("cpu", arch="x86_64", features=("avx2", "fma"))
"""A CPU whose registers have 8 lanes of f32, on every host."""

GPU: Final = Target("simt")
NAMES: Final = tuple(one.name for one in PASSES)


def program(text: str) -> PrimFunc:
    """Parse a program of one function."""
    return parse(text).prims[0]


def racing(text: str) -> PrimFunc:
    """Parse a program whose only violation is that the iterations of a loop are not independent.

    The passes check or preserve such programs, too: a step or an earlier pass may make them.
    """
    module = parse(text, check=False)
    assert {v.rule.number for v in violations(module)} == {"L23"}
    return module.prims[0]


def before(name: str, func: PrimFunc | str, target: Target) -> PrimFunc:
    """Return the function after the passes that precede a pass."""
    func = program(func) if isinstance(func, str) else func
    for one in PASSES[: NAMES.index(name)]:
        if one.applies_to(target):
            func = one.run(func, target)
    return func


def after(name: str, func: PrimFunc, target: Target) -> PrimFunc:
    """Return the function after a pass."""
    one = PASSES[NAMES.index(name)]
    assert one.applies_to(target)
    return one.run(func, target)


def both(name: str, func: PrimFunc | str, target: Target) -> tuple[PrimFunc, PrimFunc]:
    """Return the function before and after a pass."""
    first = before(name, func, target)
    return first, after(name, first, target)


def text_of(func: PrimFunc) -> str:
    """Return an intermediate program as text."""
    return to_text(with_block_names(func), lowered=True)


def comparison(name: str, func: PrimFunc | str, target: Target) -> str:
    """Return the text of the golden of a pass."""
    first, second = both(name, func, target)
    return f"{text_of(first)}\n\n-- after {name} --\n\n{text_of(second)}\n"


def check_comparison(
    name: str, good: tuple[str, Target], bad: tuple[str, Target], error: type[TilewrightError]
) -> str:
    """Return the text of the golden of a check: an accepted and a rejected program."""
    first, second = both(name, *good)
    assert second is first
    wrong = before(name, *bad)
    with pytest.raises(error) as caught:
        after(name, wrong, bad[1])
    return (
        f"{text_of(first)}\n\n-- {name} accepts it for {good[1]} --\n\n\n"
        f"{text_of(wrong)}\n\n-- {name} rejects it for {bad[1]} --\n\n"
        f"{caught.value.message}\n  {caught.value.hint}\n"
    )


def unchanged(name: str, func: PrimFunc | str, target: Target) -> bool:
    """Return whether a pass keeps the text of a program, except comments."""
    first, second = (_without_comments(text_of(f)) for f in both(name, func, target))
    return first == second


def _without_comments(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.lstrip().startswith("#")]


def same_results(first: PrimFunc, second: PrimFunc, **sizes: int) -> list[np.ndarray]:
    """Check that two functions compute the same outputs, and return these."""
    given = data(first, sizes)
    found = []
    for func in (first, second):
        arrays = [array.copy() for array in given]
        run_prim(func, arrays, sizes)
        found.append(outputs(func, arrays))
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    return found[1]


def rejected(
    name: str, func: PrimFunc | str, target: Target, error: type[TilewrightError], *parts: str
) -> TilewrightError:
    """Check that a pass rejects a program, and that the message contains the parts."""
    first = before(name, func, target)
    with pytest.raises(error) as caught:
        after(name, first, target)
    for part in parts:
        assert part in str(caught.value)
    return caught.value
