"""Compilation of LLVM text: the effort for a host flow depends on its size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.codegen.build import build_objects
from tilewright.codegen.build.build_objects import LARGE_HOST_FLOW, host_job, own_object
from tilewright.codegen.build.object_cache import DiskCache
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


def test_the_text_of_an_own_object_is_generated_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiler of other source files generates it again, as does a damaged file in the cache."""
    monkeypatch.setattr(build_objects, "default_cache", lambda: store)
    store, generated = DiskCache(tmp_path), list[str]()

    def text() -> str:
        generated.append("define i32 @answer() {\n  ret i32 42\n}\n")
        return generated[-1]

    first = own_object("answer", text, Target("cpu"))
    assert own_object("answer", text, Target("cpu")) == first
    assert len(generated) == 1
    monkeypatch.setattr(build_objects, "source_version", lambda: "other files")
    assert own_object("answer", text, Target("cpu")) == first
    assert len(generated) == 2
    for path in (p for p in tmp_path.rglob("*") if p.is_file()):
        path.write_bytes(path.read_bytes()[:20])
    assert own_object("answer", text, Target("cpu")) == first
    assert len(generated) == 3


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
