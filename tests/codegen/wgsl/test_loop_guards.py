"""Shaders that record loops which the driver ends."""

from __future__ import annotations

import pytest

from tilewright.codegen.wgsl import from_bytes
from tilewright.codegen.wgsl.loop_guards import guarded

from tests.codegen.wgsl import tint
from tests.codegen.wgsl.running import WEBGPU, compiled, shader_texts

UPDATES = """
n, m = symbols("n m", lower=0)

@prim_func
def updates(k: Buffer[(n,), i32], x: Buffer[(n, m), f32], y: InOut[(4,), f32]):
    for i in range(n):
        for j in range(m):
            with block("add"):
                vi, vj = reduce(i), reduce(j)
                with checked(k[vi], 0, 4) as at:
                    y[at] += x[vi, vj] * 0.5
"""

QUOTIENTS = """
n, m = symbols("n m", lower=0)

@prim_func
def quotients(x: Buffer[(n, m), i64], y: Out[(n,), i64]):
    for i in range(n):
        for j in range(m):
            with block("sum"):
                vi, vj = spatial(i), reduce(j)
                with init(): y[vi] = 0
                y[vi] += x[vi, vj] // (x[vi, vj] + 3)
"""


def test_golden(golden):
    """A loop with a counter, one that ends by a condition, and one in a helper function."""
    artifacts = [compiled(p, WEBGPU).artifact for p in (UPDATES, QUOTIENTS)]
    shaders = [s for a in artifacts for image in a.images.values() for s in from_bytes(image)]
    texts = [guarded(s.text, 5, 7) for s in shaders if s.name.endswith("$i32")]
    golden("guarded.wgsl", "\n".join(texts))


@pytest.mark.parametrize("text", ["fn main() {\n}", "enable f16;\n\nfn main() {\n    x = 1;\n}\n"])
def test_a_shader_without_loops_is_unchanged(text):
    assert guarded(text, 1, 1) == text


def test_the_line_that_enables_a_feature_stays_first():
    text = "enable f16;\n\nfn main() {\n    for (var i = 0i; i < n; i++) {\n    }\n}\n"
    assert guarded(text, 1, 1).startswith("enable f16;\n@group(0)")


def test_a_nested_loop_ends_by_its_own_break():
    text = """\
loop {
    loop {
        if !(a) {
            break;
        }
    }
    if !(b) {
        break;
    }
}"""
    assert (
        guarded(text, 1, 1).partition("\n\n")[2].partition("\n\n")[2]
        == """\
{
var tw_whole_0 = false;
loop {
    {
    var tw_whole_1 = false;
    loop {
        if !(a) {
            tw_whole_1 = true;
            break;
        }
    }
    if !tw_whole_1 {
        tw_loop_ended();
    }
    }
    if !(b) {
        tw_whole_0 = true;
        break;
    }
}
if !tw_whole_0 {
    tw_loop_ended();
}
}"""
    )


@pytest.mark.browser
def test_tint_accepts_guarded_shaders(chromium):
    texts = [t for p in (UPDATES, QUOTIENTS) for t in shader_texts(compiled(p, WEBGPU))]
    assert set(tint.messages([guarded(t, 5, 1) for t in texts], chromium)) == {""}
