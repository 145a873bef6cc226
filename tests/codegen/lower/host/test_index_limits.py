"""The choice between the versions of a kernel with 32-bit and with 64-bit indices."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.lower.host.context import HostContext, HostKernel
from tilewright.codegen.lower.host.index_limits import (
    kernel_limits,
    limit_texts,
    short_indices,
    short_name,
)
from tilewright.ir.graph.nodes import GraphFunc
from tilewright.ir.host import nodes as host
from tilewright.ir.module import Module
from tilewright.ir.script import parse
from tilewright.ir.symbolic import Const, as_expr, var

N, M = var("n"), var("m", lower=0)
LIMIT = 2**31
TEXT = """
n = symbols("n", lower=0)
@prim_func
def f(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            y[vi] = x[vi] + index(vi % 7, f32)
"""


def context():
    graph = parse("""
@graph_func
def main(x: Tensor[(4,), f32]):
    return x
""").graphs[0]
    assert isinstance(graph, GraphFunc)
    made = HostContext(Module(), graph, {})
    made.bound.update((N, M))
    return made


@pytest.mark.parametrize(
    ("n", "narrow"),
    [(0, True), (LIMIT - 1, True), (LIMIT, False), (1 - LIMIT, True), (-LIMIT, False)],
)
def test_known_values_decide(n, narrow):
    made = context()
    assert short_indices(made, "f", (N,), [(N, as_expr(n))]) is narrow
    assert made.out == []


def test_a_kernel_without_limits_has_no_narrow_version():
    assert short_indices(context(), "f", (), [(N, as_expr(1))]) is False


def test_one_known_limit_that_does_not_hold_decides():
    values = [(N, as_expr(LIMIT)), (M, M)]
    assert short_indices(context(), "f", (M * 4, N), values) is False


def test_unknown_values_are_compared_at_run_time():
    made = context()
    values = [(N, N + 1), (M, M)]
    found = short_indices(made, "f", (N * M * 3 + (M + 7) // 8, Const(5) * M), values)
    assert isinstance(found, host.Arithmetic)
    called = [s.callee for s in made.out if isinstance(s, host.Invoke)]
    assert set(called) == {"tw_magnitude", "tw_scale", "tw_join"}
    assert called.count("tw_magnitude") == 2  # once for each symbol


def test_conditions_as_text():
    assert limit_texts((N * 4,), {N: "rows"}) == ("rows * 4 < 2**31",)
    kernels = {"f": HostKernel((N,), limits=(N,)), "g": HostKernel((N,))}
    assert kernel_limits(kernels) == {"f": ("n < 2**31",)}
    assert short_name("f") == "f$i32"


def test_one_launch_has_both_versions():
    text = str(tw.lower(parse(TEXT), target=tw.Target("cpu", features=("avx2",))))
    run = text[text.index("f__call__run") :]
    assert run.index("launch f$i32(x") < run.index("launch f(x")
    exe = tw.compile(parse(TEXT), target=tw.Target("cpu", features=("avx2",)))
    assert exe.kernels == ("f",)
    (facts,) = (k for k in exe.explain().kernels if k.kernel == "f")
    assert facts.limits
    assert "32-bit indices if" in str(exe.explain("f"))
    x = np.ones(100, np.float32)
    np.testing.assert_array_equal(exe(x), x + np.arange(100) % 7)


def test_a_version_of_a_gpu_kernel_is_in_the_same_image():
    text = TEXT.replace("def f", "def g")
    exe = tw.compile(parse(text), target=tw.Target("cuda", arch="sm_80"))
    (spec,) = exe.artifact.kernel_specs
    assert spec.narrow == "g$i32"
    assert spec.limits
    ptx = exe.image().ptx
    assert ".entry g(" in ptx
    assert ".entry g$i32(" in ptx
