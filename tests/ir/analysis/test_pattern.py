"""Fusion patterns of loop-level functions."""

from __future__ import annotations

import pytest

from tilewright.ir.analysis import PatternKind, pattern_kind
from tilewright.ir.script import parse

from tests.schedules.helpers import CHAIN, MATMUL, SCAN

HEAD = 'n = symbols("n", lower=1)\n\n@prim_func\ndef f({params}):\n'


def kind(params, body):
    lines = "\n".join("    " + line for line in body.strip("\n").split("\n"))
    return pattern_kind(parse(HEAD.format(params=params) + lines).prims[0])


def test_matmul_is_out_fusable_and_sums_are_reductions():
    assert pattern_kind(parse(MATMUL).prims[0]) is PatternKind.OUT_FUSABLE
    assert (
        kind(
            "x: Buffer[(n, 8), f32], y: Out[(n,), f32]",
            """
for i in range(n):
    for k in range(8):
        with block("sum"):
            vi, vk = spatial(i), reduce(k)
            with init(): y[vi] = 0.0
            y[vi] += x[vi, vk] * x[vi, vk]
""",
        )
        is PatternKind.REDUCTION
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("x[vi, vj] + x[vi, vj]", PatternKind.ELEMENTWISE),
        ("x[vi, vj] + r[vj]", PatternKind.BROADCAST),
        ("x[vi, vj] + q[0, vj]", PatternKind.BROADCAST),
        ("s[vj, vi]", PatternKind.INJECTIVE),
        ("x[vi, 7 - vj]", PatternKind.INJECTIVE),
    ],
)
def test_patterns_of_maps(value, expected):
    params = (
        "x: Buffer[(n, 8), f32], r: Buffer[(8,), f32], q: Buffer[(1, 8), f32], "
        "s: Buffer[(8, n), f32], y: Out[(n, 8), f32]"
    )
    body = f"""
for i in range(n):
    for j in range(8):
        with block("map"):
            vi, vj = spatial(i), spatial(j)
            y[vi, vj] = {value}
"""
    assert kind(params, body) is expected


def test_ordered_and_in_place_are_opaque():
    assert pattern_kind(parse(SCAN).prims[0]) is PatternKind.OPAQUE
    assert pattern_kind(parse(CHAIN.replace("Out[", "InOut[")).prims[0]) is PatternKind.OPAQUE
    assert pattern_kind(parse(CHAIN).prims[0]) is PatternKind.ELEMENTWISE
