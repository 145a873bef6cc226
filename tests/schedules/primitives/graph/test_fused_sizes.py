"""Automatic fusion keeps expressions small: no doubling, no chain without end."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.ir.analysis.value_size import FUSED, ValueSize, value_size
from tilewright.ir.loop.visit import stores
from tilewright.ir.module import Module
from tilewright.ir.script import parse
from tilewright.schedules.rules import with_default_schedule


def program(lines: list[str]) -> Module:
    body = "".join(f"    {line}\n" for line in lines)
    return parse(
        'n = symbols("n", lower=1)\n\n@graph_func\ndef main(v0: Tensor[(n, 8), f32]):\n'
        f"{body}    return v{len(lines)}\n"
    )


def sums(count: int) -> Module:
    return program([f"v{k + 1} = add(v{k}, v{max(k - 1, 0)})" for k in range(count)])


def squares(count: int) -> Module:
    return program([f"v{k + 1} = multiply(v{k}, v{k})" for k in range(count)])


def chain(count: int) -> Module:
    names = ("negative", "abs", "exp", "tanh", "sigmoid")
    return program([f"v{k + 1} = {names[k % 5]}(v{k})" for k in range(count)])


@cache
def sizes(make: Callable[[int], Module], count: int) -> list[ValueSize]:
    """Return the sizes of all values in the kernels of a program after the default schedule."""
    kernels = with_default_schedule(make(count)).prims
    return [value_size(s.value) for f in kernels for s in stores(f.body)]


@pytest.mark.parametrize("make", [sums, squares, chain])
@pytest.mark.parametrize("count", [40, 300])
def test_expressions_are_limited(make: Callable[[int], Module], count: int) -> None:
    found = sizes(make, count)
    assert all(size.within(FUSED) for size in found)
    assert sum(size.nodes for size in found) <= 6 * count


def test_a_chain_is_divided_into_few_kernels():
    assert len(sizes(chain, 300)) <= 300 // 60 + 1


def test_a_small_value_that_is_used_twice_is_computed_twice():
    text = ["v1 = add(v0, 1.0)", "v2 = multiply(v1, 2.0)", "v3 = add(v1, v2)"]
    assert len(with_default_schedule(program(text)).prims) == 1


def test_a_chain_of_1000_operators_compiles():
    x = np.linspace(-2, 2, 24, dtype=np.float32).reshape(3, 8)
    expected = x
    for k in range(1000):
        expected = (
            np.negative, np.abs, np.exp, np.tanh, lambda v: 1 / (1 + np.exp(-v))
        )[k % 5](expected)  # fmt: skip
    np.testing.assert_allclose(compile(chain(1000), "cpu")(x), expected, rtol=1e-4)


def test_sums_of_the_two_previous_values_compile():
    x = np.ones((2, 8), np.float32)
    values = [x, x]
    for _ in range(40):
        values.append(values[-1] + values[-2])
    np.testing.assert_allclose(compile(sums(40), "cpu")(x), values[-1], rtol=1e-5)


def test_240_branches_into_one_concatenation_compile():
    names = ("negative", "abs", "exp")
    parts = [f"v{k} = {names[k % 3]}(x)" for k in range(240)]
    module = parse(
        'n = symbols("n", lower=1)\n\n@graph_func\ndef main(x: Tensor[(n, 4), f32]):\n    '
        + "\n    ".join(parts)
        + f"\n    y = concat({', '.join(f'v{k}' for k in range(240))}, axis=1)\n    return y\n"
    )
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    functions = (np.negative, np.abs, np.exp)
    expected = np.concatenate([functions[k % 3](x) for k in range(240)], axis=1)
    np.testing.assert_allclose(compile(module, "cpu")(x), expected, rtol=1e-6)
