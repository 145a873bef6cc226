from __future__ import annotations

import numpy as np

import tilewright as tw

from tests.static_html import check_static

NETWORK = """
constant("w", (16, 24), f32)
n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(n, 16), f32]):
    y: Tensor[(n, 24), f32] = matmul(x, const("w"))
    return y
"""


def test_an_executable_prints_its_functions_kernels_and_sizes():
    exe = tw.compile(tw.parse(NETWORK, constants={"w": np.ones((16, 24), np.float32)}))
    shown = str(exe)
    assert shown.startswith("executable for Target(")
    assert "main(x: Tensor((n, 16), f32)) -> f32" in shown
    assert "constants: 1 of 1.536 kB" in shown
    for kernel in exe.kernels:
        assert kernel in shown
    assert "if n == 1" in shown
    assert "machine code: " in shown
    assert repr(exe).count("\n") == 0
    check_static(exe._repr_html_())


def test_a_kernel_of_the_program_is_one_function():
    exe = tw.compile(
        tw.parse("@prim_func\ndef zero(y: Out[(8,), f32]):\n    for i in range(8): y[i] = 0.0")
    )
    assert str(exe).count("zero()") == 1
    assert "constants: none" in str(exe)


def test_a_launch_with_versions_is_one_launch():
    exe = tw.compile(tw.parse(NETWORK, constants={"w": np.ones((16, 24), np.float32)}))
    (row,) = [line for line in str(exe).splitlines() if line.startswith("main(")]
    assert row.split()[-2:] == ["1", "1"]
    assert "a version runs instead of its kernel if its condition is true" in str(exe)
