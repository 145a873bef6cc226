"""Updates in place by commutative operators."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tilewright
from tilewright.ir.analysis import reduction_of, reduction_update, tree_of, update_of
from tilewright.ir.loop.visit import stores
from tilewright.ir.script import parse
from tilewright.schedules.rules import with_default_schedule
from tilewright.target.host import with_level
from tilewright.target.target import Target

TEXT = """
@prim_func
def f(x: Buffer[(8,), f32], y: InOut[(8,), f32]):
    for i in range(8):
        with block("b"):
            v = spatial(i)
            y[v] = {value}
"""


def block_of(value):
    """Return the block that stores a value to ``y[v]``."""
    return tree_of(parse(TEXT.format(value=value)).prim("f")).outermost_blocks()[0]


@pytest.mark.parametrize(
    ("value", "op"),
    [
        ("y[v] + x[v]", "add"),
        ("x[v] + y[v]", "add"),
        ("max(y[v], x[v])", "max"),
        ("y[v] * x[7 - v]", "mul"),
        ("y[v] - x[v]", None),
        ("y[7 - v] + x[v]", None),
        ("y[v] + y[v]", None),
        ("y[v] + x[v] * y[7 - v]", None),
        ("x[v]", None),
        ("y[v] + x[v] + 1.0", None),
    ],
)
def test_updates(value, op):
    """The written element is returned on the left, wherever it is."""
    block = block_of(value)
    found = update_of(block.body)
    assert (found and found[0]) == op
    if found is not None:
        assert found[1].left.indices == block.body.indices
        assert found[1].right != found[1].left
    assert (reduction_update(block) is not None) == (op is not None)


PRODUCT = """
@prim_func
def product(A: Buffer[(28, 16), f32], B: Buffer[(16, 64), f32], C: Out[(28, 64), f32]):
    for i in range(28):
        for j in range(64):
            for k in range(16):
                with block("product"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): C[vi, vj] = 0.0
                    C[vi, vj] = {value}
"""


@pytest.mark.parametrize(
    "value", ["C[vi, vj] + A[vi, vk] * B[vk, vj]", "A[vi, vk] * B[vk, vj] + C[vi, vj]"]
)
def test_default_rules_recognize_updates_on_both_sides(value):
    target = with_level(Target("cpu"))
    done = with_default_schedule(parse(PRODUCT.format(value=value)), target)
    assert 'intrinsic="' in str(done)


def test_one_module_recognizes_updates():
    """Other modules ask it whether a store updates the element it reads."""
    root = Path(tilewright.__file__).parent
    own = re.compile(r"\.(left|right) (==|!=) (own\b|(loop\.)?Load\()")
    found = {
        str(path.relative_to(root))
        for folder in ("ir", "schedules", "codegen")
        for path in (root / folder).rglob("*.py")
        if own.search(path.read_text(encoding="utf-8"))
    }
    assert found == {"ir/analysis/updates.py"}


SCRATCH = """
n, m = symbols("n m", lower=0)

@prim_func
def f(x: Buffer[(n, m), f32], y: InOut[(n,), f32], z: InOut[(n,), f32]):
    for i in range(n):
        for k in range(m):
            with block("y"):
                vi, vk = spatial(i), reduce(k)
                t = alloc((3,), f32)
                {before}
                y[vi] = {value}
                {after}
"""


def scratch_block(before="t[0] = x[vi, vk] * 2.0", value="y[vi] + t[0]", after=""):
    text = SCRATCH.format(before=before, value=value, after=after)
    return tree_of(parse(text, check=False).prim("f")).outermost_blocks()[0]


LOOP = "for q in range(3):\n                    t[q] = x[vi, vk] + f32(q)"


@pytest.mark.parametrize(
    "block",
    [
        scratch_block(),
        scratch_block(before=LOOP, value="t[2] * t[0] + y[vi]"),
        scratch_block(before="if vk > 3:\n                    t[0] = z[vi]"),
    ],
)
def test_a_reduction_may_allocate_temporaries(block):
    """The temporaries are those of one iteration, so the order of iterations is free."""
    found = reduction_of(block)
    assert found.reducer.name == "add"
    assert reduction_update(block) is None
    assert found.body() is not block.body
    made = [(s.buffer.name, s.indices) for s in stores(found.body())]
    assert made == [(s.buffer.name, s.indices) for s in stores(block.body)]


@pytest.mark.parametrize(
    "block",
    [
        scratch_block(before="t[0] = y[vi]"),
        scratch_block(before="z[vi] = x[vi, vk]"),
        scratch_block(value="y[vi] - t[0]"),
        scratch_block(value="y[vi] + t[0] * y[vi]"),
        scratch_block(after="t[1] = 0.0"),
        scratch_block(after="z[vi] = 0.0"),
        scratch_block(before="with checked(i64(0), 0, n) as p:\n                    t[0] = y[p]")
        if False
        else scratch_block(before="y[vi] = 0.0"),
    ],
)
def test_a_body_that_reads_or_writes_other_elements_is_not_a_reduction(block):
    assert reduction_of(block) is None
