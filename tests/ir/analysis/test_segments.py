"""Segments between consecutive offsets, and the programs whose segments may overlap."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.errors import TilewrightError
from tilewright.ir.analysis import conflicts, tree_of
from tilewright.ir.interpreter import run_prim
from tilewright.ir.script import parse
from tilewright.schedules import Schedule

RAGGED = """
n, m = symbols("n m", lower=0)

@prim_func
def f(n: Int, off: Buffer[(n + 1,), i32], x: Buffer[(m,), f32], y: InOut[(m,), f32]):
    for i in range(n):
        with checked(off[i], 0, m + 1) as lo:
            with checked(off[i + 1], lo, m + 1) as hi:
                for j in range(hi - lo):
                    with block("y"):
                        vl, vh, vj = spatial(m + 1, lo), spatial(m + 1, hi), spatial(m, j)
                        y[vl + vj] = {value}
"""


def ragged(old: str = "", new: str = "", value: str = "x[vl + vj] * 2.0") -> str:
    text = RAGGED.format(value=value)
    assert old in text
    return text.replace(old, new) if old else text


def found(text: str, position: int = 0) -> list[str]:
    """Return the buffers with conflicts between iterations of a loop."""
    tree = tree_of(parse(text, check=False).prims[0])
    return [c.buffer.name for c in conflicts(tree, list(tree.loops.values())[position])]


@pytest.mark.parametrize(
    "text",
    [
        ragged(),
        ragged("y[vl + vj] =", "y[vh - vj - 1] ="),
        ragged(value="y[vl + vj] + y[vh - 1]"),
        ragged("0, m + 1", "1, m"),
        ragged("off[i]", "off[n - 1 - i]").replace("off[i + 1]", "off[n - i]"),
    ],
)
def test_each_iteration_has_its_own_segment(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    "text",
    [
        ragged("off[i + 1], lo,", "off[i + 1], 0,"),  # the end may be before the start
        ragged("off[i + 1]", "off[min(i + 2, n)]"),
        ragged("checked(off[i]", "clamped(off[i]"),
        ragged("checked(off[i + 1]", "clamped(off[i + 1]"),
        ragged("y[vl + vj] =", "y[vl + vj + 1] ="),
        ragged("range(hi - lo)", "range(hi - lo + 1)"),
        ragged("y[vl + vj] =", "y[vh + vj] ="),
        ragged("    for i in", "    for r in range(2):\n      for i in"),  # the same segments again
        ragged("off[i]", "off[i // 2]").replace("off[i + 1]", "off[i // 2 + 1]"),
        ragged("n + 1,), i32]", "2 * n + 2,), i32]")
        .replace("off[i]", "off[2 * i]")
        .replace("off[i + 1]", "off[2 * i + 1]"),
        ragged(value="y[0]"),
    ],
)
def test_segments_that_may_overlap(text: str) -> None:
    assert "y" in found(text)


def test_offsets_that_are_checked_in_some_iterations_only() -> None:
    """The check of an iteration that does not run does not order the others."""
    text = ragged(
        "        with checked(off[i], 0", "      if i % 2 == 0:\n        with checked(off[i], 0"
    )
    assert found(text) == ["y"]
    limit = ragged(
        "        with checked(off[i], 0", "      if i < 5:\n        with checked(off[i], 0"
    )
    assert found(limit) == []


def test_offsets_that_the_loop_writes() -> None:
    text = ragged("off: Buffer", "off: InOut").replace(
        "                for j in", "                off[0] = 1\n                for j in"
    )
    assert "y" in found(text)


def test_segments_of_tiles() -> None:
    sch = Schedule(parse(ragged()))
    sch.split("i", factors=(None, 4))
    text = str(sch.module)
    assert found(text, 0) == found(text, 1) == []


def test_elements_of_nested_blocks_under_a_predicate() -> None:
    """Steps keep the segments: the predicate of the inner block limits the last tile."""
    sch = Schedule(parse(ragged()))
    sch.parallel("i")
    sch.split("j", factors=(None, 8))
    sch.blockize("j_1")
    assert "guard(" in str(sch)
    assert found(str(sch.module)) == []


@pytest.mark.parametrize("target", ["cpu", "simt"])
def test_rows_between_offsets_run_in_parallel(target: str) -> None:
    sch = Schedule(parse(ragged()))
    if target == "cpu":
        sch.parallel("i")
    else:
        outer, inner = sch.split("i", factors=(None, 4))
        sch.bind(outer, "blockIdx.x")
        sch.bind(inner, "threadIdx.x")
    exe = tw.compile(sch.module, target)
    x = np.arange(9, dtype=np.float32)
    for off in ([0, 3, 3, 7, 9, 9], [1, 1, 1, 2, 2, 8], [9] * 6):
        offsets = np.array(off, np.int32)
        y, expected = np.zeros(9, np.float32), np.zeros(9, np.float32)
        run_prim(sch.module.prims[0], [offsets, x, expected], {"n": 5})
        exe(5, offsets, x, y)
        np.testing.assert_array_equal(y, expected)
        np.testing.assert_array_equal(y[off[0] : off[-1]], 2 * x[off[0] : off[-1]])
    with pytest.raises(TilewrightError, match="integer read from memory is out of range"):
        exe(5, np.array([0, 3, 1, 7, 9, 9], np.int32), x, y)
