"""Tests for loops of the graph as native code: sizes, memory, errors, and interrupts."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright import Schedule, Target, compile, export
from tilewright.codegen.errors import CheckError, StateError, StoppedError
from tilewright.ir.interpreter import run_graph
from tilewright.ir.script import parse

from tests.codegen.export.test_package import loaded, loader_of
from tests.codegen.export.test_shared import PROGRAMS
from tests.codegen.graph_loops import STATES, TEXT, Calls, c_program, expected_calls
from tests.codegen.runtime.cuda.pretended import FakeDriver, compiler, loaded as pretended
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


PAIR = f"""{HEAD}@graph_func
def main(x: Tensor[(n, 4), f32], rows: Tensor[(), i64]):
    zero = full((), 0, dtype="i64")
    @loop(k)
    def y(
        i: Tensor[(), i64] = zero, a: Tensor[(t, 4), f32] = x, b: Tensor[(w, 4), f32] = x
    ) -> Tuple[Tensor[(), i64], Tensor[(u, 4), f32], Tensor[(v, 4), f32]]:
        more = less(i, rows)
        while more:
            r = multiply(a, 2.0)
            d = concat(a, r, axis=0)
            i2 = add(i, 1)
            NEXT
    first = y[1]
    second = y[2]
    return first, second
"""


LINE = "\n            "


@pytest.mark.parametrize(
    ("following", "blocks"),
    [
        ("return i2, d, b", 1),
        ("return i2, d, a", 2),  # `a` is copied, because its block is freed
        ("return i2, b, d", 2),
        ("return i2, d, d", 3),  # one storage cannot be two blocks
        (f"e = concat(b, x, axis=0){LINE}return i2, d, e", 1),  # `b` has capacity
        (f"f = reshape(d, (8 * t,)){LINE}g = reshape(f, (2 * t, 4)){LINE}return i2, g, b", 1),
        ("return i2, d, r", 2),
    ],
)  # fmt: skip
def test_a_next_value_is_copied_only_if_its_storage_is_used_otherwise(
    following: str, blocks: int
) -> None:
    module = parse(PAIR.replace("NEXT", following))
    memory = CountingMemory()
    exe = compile(module, table=memory.table())
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    counts: list[int] = []
    for rows in (0, 1, 2, 4, 5):
        agree(module, exe, x, np.array(rows))
        before = memory.allocations
        exe(x, np.array(rows))
        counts.append(memory.allocations - before)
    assert counts[4] - counts[3] == blocks
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


FORMS = parse(TEXT)


@pytest.fixture(scope="module")
def wanted() -> Calls:
    return list(expected_calls(FORMS))


def compare(
    name: str, arguments: Sequence[np.ndarray], found: object, wanted: Sequence[np.ndarray]
) -> None:
    made = list(found) if isinstance(found, list | tuple) else [found]
    where = f"{name} of {[a.tolist() for a in arguments]}"
    assert len(made) == len(wanted), where
    for a, b in zip(made, wanted, strict=True):
        assert np.shape(a) == b.shape, where
        np.testing.assert_array_equal(a, b, err_msg=where)


def on_host(found: Any) -> np.ndarray:
    """Return a copy of a tensor, which may be on a device."""
    return found.numpy() if hasattr(found, "numpy") else np.array(found)


def run_all(model: Any, state: Any, wanted: Calls) -> None:
    for name, arguments, results in wanted:
        own = {"state": state} if name in STATES else {}
        found = getattr(model, name)(*arguments, **own)
        made = list(found) if isinstance(found, tuple) else [found]
        made += [on_host(state[STATES[name]])] if own else []
        compare(name, arguments, made, results)


class Functions:
    """The functions of an executable as methods."""

    def __init__(self, exe: Any) -> None:
        self.exe = exe

    def __getattr__(self, name: str) -> object:
        return self.exe[name]


@pytest.mark.parametrize("target", ["cpu", "simt"])
def test_loops_of_all_forms_agree_with_the_interpreter(target: str, wanted: Calls) -> None:
    exe = compile(FORMS, target=target)
    run_all(Functions(exe), exe.new_state(n=3), wanted)


@pytest.fixture
def driver() -> Iterator[FakeDriver]:
    """The fake driver after a reset."""
    fake = pretended()
    fake.reset()
    yield fake
    fake.reset()


def test_loops_run_on_a_device_whose_memory_the_host_cannot_access(
    driver: FakeDriver, wanted: Calls
) -> None:
    driver.emulate(FORMS)
    exe = compile(FORMS, target=Target("cuda", arch="sm_80"))
    run_all(Functions(exe), exe.new_state(n=3), wanted)
    assert any(call.startswith("launch") for call in driver.calls)


def test_loops_run_in_an_exported_library(tmp_path: Path, wanted: Calls) -> None:
    model = loaded(export(FORMS, tmp_path / "loops", name="loops").directory, "loops")
    run_all(model, model.new_state(n=3), wanted)


def test_blocks_of_loops_are_counted_as_workspaces(tmp_path: Path) -> None:
    """Many calls with blocks fit the limit, also after a call that exceeds it in an iteration."""
    made = export(parse(GROWING), tmp_path / "loops", name="loops").directory
    model = loader_of(made, "loops").load(arena_limit=20_000)
    x, zero = np.ones((2, 4), np.float32), np.array(0)
    for _ in range(100):
        cache, sums = model.main(x, np.array(7), zero)
        assert (cache.shape, sums.shape) == ((9, 4), (7, 4))
        with pytest.raises(Exception, match=r"cannot allocate \d+ bytes of workspace") as caught:
            model.main(x, np.array(1000), zero)
        assert caught.value.code == 22
    model.close()


def test_loops_run_in_a_c_program_with_the_address_sanitizer(tmp_path: Path, wanted: Calls) -> None:
    """The sanitizer checks each address that the library frees."""
    made = export(FORMS, tmp_path / "loops", kind="static", name="loops").directory
    (made / "main.c").write_text(c_program(wanted))
    (made / "arguments").write_bytes(b"".join(a.tobytes() for _, given, _ in wanted for a in given))
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsanitize=address", f"-I{made}"]
    parts = [str(made / "main.c"), str(made / "libloops.a"), "-lm", "-o", str(made / "program")]
    subprocess.run([*compiler(), *flags, *parts], check=True)
    files = [made / name for name in ("loops.safetensors", "arguments", "results")]
    own = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}  # the program counts blocks itself
    done = subprocess.run(
        [made / "program", *files], capture_output=True, text=True, check=False, env=own
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "0\n", "blocks that are not freed"
    data, at = files[-1].read_bytes(), 0
    for name, arguments, results in wanted:
        found: list[np.ndarray] = []
        for result in results:
            (rank,) = np.frombuffer(data, np.int64, 1, at)
            shape = np.frombuffer(data, np.int64, rank, at + 8)
            at += 8 + 8 * int(rank)
            flat = np.frombuffer(data, result.dtype, int(np.prod(shape)), at)
            at += flat.nbytes
            found.append(flat.reshape(shape))
        compare(name, arguments, found, results)
    assert at == len(data)


def test_loops_run_in_webassembly(tmp_path: Path, wanted: Calls) -> None:
    made = export(FORMS, tmp_path / "loops", kind="wasm", name="loops").directory
    given = [
        {
            "name": name,
            "held": STATES.get(name),
            "args": [
                {"kind": a.dtype.kind, "shape": a.shape, "data": a.ravel().tolist()}
                for a in arguments
            ],
        }
        for name, arguments, _ in wanted
    ]
    (made / "calls.json").write_text(json.dumps(given))
    node = shutil.which("node")
    assert node, "no node: `make test` finds or installs it"
    done = subprocess.run(
        [node, PROGRAMS / "loops.mjs", made], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for (name, arguments, results), found in zip(wanted, json.loads(done.stdout), strict=True):
        pairs = zip(found, results, strict=True)
        arrays = [np.array(f["data"], r.dtype).reshape(f["shape"]) for f, r in pairs]
        compare(name, arguments, arrays, results)
