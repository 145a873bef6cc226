"""Concurrent calls of executables, providers of parallel loops, and forked child processes."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.codegen.runtime.table import (
    ProviderError,
    RuntimeTable,
    openmp_runtime,
)
from tilewright.ir.dtype import f32
from tilewright.ir.loop.builder import Builder
from tilewright.ir.loop.nodes import Binary, For, PrimFunc
from tilewright.ir.module import Module
from tilewright.ir.symbolic import var
from tilewright.target.host import available_threads
from tilewright.target.target import Target

from tests.codegen.runtime.helpers import CountingMemory, chain, matmul_kernel


def parallel_kernel() -> PrimFunc:
    """Return a kernel of y[i, j] = x[i, j] * x[i, j] over parallel rows."""
    from dataclasses import replace

    n, m = var("n", lower=0), var("m", lower=0)
    b = Builder("square")
    x, y = b.param("x", (n, m), f32), b.param("y", (n, m), f32, "out")
    b.compute(y, lambda i, j: Binary("mul", b.load(x, i, j), b.load(x, i, j)))
    func = b.finish()
    assert isinstance(func.body, For)
    return replace(func, body=replace(func.body, kind="parallel"))


def test_eight_threads_call_with_different_shapes() -> None:
    exe = compile(chain(8))

    def work(seed: int) -> bool:
        for k in range(200):
            x = np.full((seed * 37 + k) % 300, seed + 1, np.float32)
            if not np.array_equal(exe(x), x * 9):
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_more_concurrent_callers_than_workspaces() -> None:
    """All 24 calls run at the same time, 8 of them in temporary workspaces."""
    count = 24
    memory, barrier = CountingMemory(), threading.Barrier(count, timeout=20)
    arrived: set[int] = set()
    allocate = memory.allocate

    def waiting(size: int, alignment: int) -> int:
        thread = threading.get_ident()
        if thread not in arrived:
            arrived.add(thread)
            barrier.wait()
        return allocate(size, alignment)

    memory.allocate = waiting  # type: ignore[method-assign]
    exe = compile(chain(4), table=memory.table())
    with ThreadPoolExecutor(count) as pool:
        x = np.ones(50, np.float32)
        results = list(pool.map(lambda _: exe(x), range(count)))
    assert all(r.tolist() == [5.0] * 50 for r in results)
    del results
    exe.trim()
    assert not memory.live


def test_a_parallel_kernel_called_from_many_threads_starts_few_threads() -> None:
    exe = compile(Module().with_functions(parallel_kernel()), Target("cpu", threads=2))
    x = np.random.default_rng(0).random((512, 512), np.float32)
    before = len(list(Path("/proc/self/task").iterdir()))
    peak = before

    def work(_: int) -> bool:
        nonlocal peak
        ok = all(np.array_equal(exe(x), x * x) for _ in range(20))
        peak = max(peak, len(list(Path("/proc/self/task").iterdir())))
        return ok

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))
    assert peak - before <= 8 + 3


def test_providers_are_selected_by_name() -> None:
    assert RuntimeTable(threads=4, parallel="serial").threads == 1
    assert RuntimeTable(threads=3, parallel="openmp").threads == 3
    assert RuntimeTable(threads=5, parallel="pool").threads == 5
    assert RuntimeTable().threads == available_threads()
    assert openmp_runtime() is not None


def test_a_missing_openmp_runtime_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tilewright.codegen.runtime import table

    monkeypatch.setattr(table, "openmp_runtime", lambda: None)
    with pytest.raises(ProviderError, match="requires an OpenMP runtime"):
        RuntimeTable(parallel="openmp")
    assert RuntimeTable(threads=4).threads == 4


def test_without_posix_threads_there_is_no_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewright.codegen.runtime import table

    monkeypatch.setattr(table, "process_pool", lambda: None)
    with pytest.raises(ProviderError, match="requires POSIX threads"):
        RuntimeTable(parallel="pool")
    assert RuntimeTable(threads=4).threads == 1


def test_a_custom_provider() -> None:
    import ctypes

    calls: list[int] = []
    body_type = ctypes.CFUNCTYPE(
        ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64
    )
    entry_type = ctypes.CFUNCTYPE(
        ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
    )

    def backwards(_context: int, body: int, stop: int, environment: int) -> int:
        calls.append(stop)
        run = body_type(body)
        return max((run(environment, k, k + 1, 0) for k in reversed(range(stop))), default=0)

    native = entry_type(backwards)
    address = ctypes.cast(native, ctypes.c_void_p).value or 0
    table = RuntimeTable(threads=2, parallel=address)
    exe = compile(Module().with_functions(parallel_kernel()), Target("cpu", threads=2), table=table)
    x = np.random.default_rng(0).random((300, 999), np.float32)
    assert np.array_equal(exe(x), x * x)
    assert calls == [300]


def test_a_child_forked_after_a_parallel_call_has_its_own_workers() -> None:
    script = textwrap.dedent("""
        import os, signal
        import numpy as np
        from tests.codegen.runtime.test_executable import parallel_kernel
        from tests.codegen.runtime.helpers import chain
        from tilewright.codegen import compile
        from tilewright.ir.module import Module
        from tilewright.target.target import Target

        exe = compile(Module().with_functions(parallel_kernel()), Target("cpu", threads=2))
        x = np.random.default_rng(0).random((600, 600), np.float32)
        assert np.array_equal(exe(x), x * x)
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            same = all(np.array_equal(exe(x), x * x) for _ in range(3))
            again = compile(chain(3))(np.ones(4, np.float32)).tolist() == [4.0] * 4
            few = os.listdir("/proc/self/task")
            os._exit(0 if same and again and len(few) == 2 else 1)
        _, status = os.waitpid(child, 0)
        assert np.array_equal(exe(x), x * x)
        raise SystemExit(os.waitstatus_to_exitcode(status))
    """)
    root = Path(__file__).parents[3]
    command = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(
        command, cwd=root, timeout=60, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr[-2000:]) == (0, "")


def test_calls_release_the_gil() -> None:
    """Another Python thread runs during a call, which is possible only without the GIL."""
    exe = compile(Module().with_functions(matmul_kernel()), Target("cpu", threads=1))
    x = np.ones((1200, 1200), np.float32)
    ticks, most, stop = 0, 0, threading.Event()

    def count() -> None:
        nonlocal ticks
        while not stop.is_set():
            ticks += 1
            stop.wait(0.0005)

    thread = threading.Thread(target=count)
    thread.start()
    for _ in range(20):
        before = ticks
        exe(x, x)
        most = max(most, ticks - before)
        if most > 3:
            break
    stop.set()
    thread.join()
    assert most > 3
