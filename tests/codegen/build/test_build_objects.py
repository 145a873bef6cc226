"""Compilation of LLVM text: the effort for a host flow depends on its size."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.codegen.build import build_objects
from tilewright.codegen.build.build_objects import LARGE_HOST_FLOW, host_job
from tilewright.ir.script import parse
from tilewright.target.target import Target

STEPS = """
n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(n, 4), f32], w: Tensor[(4, 4), f32]):
    a = matmul(x, w)
    b = softmax(a, axis=-1)
    c = matmul(b, w)
    d = add(c, x)
    return d
"""


def test_a_large_host_flow_is_not_optimized():
    small, large = (host_job("x" * size, Target("cpu")) for size in (10, LARGE_HOST_FLOW + 1))
    assert (small.opt, large.opt) == (2, 0)
    assert small.target == large.target == Target("cpu")


def test_a_host_flow_without_optimization_returns_the_same_result(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((3, 4)).astype("f4"), rng.standard_normal((4, 4)).astype("f4")
    expected = compile(parse(STEPS), "cpu")(x, w)
    monkeypatch.setattr(build_objects, "LARGE_HOST_FLOW", 10)
    monkeypatch.setenv("TILEWRIGHT_CACHE", f"{tmp_path}/other")
    exe = compile(parse(STEPS), "cpu")
    np.testing.assert_array_equal(exe(x, w), expected)
    assert exe.cached is False
    assert "main__entry" in exe.assembly()
