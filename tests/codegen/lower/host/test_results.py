"""Results own their memory independently of the executable."""

from __future__ import annotations

import gc

import numpy as np
import torch

from tilewright.codegen import compile
from tilewright.ir.dtype import bool_, f32, i64
from tilewright.ir.graph.builder import GraphBuilder
from tilewright.ir.graph.nodes import CallTIR, ConstantRef, TensorInfo
from tilewright.ir.loop.builder import Builder
from tilewright.ir.loop.nodes import Binary, Compare
from tilewright.ir.module import Module
from tilewright.ir.symbolic import as_expr, var

from tests.codegen.runtime.helpers import (
    add_kernel,
    chain,
    constant,
    increment_kernel,
    tensor,
)


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def test_results_are_writable_numpy_arrays_and_outlive_the_executable() -> None:
    exe = compile(chain(2))
    got = exe(np.arange(5, dtype=np.float32))
    del exe
    gc.collect()
    assert type(got) is np.ndarray
    assert got.flags.writeable
    assert got.flags.c_contiguous
    assert got.ctypes.data % 64 == 0
    got += 1
    assert np.array_equal(got, np.arange(5) * 3 + 1)


def test_other_libraries_take_results_over() -> None:
    exe = compile(chain(1))
    taken = torch.from_dlpack(exe(ones(4)))
    del exe
    gc.collect()
    assert taken.tolist() == [2.0] * 4


def test_several_results_are_a_tuple_and_none_is_none() -> None:
    n, g = var("n"), GraphBuilder("main")
    x = g.param("x", tensor(n))
    a = g.bind("a", tensor(n), CallTIR("add", (x, x), (tensor(n),)))
    b = g.bind("b", tensor(n), CallTIR("add", (a, x), (tensor(n),)))
    exe = compile(Module().with_functions(add_kernel(), g.finish((b, a), result_names=("b", "a"))))
    first, second = exe(ones(3))
    assert (first.tolist(), second.tolist()) == ([3.0] * 3, [2.0] * 3)
    empty = GraphBuilder("main")
    empty.param("x", tensor(n))
    assert compile(Module().with_functions(empty.finish(())))(ones(3)) is None


def test_parameters_and_constants_are_copied_out() -> None:
    n, g = var("n"), GraphBuilder("main")
    x = g.param("x", tensor(n))
    c = ConstantRef("c", tensor(3))
    func = g.finish((x, c, x))
    weights = np.array([1, 2, 3], np.float32)
    exe = compile(Module().with_functions(func).with_constants({"c": constant(weights)}))
    given = ones(5)
    copied, kept, again = exe(given)
    copied += 1
    again += 2
    kept += 1
    assert given.tolist() == [1.0] * 5
    assert weights.tolist() == [1.0, 2.0, 3.0]
    assert exe(given)[1].tolist() == [1.0, 2.0, 3.0]


def test_one_tensor_returned_twice_is_two_arrays() -> None:
    n, g = var("n"), GraphBuilder("main")
    x = g.param("x", tensor(n))
    h = g.bind("h", tensor(n), CallTIR("add", (x, x), (tensor(n),)))
    exe = compile(Module().with_functions(add_kernel(), g.finish((h, h))))
    first, second = exe(ones(3))
    first += 1
    assert second.tolist() == [2.0] * 3


def test_a_reshaped_result_takes_the_storage_over() -> None:
    n, g = var("n"), GraphBuilder("main")
    x = g.param("x", tensor(2 * n))
    h = g.bind("h", tensor(2 * n), CallTIR("add", (x, x), (tensor(2 * n),)))
    y = g.emit("reshape", h, (n, 2))
    exe = compile(Module().with_functions(add_kernel(), g.finish((y,))))
    assert exe(ones(6)).tolist() == [[2.0, 2.0]] * 3


def test_an_in_place_result_is_the_array_of_the_caller() -> None:
    exe = compile(Module().with_functions(increment_kernel()))
    state = ones(4)
    assert exe(state) is state
    assert state.tolist() == [2.0] * 4
    shared = torch.ones(4)
    exe(shared)
    assert shared.tolist() == [2.0] * 4


def test_a_state_parameter_keeps_its_content() -> None:
    n = var("n")
    g = GraphBuilder("main")
    cache = g.param("cache", tensor(n), "state")
    b = Builder("bump")
    s = b.param("s", (n,), f32, "state")
    b.compute(s, lambda i: Binary("add", b.load(s, i), b.load(s, i)))
    new = g.bind("new", tensor(n), CallTIR("bump", (cache,), (), updates=(0,)))
    g.update(cache, new)
    exe = compile(Module().with_functions(b.finish(), g.finish(())))
    state = exe.new_state(cache=ones(3))
    for _ in range(3):
        assert exe(state=state) is None
    assert state["cache"].tolist() == [8.0] * 3


def test_scalars_empty_tensors_and_booleans() -> None:
    n = var("n", lower=0)
    b = Builder("positive")
    x, y = b.param("x", (n,), i64), b.param("y", (n,), bool_, "out")
    from tilewright.ir.loop.nodes import Number

    b.compute(y, lambda i: Compare("gt", b.load(x, i), Number(0, i64)))
    exe = compile(Module().with_functions(b.finish()))
    assert exe(np.array([-1, 0, 2])).tolist() == [False, False, True]
    assert exe(np.array([], np.int64)).shape == (0,)
    g = GraphBuilder("main")
    s = g.param("s", TensorInfo((), f32))
    scalar = compile(Module().with_functions(g.finish((s,))))(np.float32(3))
    assert scalar.shape == ()
    assert scalar == 3


def test_a_result_with_a_fixed_shape() -> None:
    g = GraphBuilder("main")
    x = g.param("x", tensor(2, 3))
    y = g.emit("reshape", x, (as_expr(6),))
    exe = compile(Module().with_functions(g.finish((y,))))
    assert exe(np.arange(6, dtype=np.float32).reshape(2, 3)).tolist() == [0, 1, 2, 3, 4, 5]
