"""Operators of users, whose semantics are programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.errors import TilewrightError
from tilewright.ir.graph.operators import OPERATORS, custom_operator
from tilewright.ir.graph.operators.errors import DuplicateOperatorError, OperatorDefinitionError
from tilewright.ir.interpreter import run_graph
from tilewright.ir.script import parse, to_text
from tilewright.ir.script.errors import ScriptTypeError
from tilewright.ir.script.printer.graph import FORMS
from tilewright.ir.verify import IllFormedProgramError

ROWS = """
n, m = symbols("n m", lower=0)

@prim_func
def custom_rows(
    x: Buffer[(n, m), f32], w: Buffer[(m,), f32], y: Out[(n, m), f32], s: Out[(n,), f32]
):
    for i in range(n):
        s[i] = 1.0
        for j in range(m):
            y[i, j] = x[i, j] * w[j] {op} 1.0
"""


PROGRAM = """
b = symbols("b", lower=0)

@graph_func
def main(x: Tensor[(b, 3), f32], w: Tensor[(3,), f32]):
    t = relu(x)
    r = custom_rows(t, w)
    y = r[0]
    s = r[1]
    z = exp(y)
    return z, s
"""


def test_one_compilation_serves_all_sizes() -> None:
    custom_operator(ROWS.format(op="+"))
    module = parse(PROGRAM)
    assert to_text(parse(to_text(module))) == to_text(module)
    exe: Any = tw.compile(module)
    rng = np.random.default_rng(0)
    for n in (0, 1, 4):
        x, w = rng.standard_normal((n, 3)).astype(np.float32), rng.random(3, np.float32)
        expected = np.exp(np.maximum(x, 0) * w + 1), np.ones(n)
        for results in (exe(x, w), run_graph(module, [x, w])):
            for have, want in zip(results, expected, strict=True):
                np.testing.assert_allclose(np.asarray(have), want, rtol=1e-5)


def test_a_new_definition_replaces_the_old_one() -> None:
    x, w = np.ones((1, 3), np.float32), np.ones(3, np.float32)
    for op, value in (("+", 2.0), ("-", 0.0)):
        custom_operator(ROWS.format(op=op))
        exe: Any = tw.compile(parse(PROGRAM))
        np.testing.assert_allclose(exe(x, w)[0], np.full((1, 3), np.exp(value)), rtol=1e-6)
    assert "custom_rows" not in OPERATORS


def test_wrong_operands_are_named() -> None:
    custom_operator(ROWS.format(op="+"))
    with pytest.raises(ScriptTypeError, match="expected rank 1, got rank 2"):
        parse(PROGRAM.replace("w: Tensor[(3,), f32]", "w: Tensor[(3, 1), f32]"))
    with pytest.raises(ScriptTypeError, match=r"4 != 3|3 != 4"):
        parse(PROGRAM.replace("w: Tensor[(3,), f32]", "w: Tensor[(4,), f32]"))
    with pytest.raises(ScriptTypeError, match="expected dtype f32, got f64"):
        parse(PROGRAM.replace("w: Tensor[(3,), f32]", "w: Tensor[(3,), f64]"))


def test_a_program_that_writes_its_input_is_rejected_by_name() -> None:
    text = """
@prim_func
def custom_bump(x: InOut[(4,), f32], y: Out[(4,), f32]):
    for i in range(4):
        x[i] = x[i] + 1.0
        y[i] = 0.0
"""
    with pytest.raises(OperatorDefinitionError, match="the program writes its input 'x'"):
        custom_operator(text)
    with pytest.raises(IllFormedProgramError, match="'x'"):
        custom_operator(text.replace("InOut", "Buffer"))


def test_names_of_operators_are_reserved() -> None:
    text = ROWS.format(op="+").replace("custom_rows", "relu")
    with pytest.raises(DuplicateOperatorError, match="'relu' is an operator of Tilewright"):
        custom_operator(text)


@pytest.mark.parametrize("name", sorted(FORMS))
def test_an_operator_may_have_the_name_of_another_right_hand_side(name: str) -> None:
    custom_operator(f"""
@prim_func
def {name}(x: Buffer[(4,), f32], y: Out[(4,), f32]):
    for i in range(4):
        y[i] = x[i] + 5.0
""")
    text = f'@graph_func\ndef main(x: Tensor[(4,), f32]):\n    y = op("{name}", x)\n    return y\n'
    module = parse(text)
    assert to_text(parse(to_text(module))) == to_text(module)
    assert np.asarray(run_graph(module, [np.ones(4, np.float32)])[0]).tolist() == [6.0] * 4


def test_definitions_that_are_not_one_program() -> None:
    with pytest.raises(OperatorDefinitionError, match="got int"):
        custom_operator(3)
    with pytest.raises(OperatorDefinitionError, match="expected one loop-level function"):
        custom_operator("@graph_func\ndef main(x: Tensor[(3,), f32]):\n    return x\n")


OUTER = """
n, k = symbols("n k", lower=0)

@prim_func
def custom_grid(x: Buffer[(n,), f32], y: Out[(n, k), f32]):
    for i in range(n):
        for j in range(k):
            y[i, j] = x[i]
"""


def test_a_shape_rule_determines_the_results() -> None:
    with pytest.raises(OperatorDefinitionError, match="operands do not determine k"):
        custom_operator(OUTER)
    custom_operator(OUTER, shape=lambda x: (x[0], x[0] * 2))
    module = parse('n = symbols("n", lower=0)\n@graph_func\ndef main(x: Tensor[(n,), f32]):\n'
                   "    y = custom_grid(x)\n    return y\n")  # fmt: skip
    exe: Any = tw.compile(module)
    x = np.arange(3, dtype=np.float32)
    for found in (exe(x), run_graph(module, [x])[0]):
        assert np.array_equal(np.asarray(found), np.repeat(x[:, None], 6, 1))
    custom_operator(OUTER, shape=lambda x: (x[0],))
    with pytest.raises(ScriptTypeError, match="the shape rule"):
        parse(to_text(module).replace(": Tensor[(n, n * 2), f32]", ""))


SIZED = 'n, k = symbols("n k", lower=0)\n\n@prim_func\n'
USED = """
n = symbols("n", lower=0)

@graph_func
def main(x: Tensor[(n,), f32]):
    y = {}(x)
    return y
"""


@pytest.mark.parametrize("found", [5, None, "n", [None], ((1,), (2,))])
def test_a_shape_rule_that_returns_no_shape_is_named(found: Any) -> None:
    custom_operator(OUTER, shape=lambda x: found)
    with pytest.raises(ScriptTypeError, match="the shape rule returned"):
        parse(USED.format("custom_grid"))


@pytest.mark.parametrize("result", ["n", "2 * n + 1"])
def test_a_shape_rule_that_disagrees_with_the_program_is_named(result: str) -> None:
    program = (
        SIZED
        + f"""
def custom_sized(x: Buffer[(n,), f32], y: Out[({result},), f32]):
    for i in range({result}):
        y[i] = 1.0
"""
    )
    custom_operator(program, shape=lambda x: (x[0] + 3,))
    message = "the shape rule states a result 'y' with another shape"
    if result == "n":
        with pytest.raises(ScriptTypeError, match=message):
            parse(USED.format("custom_sized"))
        return
    module = parse(USED.format("custom_sized"))  # equal for n = 2
    exe: Any = tw.compile(module)
    assert exe(np.ones(2, np.float32)).shape == (5,)
    for run in (exe, lambda x: run_graph(module, [x])):
        with pytest.raises(TilewrightError, match=message):
            run(np.ones(3, np.float32))


def test_a_negative_size_of_a_result_is_named() -> None:
    custom_operator(
        SIZED
        + """
def custom_rest(x: Buffer[(n,), f32], y: Out[(n - 3,), f32]):
    for i in range(n - 3):
        y[i] = x[i + 3]
"""
    )
    module = parse(USED.format("custom_rest"))
    exe: Any = tw.compile(module)
    for run in (exe, lambda x: run_graph(module, [x])[0]):
        assert np.asarray(run(np.ones(3, np.float32))).shape == (0,)
        with pytest.raises(TilewrightError, match="a size of the result is negative"):
            run(np.ones(2, np.float32))


@pytest.mark.parametrize(("size", "bounds"), [("0", "lower=1"), ("5", "upper=4")])
def test_a_size_outside_of_the_declared_bounds_is_rejected(size: str, bounds: str) -> None:
    custom_operator(f"""
n = symbols("n", {bounds})

@prim_func
def custom_bounded(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        y[i] = x[n - 1 - i]
""")
    text = f"""
@graph_func
def main(x: Tensor[({size},), f32]):
    y = custom_bounded(x)
    return y
"""
    with pytest.raises(ScriptTypeError, match=f"symbol 'n' = {size}: n"):
        parse(text)


SCALED = """
n = symbols("n", lower=0)

@prim_func
def custom_scaled(
    x: Buffer[(n,), f64], s: Buffer[(1,), f64], y: Out[(n,), f64], z: Out[(n,), f64]
):
    for i in range(n):
        y[i] = x[i] * s[0]
        z[i] = x[i] * x[i]
"""
LOSS = """
n = symbols("n", lower=0)

@graph_func
def main(x: Tensor[(n,), f64], s: Tensor[(1,), f64]):
    p = custom_scaled(x, s)
    y = p[0]
    z = p[1]
    t = add(y, z)
    return t
"""


def scaled_gradient(graph: Any, x: Any, s: Any, _y: Any, _z: Any, dy: Any, dz: Any) -> Any:
    square = graph.emit("multiply", graph.emit("multiply", dz, x), 2.0)
    dx = graph.emit("add", graph.emit("multiply", dy, s), square)
    ds = graph.emit("sum", graph.emit("multiply", dy, x), keepdims=True)
    return dx, ds


def test_a_gradient_is_part_of_the_definition() -> None:
    custom_operator(SCALED, gradient=scaled_gradient)
    sch = tw.Schedule(parse(LOSS))
    sch.gradient()
    exe: Any = tw.compile(sch)
    rng = np.random.default_rng(0)
    for n in (0, 1, 5):
        x, s, c = rng.random(n), rng.random(1), rng.random(n)
        found = exe["main_gradient"](x, s, c)
        interpreted = run_graph(sch.module, [x, s, c], function="main_gradient")
        for results in (found, interpreted):
            np.testing.assert_allclose(np.asarray(results[1]), c * (s + 2 * x), rtol=1e-12)
            np.testing.assert_allclose(np.asarray(results[2]), [np.sum(c * x)], rtol=1e-12)


@pytest.mark.parametrize(
    ("gradient", "message"),
    [
        (None, "operations without a gradient: custom_scaled"),
        (lambda _g, *rest: rest[-1], r"expected one cotangent per operand \(2\), got 1"),
        (lambda _g, *rest: (rest[-1], 1.0), "cotangent of 's' is not a value of the graph"),
        (
            lambda g, *rest: (g.emit("cast", rest[-1], dtype="f32"), rest[-1]),
            "the cotangent of 'x' differs from it",
        ),
    ],
)
def test_wrong_gradients_are_named(gradient: Any, message: str) -> None:
    custom_operator(SCALED, gradient=gradient)
    with pytest.raises(tw.TilewrightError, match=message):
        tw.Schedule(parse(LOSS)).gradient()
