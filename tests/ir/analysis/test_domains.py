"""Executed domains and multiplicities, compared with enumeration."""

from __future__ import annotations

import random

import pytest

from tilewright.ir.analysis import executed_domain, tree_of
from tilewright.ir.analysis.domains import dependent_bindings
from tilewright.ir.script import parse
from tilewright.ir.symbolic import evaluate

from tests.ir.analysis.random_nests import SIZES, box, draw, runs


def check(text: str) -> tuple[str, str]:
    """Compare the domain of the block ``b`` with the iterations that run."""
    tree = tree_of(parse(text).prims[0])
    (block,) = [b for b in tree.outermost_blocks() if b.name == "b"]
    found = executed_domain(tree, block)
    for sizes in SIZES:
        symbols = {s: sizes[s.name] for s in tree.symbols()}
        ran = runs(text, sizes)
        if found.instances.once:
            assert max(ran.values(), default=1) == 1, text
        if found.condition is None:
            continue
        described = {
            point
            for point in box(block, symbols)
            if evaluate(
                found.condition,
                symbols | dict(zip((v.var for v in block.iters), point, strict=True)),
            )
        }
        assert described == set(ran), (text, sizes, str(found.condition))
    return found.coverage.name, found.instances.multiplicity.name


@pytest.mark.parametrize("part", range(4))
def test_domains_describe_exactly_the_iterations_that_run(part):
    rng = random.Random(part)
    seen = [check(draw(rng)) for _ in range(60)]
    coverages, counts = zip(*seen, strict=True)
    assert {"EXACT", "SUBSET"} <= set(coverages)
    assert "ONCE" in counts


BINDINGS = """
@prim_func(scheduled=True)
def f(x: Buffer[(16,), f32], y: InOut[(16, 32), f32]):
    for i in range(16):
        with block("b"):
            v1, v2 = {bindings}
            y[v1, v2] = x[v1]
"""


@pytest.mark.parametrize(
    ("bindings", "relation"),
    [
        ("spatial(16, i), spatial(32, 2 * i)", "v1 * 2 == v2"),
        ("spatial(4, i // 4), spatial(4, i % 4)", None),
        ("spatial(16, i // 4), spatial(32, i)", "v1 == v2 // 4"),
        ("spatial(16, i), spatial(1, 0)", None),
    ],
)
def test_dependent_bindings(bindings, relation):
    tree = tree_of(parse(BINDINGS.format(bindings=bindings)).prims[0])
    found = dependent_bindings(tree, tree.outermost_blocks()[0])
    assert (None if found is None else str(found)) == relation


@pytest.mark.parametrize(
    ("bindings", "relation"),
    [
        ("spatial(4, i + r), reduce(4, r)", None),
        ("spatial(4, r), reduce(4, r + 2 * i)", None),
        ("spatial(4, i + r), reduce(8, 2 * (i + r))", "v1 * 2 == v2"),
        ("spatial(4, r), reduce(4, r)", "v1 == v2"),
        ("spatial(1, i), reduce(4, r)", None),
    ],
)
def test_relations_that_hold_because_a_loop_has_one_iteration_are_none(bindings, relation):
    text = f"""
@prim_func(scheduled=True)
def f(x: Buffer[(8,), f32], y: InOut[(8,), f32]):
    for i in range(1):
        for r in range(4):
            with block("s"):
                v1, v2 = {bindings}
                y[v1] += x[v2]
"""
    function = parse(text).prim("f")
    found = dependent_bindings(tree_of(function), tree_of(function).outermost_blocks()[0])
    assert (None if found is None else str(found)) == relation


def test_bindings_of_loops_with_one_iteration_are_independent():
    text = """
n = symbols("n", lower=0)

@prim_func
def f(n: Int, x: Buffer[(2 * n,), f32], w: Buffer[(5,), f32], y: InOut[(2 * n,), f32]):
    for i in range(n):
        for k in range(1):
            with block("s"):
                vi, vk = spatial(2 * n, 2 * i + k), reduce(5, k)
                y[vi] += x[vi] * w[vk]
"""
    function = parse(text).prim("f")
    assert dependent_bindings(tree_of(function), tree_of(function).outermost_blocks()[0]) is None
