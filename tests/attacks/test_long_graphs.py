"""Graphs with long chains of element-wise operators, and chains whose expressions would double."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw

FUNCTIONS = ("negative", "abs", "tanh")


def chain(length: int) -> str:
    """Return a graph in which each operator reads the result of the one before."""
    lines = [f"    v{k + 1} = {FUNCTIONS[k % 3]}(v{k})" for k in range(length)]
    return _graph(lines, length)


def doubling(length: int) -> str:
    """Return a graph in which each sum reads the last two results, as in residual blocks."""
    lines = ["    v1 = tanh(v0)"]
    lines += [f"    v{k + 1} = add(v{k}, v{k - 1})" for k in range(1, length)]
    return _graph(lines, length)


def _graph(lines: list[str], length: int) -> str:
    header = ['n = symbols("n", lower=1)', "@graph_func", "def main(v0: Tensor[(n, 8), f32]):"]
    return "\n".join([*header, *lines, f"    return v{length}", ""])


@pytest.mark.parametrize("length", [90, 300])
def test_a_long_chain_of_element_wise_operators(length: int) -> None:
    exe = tw.compile(tw.parse(chain(length)), timeout=60)
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 8)
    expected = x
    for k in range(length):
        expected = (np.negative, np.abs, np.tanh)[k % 3](expected)
    np.testing.assert_allclose(exe(x), expected, rtol=1e-4, atol=1e-6)


def test_sums_of_the_last_two_results_do_not_double_the_expression() -> None:
    exe = tw.compile(tw.parse(doubling(40)), timeout=60)
    x = np.linspace(0, 1, 24, dtype=np.float32).reshape(3, 8)
    before, last = x, np.tanh(x)
    for _ in range(39):
        before, last = last, last + before
    np.testing.assert_allclose(exe(x), last, rtol=1e-4)
