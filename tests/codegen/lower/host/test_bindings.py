"""Launches: shapes and sizes that are not proved equal to those of the kernel are checked."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.codegen.errors import CheckError, FactError
from tilewright.ir.interpreter.graph import GraphCheckError, run_graph
from tilewright.ir.module import Module
from tilewright.ir.script import parse
from tilewright.ir.verify import IllFormedProgramError
from tilewright.schedules.schedule import Schedule

CALL = """
n = symbols("n", lower=0)
m = symbols("m", lower=0)
k = symbols("k", lower=0{bounds})

@prim_func
def f(x: Buffer[({taken},), f32], y: Out[({made},), f32]{scalar}):
    for i in range({made}):
        with block("f"):
            v = spatial({made}, i)
            y[v] = x[v] + 1.0

@graph_func
def main(x: Tensor[(n,), f32], z: Tensor[(m,), f32]):
{fact}    a: Tensor[({result},), f32] = call_tir(f, x{passed})
    b: Tensor[({result},), f32] = call_tir(f, x{passed})
    return a, b
"""


def calling(
    taken: str, made: str, result: str, *, passed: str = "", bounds: str = "", fact: str = ""
) -> str:
    scalar = ", k: Int" if passed else ""
    passed = passed and f", scalars=({passed},)"
    fact = fact and f'    fact({fact}, "stated")\n'
    return CALL.format(
        taken=taken, made=made, result=result, scalar=scalar, passed=passed, bounds=bounds,
        fact=fact,
    )  # fmt: skip


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


UNPROVED = [
    (calling("2 * k", "2 * k", "n", passed="n"), (0, 3), (8, 3), "n = 8"),
    (calling("k", "k", "m"), (4, 4), (8, 3), "m = 3"),
    (calling("k", "k", "n", passed="m"), (4, 4), (3, 8), "n = 3"),
    (calling("k", "k", "n", bounds=", upper=4"), (4, 0), (5, 0), "n = 5"),
    (calling("k", "k", "n", bounds=", lower=2").replace("lower=0, ", ""), (2, 0), (1, 0), "n = 1"),
    (
        calling("k", "k", "n", bounds=", multiple_of=4"),
        (8, 0),
        (6, 0),
        "n = 6",
    ),
    (calling("2 * k", "2 * k", "n", passed="n // 2"), (6, 0), (7, 0), "n = 7"),
    (calling("4", "4", "n"), (4, 0), (8, 0), "n = 8"),
]


@pytest.mark.parametrize(
    ("text", "good", "bad", "values"), UNPROVED, ids=map(str, range(len(UNPROVED)))
)
def test_a_shape_that_is_not_proved_is_checked_at_the_launch(
    text: str, good: tuple[int, int], bad: tuple[int, int], values: str
) -> None:
    module = parse(text)
    exe = compile(module)
    inputs = tuple(map(ones, good))
    for made, expected in zip(exe(*inputs), run_graph(module, inputs), strict=True):
        assert np.array_equal(made, expected)
    with pytest.raises(CheckError, match=values) as caught:
        exe(*map(ones, bad))
    assert "call of 'f'" in caught.value.message
    with pytest.raises(GraphCheckError, match="'f'"):
        run_graph(module, tuple(map(ones, bad)))


def checks(module: Module) -> list[str]:
    (spec,) = (f for f in compile(module).artifact.functions if f.name == "main")
    return [s.text for s in spec.sites if "call of" in s.text]


def test_a_condition_is_checked_once() -> None:
    assert checks(parse(UNPROVED[0][0])) == ["call of 'f', parameter 'x', dimension 0: n == n * 2"]


@pytest.mark.parametrize(
    "text",
    [
        calling("k", "k", "n"),
        calling("k", "k", "m", fact="n == m"),
        calling("2 * k", "2 * k", "n", passed="n // 2", fact="n % 2 == 0"),
        calling("k", "k", "n", bounds=", upper=4", fact="n <= 4"),
        calling("4", "4", "n", fact="n == 4"),
    ],
)
def test_proved_shapes_are_not_checked(text: str) -> None:
    assert checks(parse(text)) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (calling("k", "k + 1", "n").replace("k + 1, i", "k + 1, i"), "expected n \\+ 1, got n"),
        (calling("4", "4", "n", fact="n >= 6"), "expected 4, got n"),
        (calling("k", "k", "n", bounds=", upper=4", fact="n >= 6"), "k <= 4"),
        (calling("k", "k", "n", passed="9", bounds=", upper=4"), "k <= 4"),
    ],
)
def test_a_shape_that_never_fits_is_an_error_of_the_program(text: str, message: str) -> None:
    with pytest.raises(IllFormedProgramError, match=message):
        compile(parse(text))


def test_a_fused_kernel_checks_the_shapes_between_its_parts() -> None:
    module = parse("""
n = symbols("n", lower=0)
k = symbols("k", lower=0)

@prim_func
def f(x: Buffer[(2 * k,), f32], y: Out[(2 * k,), f32], k: Int):
    for i in range(2 * k):
        with block("f"):
            v = spatial(2 * k, i)
            y[v] = x[v] + 1.0

@graph_func
def main(x: Tensor[(n,), f32]):
    a: Tensor[(n,), f32] = call_tir(f, x, scalars=(n // 2,))
    b: Tensor[(n,), f32] = call_tir(f, a, scalars=(n // 2,))
    return b
""")
    schedule = Schedule(module)
    schedule.fuse_ops()
    schedule.fuse_tir()
    for fused in (module, schedule.module):
        exe = compile(fused)
        assert exe(ones(6)).tolist() == [3.0] * 6
        with pytest.raises((CheckError, FactError), match="n = 7"):
            exe(ones(7))


def test_the_bounds_of_the_symbols_of_a_called_graph_are_checked() -> None:
    module = parse("""
n = symbols("n", lower=0)
k = symbols("k", lower=0, upper=4)

@graph_func
def inner(x: Tensor[(k,), f32]):
    y: Tensor[(k,), f32] = exp(x)
    return y

@graph_func
def main(x: Tensor[(n,), f32]):
    y: Tensor[(n,), f32] = call(inner, x)
    return y
""")
    exe = compile(module)
    assert exe["main"](ones(4)).shape == (4,)
    with pytest.raises(CheckError, match="n = 5"):
        exe["main"](ones(5))
    with pytest.raises(GraphCheckError, match="k <= 4"):
        run_graph(module, (ones(5),))
