"""Tests for loops of the graph as native code: sizes, memory, errors, and interrupts."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time

import numpy as np
import pytest

from tilewright import Schedule, compile
from tilewright.codegen.errors import CheckError, StateError, StoppedError
from tilewright.ir.interpreter import run_graph
from tilewright.ir.script import parse

from tests.codegen.runtime.helpers import CountingMemory
from tests.ir.graph.test_loops import SCAN, UPDATED
from tests.waiting import wait_until

HEAD = 'n, m, t, u, v, w, j, k = symbols("n m t u v w j k", lower=0)\n\n'


def check(text: str, *arguments: np.ndarray, **options: object) -> list[np.ndarray]:
    """Compare native code with the interpreter, bit for bit; return the results."""
    module = parse(text)
    exe = compile(module, **options)
    return agree(module, exe, *arguments)


def agree(module: object, exe: object, *arguments: np.ndarray) -> list[np.ndarray]:
    expected = run_graph(module, arguments)
    found = exe(*arguments)
    found = list(found) if isinstance(found, tuple) else [found]
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    return found


@pytest.mark.parametrize("target", ["cpu", "simt"])
def test_scans_and_while_loops_run_at_all_sizes(target: str) -> None:
    module = parse(SCAN)
    exe = compile(module, target=target)
    for n in (0, 1, 3, 17):
        for m in (-1, 0, 1, 4, 9):
            x = np.random.default_rng(n).integers(-4, 5, (n, 4)).astype(np.float32)
            agree(module, exe, x, np.ones(4, np.float32), np.array(m), np.array(0))


NESTED = f"""{HEAD}@graph_func
def main(x: Tensor[(n, 3), f32], limit: Tensor[(), i64], zero: Tensor[(), i64]):
    @loop(k, count=n)
    def y(
        c: Tensor[(t, 3), f32] = x, e: Tensor[(3,), f32] = each(x)
    ) -> Tuple[Tensor[(w, 3), f32], Tensor[(n, 3), f32], Tensor[(n,), i64]]:
        row = reshape(e, (1, 3))
        @loop(j, count=4)
        def inner(
            i: Tensor[(), i64] = zero, d: Tensor[(u, 3), f32] = row
        ) -> Tuple[Tensor[(), i64], Tensor[(v, 3), f32], Tensor[(m,), i64]]:
            more = less(i, limit)
            while more:
                grown = concat(d, row, axis=0)
                i2 = add(i, 1)
                return i2, grown, i2
        trips = inner[0]
        rows = inner[1]
        larger = concat(c, rows, axis=0)
        total = sum(rows, axes=(0,))
        return larger, total, trips
    a = y[0]
    b = y[1]
    c2 = y[2]
    return a, b, c2
"""


def test_nested_loops_with_shapes_that_vary() -> None:
    module = parse(NESTED)
    exe = compile(module)
    for n in (0, 1, 2, 5):
        for limit in (0, 1, 3, 9):
            x = np.arange(3 * n, dtype=np.float32).reshape(n, 3)
            agree(module, exe, x, np.array(limit), np.array(0))


@pytest.mark.parametrize("dtype", ["f32", "f64", "i8", "bf16", "bool"])
def test_slices_of_every_size_are_aligned(dtype: str) -> None:
    text = f"""{HEAD}@graph_func
def main(x: Tensor[(n, m), {dtype}], h: Tensor[(m,), {dtype}]):
    @loop(k, count=n)
    def y(c: Tensor[(m,), {dtype}] = h, e: Tensor[(m,), {dtype}] = each(x)):
        d = maximum(c, e)
        return d, d
    a = y[0]
    b = y[1]
    return a, b
"""
    if dtype == "bool":
        text = text.replace("maximum(", "logical_or(")
    for target in ("cpu", "simt"):
        module = parse(text)
        exe = compile(module, target=target)
        kind = module.graph().params[0].value.info.dtype.numpy
        for n, m in ((0, 3), (1, 1), (3, 5), (4, 16), (2, 0)):
            x = np.random.default_rng(m).integers(0, 2, (n, m)).astype(kind)
            agree(module, exe, x, np.zeros(m, kind))


@pytest.mark.parametrize("steps", [False, True])
def test_a_state_is_updated_in_place_by_each_iteration(*, steps: bool) -> None:
    body = """
    @loop(k, count=3)
    def y(c: Tensor[(8,), f32] = s):
        d = call_tir(put, c, x, updates=(0,))
        return d
    return x, updates(s=y)
"""
    module = parse(UPDATED.replace("BODY", body.strip()))
    sch = Schedule(module)
    if steps:
        sch.default_schedule()
    exe = compile(sch)
    x = np.arange(8, dtype=np.float32)
    exe(x)
    exe(x)
    np.testing.assert_array_equal(exe.state["s"], 6 * x)
    assert all(u.in_place for u in exe.spec("main").updates)


GROWING = f"""{HEAD}@graph_func
def main(x: Tensor[(n, 4), f32], rows: Tensor[(), i64], zero: Tensor[(), i64]):
    @loop(k)
    def y(
        i: Tensor[(), i64] = zero, c: Tensor[(t, 4), f32] = x
    ) -> Tuple[Tensor[(), i64], Tensor[(u, 4), f32], Tensor[(v, 4), f32]]:
        more = less(i, rows)
        while more:
            s = sum(c, axes=(0,))
            r = reshape(s, (1, 4))
            d = concat(c, r, axis=0)
            i2 = add(i, 1)
            return i2, d, s
    cache = y[1]
    sums = y[2]
    return cache, sums
"""


def test_a_growing_cache_frees_its_blocks() -> None:
    memory = CountingMemory()
    exe = compile(parse(GROWING), table=memory.table())
    x = np.ones((2, 4), np.float32)
    for rows in (0, 1, 7, 40):
        cache, sums = exe(x, np.array(rows), np.array(0))
        assert cache.shape == (2 + rows, 4)
        assert sums.shape == (rows, 4)
        del cache, sums
    del exe
    gc.collect()
    assert not memory.live


def test_a_failed_check_in_a_loop_frees_its_blocks() -> None:
    text = GROWING.replace("i2 = add(i, 1)", "i2 = add(i, 1)\n            check_t").replace(
        "            check_t\n", "            f = match_cast((t,), Shape[(2,)])\n"
    )
    memory = CountingMemory()
    exe = compile(parse(text), table=memory.table())
    x = np.ones((2, 4), np.float32)
    exe(x, np.array(1), np.array(0))
    with pytest.raises(CheckError):
        exe(x, np.array(5), np.array(0))
    del exe
    gc.collect()
    assert not memory.live


ENDLESS = f"""{HEAD}@graph_func
def main(x: Tensor[(4,), f32], s: State[Tensor[(4,), f32]]):
    @loop(k)
    def y(c: Tensor[(4,), f32] = x):
        total = sum(c, axes=(0,))
        more = less(total, 1e30)
        while more:
            d = relu(c)
            return d
    return y, updates(s=y)
"""


def test_ctrl_c_ends_a_loop_without_a_bound() -> None:
    exe = compile(parse(ENDLESS))
    x = np.ones(4, np.float32)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    started = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        exe(x)
    assert time.monotonic() - started < 20
    with pytest.raises(StateError, match="interrupted"):
        exe(x)
    state = exe.new_state()
    large = np.full(4, 1e30, np.float32)
    np.testing.assert_array_equal(exe(large, state=state), large)


def test_a_call_of_another_thread_is_stopped() -> None:
    exe = compile(parse(ENDLESS.replace(", s: State[Tensor[(4,), f32]]", "").replace(
        ", updates(s=y)", "")))  # fmt: skip
    found: list[BaseException] = []

    def run() -> None:
        try:
            exe(np.ones(4, np.float32))
        except StoppedError as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()

    def ended() -> bool:
        exe["main"].stop()
        thread.join(0.1)
        return not thread.is_alive()

    wait_until(ended, timeout=60)
    assert "the call was stopped in loop 'y'" in str(found[0])
