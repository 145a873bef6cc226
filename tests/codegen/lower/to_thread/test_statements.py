"""Maxima and minima of many terms: the result so far is the operand that is not tested for NaN."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.lower import lower_kernel
from tilewright.ir.dtype import dtype
from tilewright.ir.interpreter import run_prim
from tilewright.ir.script import parse
from tilewright.ir.thread.nodes import Binary, Load, Store
from tilewright.ir.thread.visit import walk
from tilewright.schedules import Schedule
from tilewright.target.target import Target

from tests.codegen.kernels import ALL_LEVELS, LEVELS, build

TERMS = """
@prim_func
def f(x: Buffer[({rows}, {terms}), {element}], y: Out[({rows},), {element}]):
    for {first}:
        for {second}:
            with block("y"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = {init}
                y[vi] = {op}({operands})
"""
ORDERS = ("rows", "columns")


def program(op, *, rows=3, terms=5, element="f32", order="rows", swapped=False):
    """Return a maximum or minimum per row."""
    loops = [f"i in range({rows})", f"k in range({terms})"]
    first, second = loops if order == "rows" else loops[::-1]
    operands = "x[vi, vk], y[vi]" if swapped else "y[vi], x[vi, vk]"
    init = "-inf" if op == "max" else "inf"
    return parse(
        TERMS.format(
            rows=rows, terms=terms, element=element, first=first, second=second, op=op,
            operands=operands, init=init,
        )
    )  # fmt: skip


def scheduled(module, level):
    """Return the kernel by its default rule."""
    sch = Schedule(module, Target("cpu", features=(level,)))
    sch.default_schedule()
    (kernel,) = sch.module.prims
    return kernel


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("op", ["max", "min"])
def test_a_term_that_is_nan_is_the_result(op, order, level) -> None:
    """At each position, and with infinities of both signs and zeros around it."""
    terms = 19
    kernel = scheduled(program(op, rows=terms, terms=terms, order=order), level)
    x = np.random.default_rng(1).integers(-9, 10, (terms, terms)).astype(np.float32)
    x[3], x[5], x[7, ::2] = -np.inf, np.inf, -0.0
    plain = x.copy()
    np.fill_diagonal(x, np.nan)
    run = build(kernel, level)
    for given in (x, plain):
        found, wanted = np.zeros(terms, np.float32), np.zeros(terms, np.float32)
        assert run(given, found) == 0
        run_prim(kernel, [given, wanted])
        np.testing.assert_array_equal(found, wanted)
    assert np.isnan(run_of(run, x)).all()


def run_of(run, x) -> np.ndarray:
    """Return the result for an array."""
    found = np.zeros(len(x), x.dtype)
    assert run(x, found) == 0
    return found


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("element", ["f64", "f16", "bf16"])
def test_dtypes(element, level) -> None:
    kernel = scheduled(program("max", rows=2, terms=37, element=element), level)
    kind = dtype(element).numpy
    x = np.random.default_rng(2).integers(-9, 10, (2, 37)).astype(kind)
    x[1, 36] = np.nan
    found, wanted = np.zeros(2, kind), np.zeros(2, kind)
    assert build(kernel, level)(x, found) == 0
    run_prim(kernel, [x, wanted])
    np.testing.assert_array_equal(found.astype(np.float32), wanted.astype(np.float32))


@pytest.mark.usefixtures("every_level")
@pytest.mark.parametrize("level", ALL_LEVELS)
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("op", ["max", "min"])
def test_the_result_so_far_is_the_right_operand(op, swapped, level) -> None:
    func = program(op, swapped=swapped).prims[0]
    body = lower_kernel(func, Target("cpu", features=(level,))).function.body
    found = [
        (s.address.base, s.value.left, s.value.right)
        for s in walk(body)
        if isinstance(s, Store) and isinstance(s.value, Binary) and s.value.op == op
    ]
    assert found
    for base, left, right in found:
        assert isinstance(right, Load)
        assert right.address.base is base
        assert not (isinstance(left, Load) and left.address.base is base)
