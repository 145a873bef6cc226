"""Kernels of attention as ``fuse_attention`` makes them from a graph."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tilewright.ir.module import Module
from tilewright.ir.script import parse
from tilewright.schedules import Schedule
from tilewright.target.target import Target

from tests.fuzz.program import Maker, Program

if TYPE_CHECKING:
    import random

GRAPH = """
@graph_func
def main({params}):
    c = causal_mask((n, m, {past}))
    t = permute_dims(k, axes={axes})
    s0 = matmul(q, t)
{steps}
    p = softmax(s{last}, axis=-1, masked_rows={rows!r})
    y = matmul(p, v)
    return y
"""

STEPS = {
    "": "multiply({score}, {factor})",
    "bias: Tensor[(n, m), f32]": "add({score}, bias)",
    "mask: Tensor[(n, m), bool]": "where(mask, {score}, {lowest})",
    "causal": "where(c, {score}, {lowest})",
}
"""The result of each step on the scores, by the input that it adds."""

LOWEST = "-1e30"
"""A finite score that no score is less than, and that a factor does not make infinite."""

TARGETS = (Target("cpu"), Target("cpu", features=("avx2",)), Target("cpu", features=("avx512",)))


def fused_attention(rng: random.Random) -> Program:
    """Draw one of the kernels that ``fuse_attention`` makes of products with a softmax."""
    m = Maker(rng)
    n, keys = m.symbol("n"), m.symbol("m")
    outer = m.pick("", "", "2, ", "1, 2, ")
    rank = outer.count(",") + 2
    masks, steps, score = [], [], "s0"
    for place in range(rng.randint(0, 2)):
        kind = m.pick(*(k for k in STEPS if k not in masks))
        value = STEPS[kind].format(
            score=score,
            factor=m.pick("0.5", "2.0"),
            lowest=m.pick("-inf", LOWEST),
        )
        masks += [kind] if kind and kind != "causal" else []
        score = f"s{place + 1}"
        steps.append(f"    {score} = {value}")
    width, depth = m.pick("1", "4", "5", "8", "16"), m.pick("1", "4", "5", "16", "17")
    shapes = {"q": f"{outer}n, {width}", "k": f"{outer}m, {width}", "v": f"{outer}m, {depth}"}
    params = [*(f"{x}: Tensor[({shape}), f32]" for x, shape in shapes.items()), *masks]
    graph = GRAPH.format(
        params=", ".join(params),
        past=m.pick("0", "1", "3"),
        axes=(*range(rank - 2), rank - 1, rank - 2),
        steps="\n".join(steps),
        last=score[1:],
        rows=m.pick("zero", "nan"),
    )
    declared = "".join(f'{x} = symbols("{x}", lower={m.symbols[x]})\n' for x in (n, keys))
    schedule = Schedule(parse(declared + graph), rng.choice(TARGETS))
    schedule.fuse_attention()
    kernel = replace(rng.choice(schedule.module.prims), name="random")
    return Program("fused_attention", str(Module({"random": kernel})), exact=False)
