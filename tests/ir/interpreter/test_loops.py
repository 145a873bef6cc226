"""The interpreter of loop-level functions compared with NumPy, and its errors."""

from dataclasses import replace

import numpy as np
import pytest

from tilewright.ir.dtype import bf16, f32, i64
from tilewright.ir.interpreter import OutOfBoundsError, call_prim, run_prim
from tilewright.ir.interpreter.loops import InterpreterInputError
from tilewright.ir.loop.builder import Builder
from tilewright.ir.loop.nodes import (
    Binary,
    Condition,
    Index,
    Let,
    Load,
    Number,
    Store,
    Unary,
    Where,
)
from tilewright.ir.loop.visit import Rebuilder
from tilewright.ir.script import parse
from tilewright.ir.symbolic import Facts, as_expr, var


def matmul():
    b = Builder("matmul")
    n, k, m = (var(s, lower=0) for s in "nkm")
    x, y = b.param("A", (n, k), f32), b.param("B", (k, m), f32)
    z = b.param("C", (n, m), f32, "out")
    b.reduce(
        z, (k,), lambda i, j, r: Binary("mul", b.load(x, i, r), b.load(y, r, j)), name="matmul"
    )
    return b.finish()


@pytest.mark.parametrize(("n", "k", "m"), [(3, 4, 5), (1, 1, 1), (2, 0, 3), (0, 3, 2)])
def test_matmul_at_every_size(n, k, m):
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (n, k)).astype(np.float32)
    b = rng.integers(-4, 5, (k, m)).astype(np.float32)
    c = np.full((n, m), np.nan, np.float32)
    run_prim(matmul(), [a, b, c])
    if k:
        np.testing.assert_array_equal(c, a @ b)


def test_call_returns_the_outputs_and_preserves_inputs():
    a, b = np.eye(3, dtype=np.float32), np.arange(9, dtype=np.float32).reshape(3, 3)
    (c,) = call_prim(matmul(), [a, b])
    np.testing.assert_array_equal(c, b)
    np.testing.assert_array_equal(a, np.eye(3))


def test_precise_computes_in_float64():
    a = np.full((1, 3), 0.1)
    (c,) = call_prim(matmul(), [a, a.T], precise=True)
    assert c.dtype == np.float64
    np.testing.assert_allclose(c, a @ a.T, rtol=1e-15)


def test_temporaries_start_as_garbage():
    b = Builder("reads_unwritten")
    out = b.param("out", (2,), f32, "out")
    scratch = b.temporary("scratch", (2,), f32)
    b.compute(out, lambda i: b.load(scratch, i))
    (result,) = call_prim(b.finish(), [], {})
    assert np.isnan(result).all()


def test_where_evaluates_the_selected_operand_only():
    b, n = Builder("shift"), var("n", lower=1)
    x, y = b.param("x", (n,), f32), b.param("y", (n,), f32, "out")
    b.compute(y, lambda i: Where(Condition(i >= 1), b.load(x, i - 1), Number(0.0, f32)))
    (result,) = call_prim(b.finish(), [np.array([1, 2, 3], np.float32)])
    np.testing.assert_array_equal(result, [0, 1, 2])


def test_index_and_bfloat16():
    b = Builder("positions")
    y = b.param("y", (4,), bf16, "out")
    b.compute(y, lambda i: Index(i * 3, bf16))
    (result,) = call_prim(b.finish(), [])
    np.testing.assert_array_equal(result.astype(np.float32), [0, 3, 6, 9])


def test_out_of_bounds_names_buffer_axis_and_extent():
    b, n = Builder("beyond"), var("n", lower=1)
    x, y = b.param("x", (n,), f32), b.param("y", (n,), f32, "out")
    b.compute(y, lambda i: b.load(x, i + 1))
    with pytest.raises(OutOfBoundsError, match=r"index 3 of axis 0 is not in \[0, 3\)") as caught:
        call_prim(b.finish(), [np.zeros(3, np.float32)])
    assert "'x'" in str(caught.value)


def test_negative_indices_do_not_wrap():
    b, n = Builder("before"), var("n", lower=1)
    x, y = b.param("x", (n,), f32), b.param("y", (n,), f32, "out")
    b.compute(y, lambda i: b.load(x, i - 1))
    with pytest.raises(OutOfBoundsError, match="index -1"):
        call_prim(b.finish(), [np.zeros(3, np.float32)])


def test_a_binding_outside_of_its_domain_is_caught():
    func = matmul()

    class Shift(Rebuilder):
        def iter_var(self, iter_var):
            return replace(iter_var, binding=iter_var.binding + 1)

    broken = replace(func, body=Shift().statement(func.body))
    with pytest.raises(OutOfBoundsError, match="value 2 of an iteration variable"):
        call_prim(broken, [np.zeros((2, 2), np.float32)] * 2)


def take(mode):
    b, n, k = Builder("take"), var("n", lower=1), var("k", lower=1)
    table, ids = b.param("table", (n,), f32), b.param("ids", (k,), i64)
    out = b.param("out", (k,), f32, "out")
    i, row = var("i", lower=0), var("row", lower=0)
    from tilewright.ir.loop.nodes import For

    store = Store(out, (i,), Load(table, (row,)))
    body = Let(row, as_expr(0), n, Load(ids, (i,)), mode, store)
    b.statement(For(b.mint(), i, k, body))
    return b.finish()


def test_let_checks_or_clamps():
    table = np.array([10, 20, 30], np.float32)
    good, bad = np.array([2, 0]), np.array([1, 7])
    np.testing.assert_array_equal(call_prim(take("checked"), [table, good])[0], [30, 10])
    np.testing.assert_array_equal(call_prim(take("clamped"), [table, bad])[0], [20, 30])
    with pytest.raises(OutOfBoundsError, match=r"(?s)value 7 is not in \[0, 3\).*variable 'row'"):
        call_prim(take("checked"), [table, bad])


def test_an_index_out_of_range_is_reported_with_its_function_and_block():
    text = """
@prim_func
def take(table: Buffer[(3,), f32], ids: Buffer[(2,), i64], out: Out[(2,), f32]):
    for i in range(2):
        with block("chosen"):
            vi = spatial(i)
            with checked(ids[vi], 0, 3) as row:
                out[vi] = table[row]
"""
    with pytest.raises(OutOfBoundsError) as caught:
        call_prim(parse(text).prim("take"), [np.zeros(3, np.float32), np.array([1, 7])])
    assert caught.value.where == "function 'take', block 'chosen', variable 'row'"
    assert "value 7 is not in [0, 3)" in str(caught.value)
    assert "with checked(ids[vi], 0, 3) as row:" in str(caught.value)


def test_scalars_by_name():
    b, n = Builder("ramp"), var("n", lower=0)
    y = b.param("y", (n,), f32, "out")
    b.scalar(n)
    b.compute(y, lambda i: Unary("neg", Index(i, f32)))
    np.testing.assert_array_equal(call_prim(b.finish(), [], {"n": 3})[0], [0, -1, -2])
    with pytest.raises(
        InterpreterInputError, match="no array shape or integer argument determines n"
    ):
        call_prim(b.finish(), [])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([np.zeros((2, 3), np.float32)], "number of arrays: expected 3, got 1"),
        (
            [np.zeros((2, 3)), np.zeros((3, 2)), np.zeros((2, 2))],
            "expected dtype float32, got float64",
        ),
        (
            [np.zeros(s, np.float32) for s in ((2, 3), (4, 2), (2, 2))],
            "dimension 0: expected k = 3, got 4",
        ),
        ([np.zeros(s, np.float32) for s in ((2,), (4, 2), (2, 2))], "expected rank 2, got rank 1"),
    ],
)
def test_wrong_arrays_are_named(arrays, message):
    with pytest.raises(InterpreterInputError, match=message):
        run_prim(matmul(), arrays)


def test_facts_hold_at_entry():
    func = matmul()
    n = func.buffer_params[0].shape[0]
    strict = replace(func, facts=Facts().assume(n >= 4))
    with pytest.raises(InterpreterInputError, match="fact n >= 4 does not hold for n = 2"):
        call_prim(strict, [np.zeros((2, 2), np.float32)] * 2)
