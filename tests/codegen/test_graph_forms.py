"""Graphs of unusual forms, compiled with default rules, equal the interpreter."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.interpreter import run_graph
from tilewright.schedules.handles import FunctionRef

from tests.schedules.primitives.graph.test_callers import BRANCHES, CHAIN, PIECES

SHAPES = [(2, 3, 8), (1, 1, 8), (5, 1, 8)]


def check(program, module, *args):
    exe = tw.compile(program)
    found = exe(*args)
    found = found if isinstance(found, tuple) else (found,)
    for ours, expected in zip(found, run_graph(module, args), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-6)


def inputs(shape):
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_kernel_with_several_results(shape):
    module = tw.parse(PIECES)
    check(module, module, inputs(shape))


@pytest.mark.parametrize("flag", [True, False])
def test_operators_in_branches(flag):
    module = tw.parse(BRANCHES)
    check(module, module, inputs(SHAPES[0]), np.array(flag))


@pytest.mark.parametrize("shape", SHAPES)
def test_versions_that_exist_already(shape):
    schedule = tw.Schedule(tw.parse(CHAIN))
    schedule.legalize(FunctionRef("main"))
    schedule.specialize(FunctionRef("relu"), symbol="b", lower=1, upper=1)
    check(schedule, tw.parse(CHAIN), inputs(shape))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("flag", [True, False])
def test_versions_that_calls_in_branches_choose(shape, flag):
    schedule = tw.Schedule(tw.parse(BRANCHES))
    schedule.legalize(FunctionRef("main"))
    schedule.specialize(FunctionRef("relu"), symbol="b", lower=1, upper=1)
    schedule.specialize(FunctionRef("multiply"), symbol="s", lower=2, multiple_of=3)
    check(schedule, tw.parse(BRANCHES), inputs(shape), np.array(flag))


@pytest.mark.parametrize("rows", [1, 2, 17])
def test_a_product_in_a_branch_and_beside_it(rows):
    text = """
n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(n, 32), f32], w: Tensor[(32, 32), f32], p: Tensor[(), bool]):
    t = matmul(x, w)
    if p:
        u = matmul(t, w)
        y: Tensor[(n, 32), f32] = u
    else:
        y: Tensor[(n, 32), f32] = t
    return y
"""
    module = tw.parse(text)
    rng = np.random.default_rng(2)
    x, w = (rng.integers(-2, 3, s).astype(np.float32) for s in ((rows, 32), (32, 32)))
    for flag in (True, False):
        check(module, module, x, w, np.array(flag))
