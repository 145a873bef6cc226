"""Graphs with many operators, and programs with many facts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.build import build_objects
from tilewright.codegen.build.build_objects import host_job

from tests.cpu_time import relative_ms, timed

if TYPE_CHECKING:
    from pathlib import Path

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


def layers(length: int) -> str:
    """Return a graph of products and other operators, with few different kernels."""
    forms = ("matmul(v{0}, w)", "relu(v{0})", "add(v{0}, v0)", "softmax(v{0}, axis=-1)")
    lines = [f"    v{k + 1} = {forms[k % 4].format(k)}" for k in range(length)]
    return _graph(lines, length).replace("f32]):", "f32], w: Tensor[(8, 8), f32]):")


def facts(count: int, prefix: str = "n") -> str:
    """Return a function with as many symbols and facts about two of them."""
    names = [f"{prefix}{k}" for k in range(count)]
    params = ", ".join(f"x{k}: Buffer[({name},), f32]" for k, name in enumerate(names))
    lines = [
        f'    fact({a} <= {b} + {k}, "sizes", by="entry_check")'
        for k, (a, b) in enumerate(zip(names, [*names[1:], names[0]], strict=True))
    ]
    head = [
        f'{", ".join(names)} = symbols("{" ".join(names)}", lower=1)',
        "@prim_func",
        f"def f({params}, y: Out[(1,), f32]):",
    ]
    return "\n".join([*head, *lines, "    y[0] = 1.0", ""])


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


def test_a_graph_with_many_kernel_calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its host flow is too large to be optimized in linear time, and is translated as it is."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    monkeypatch.setattr(build_objects, "LARGE_HOST_FLOW", 20_000)
    levels = list[int]()

    def recorded(text: str, *args: Any, **options: Any) -> Any:
        job = host_job(text, *args, **options)
        levels.append(job.opt)
        return job

    monkeypatch.setattr("tilewright.codegen.compiler.host_job", recorded)
    exe = tw.compile(tw.parse(layers(102)), timeout=60)
    assert levels == [0]
    rng = np.random.default_rng(3)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((3, 8), (8, 8)))
    expected = x.astype(np.float64)
    for k in range(102):
        if k % 4 == 3:
            powers = np.exp(expected - expected.max(axis=-1, keepdims=True))
            expected = powers / powers.sum(axis=-1, keepdims=True)
        else:
            expected = (expected @ w, np.maximum(expected, 0), expected + x)[k % 4]
    np.testing.assert_allclose(exe(x, w), expected, rtol=1e-4, atol=1e-5)


@timed
def test_the_time_of_the_parser_is_about_linear_in_the_facts() -> None:
    """Four times the facts take less than ten times as long; quadratic time is 16 times."""
    tw.parse(facts(3))  # loads the parser
    few, many = (
        min(relative_ms(lambda n=n, k=k: tw.parse(facts(n, f"n{k}_"))) for k in range(5))
        for n in (25, 100)
    )
    assert many < 10 * few
