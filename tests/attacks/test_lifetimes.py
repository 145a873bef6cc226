"""Temporaries and states whose elements live longer than one iteration or call, on each target.

A lowering that guesses these lifetimes gives each worker a part of a copy that all of them read,
keeps only the elements that one iteration writes, or writes a state before its last read.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.interpreter import call_prim, run_graph
from tilewright.ir.script import parse
from tilewright.ir.verify import IllFormedProgramError
from tilewright.schedules import Schedule
from tilewright.schedules.problem import StepError

from tests.codegen.export.test_wasm import called
from tests.ir.graph.state_programs import ORDERED

if TYPE_CHECKING:
    from pathlib import Path

    from tilewright.ir.module import Module

SHARED_COPY = """
@prim_func
def main(x: Buffer[(64, 16), f32], y: Out[(64, 16), f32]):
    for i in range(64):
        for j in range(16):
            with block("w"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj] * 2.0
"""

GUARDED_WINDOW = """
@prim_func
def main(x: Buffer[(18,), f32], y: Out[(16,), f32]):
    tmp = alloc((18,), f32)
    for i in range(16):
        for r in range(3):
            with block("p"):
                vi, vr = spatial(16, i), spatial(3, r)
                guard(i == 0 or r == 2)
                tmp[vi + vr] = x[vi + vr]
        with block("c"):
            vk = spatial(16, i)
            y[vk] = tmp[vk] + tmp[vk + 1] + tmp[vk + 2]
"""

MAYBE_EMPTY = """
@prim_func
def main(x: Buffer[(6,), f32], y: Out[(6,), f32]):
    T = alloc((1,), f32)
    for i in range(6):
        for r in range((2 - i % 3) // 2):
            with block("t"):
                vt = spatial(6, i)
                T[0] = x[vt]
        with block("y"):
            vy = spatial(6, i)
            y[vy] = T[0]
"""

CASES = {
    "a copy that two loops share": (
        SHARED_COPY,
        np.arange(1024, dtype=np.float32).reshape(64, 16),
        2 * np.arange(1024, dtype=np.float32).reshape(64, 16),
    ),
    "a window that is filled under a guard": (
        GUARDED_WINDOW,
        np.arange(18, dtype=np.float32),
        3 * np.arange(1, 17, dtype=np.float32),
    ),
    "a write in a loop that may be empty": (
        MAYBE_EMPTY,
        np.arange(1, 7, dtype=np.float32),
        np.array([1, 1, 1, 4, 4, 4], np.float32),
    ),
}
"""Programs with an argument and its result."""

TARGETS = ("cpu", "simt", "wasm32")


def result(module: Module, x: np.ndarray, like: np.ndarray, target: str, folder: Path) -> object:
    """Return the result of a second call, which uses the memory of the first one."""
    if target == "wasm32":
        made = tw.export(module, folder / "scoped", kind="wasm", name="scoped")
        return called(made.directory / "scoped.wasm", [x], like)
    exe = tw.compile(module, target)
    exe(x)
    return exe(x)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_the_default_rule_keeps_elements_that_are_read_later(
    name: str, target: str, tmp_path: Path
) -> None:
    text, x, expected = CASES[name]
    module = parse(text)
    (interpreted,) = call_prim(module.prim("main"), [x])
    np.testing.assert_array_equal(interpreted, expected)
    np.testing.assert_array_equal(result(module, x, expected, target, tmp_path), expected)


@pytest.mark.parametrize("target", ["cpu", "wasm32"])
@pytest.mark.parametrize("name", list(CASES)[1:])
def test_a_scheduled_program_keeps_elements_that_are_read_later(
    name: str, target: str, tmp_path: Path
) -> None:
    text, x, expected = CASES[name]
    module = parse(text.replace("@prim_func", "@prim_func(scheduled=True)"))
    np.testing.assert_array_equal(result(module, x, expected, target, tmp_path), expected)


@pytest.mark.parametrize("order", [("ax0", "i"), ("i", "ax0")], ids="-".join)
@pytest.mark.parametrize("scope", ["local", "shared", "global"])
@pytest.mark.parametrize("target", TARGETS)
def test_workers_and_threads_share_a_copy_of_any_scope(
    target: str, scope: str, order: tuple[str, str], tmp_path: Path
) -> None:
    _, x, expected = CASES["a copy that two loops share"]
    sch = Schedule(parse(SHARED_COPY), target if target == "simt" else None)
    sch.cache_read("w", "x", scope)
    for name in order:
        if target == "simt":
            sch.bind(name, "threadIdx.x")
        else:
            sch.parallel(name)
    np.testing.assert_array_equal(result(sch.module, x, expected, target, tmp_path), expected)


@pytest.mark.parametrize("name", list(CASES)[1:])
@pytest.mark.parametrize("kind", ["parallel", "blockIdx.x", "threadIdx.x"])
def test_iterations_that_read_elements_of_others_are_not_concurrent(name: str, kind: str) -> None:
    """The step and the verifier of a program that states the same refuse it alike."""
    text = CASES[name][0]
    sch = Schedule(parse(text), None if kind == "parallel" else "simt")
    with pytest.raises(StepError, match="independent_iterations"):
        sch.parallel("i") if kind == "parallel" else sch.bind("i", kind)
    loop = "for i in range("
    count = text.split(loop)[1].split(")")[0]
    around = f"parallel({count})" if kind == "parallel" else f'thread({count}, "{kind}")'
    with pytest.raises(IllFormedProgramError, match="independent iterations"):
        parse(text.replace(f"{loop}{count})", f"for i in {around}"))


OLD, NEW = np.full(8, 10, np.float32), np.full(8, 100, np.float32)


@pytest.mark.parametrize("steps", [(), ("fuse_ops", "fuse_tir")], ids=["default", "fused"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_state_is_read_before_its_update(
    target: str, steps: tuple[str, ...], tmp_path: Path
) -> None:
    """A call returns ``(cache + 1) * 2`` of the old cache, which it replaces."""
    sch = Schedule(parse(ORDERED))
    for step in steps:
        getattr(sch, step)()
    cache = OLD.copy()
    assert run_graph(sch.module, [cache, NEW])[0].tolist() == [22.0] * 8
    assert cache.tolist() == NEW.tolist()
    if target != "wasm32":
        exe = tw.compile(sch.module, target)
        state = exe.new_state(cache=OLD)
        assert [exe(x, state=state).tolist() for x in (NEW, OLD)] == [[22.0] * 8, [202.0] * 8]
        assert state["cache"].tolist() == OLD.tolist()
        return
    made = tw.export(sch.module, tmp_path / "made", kind="wasm", name="ordered")
    (tmp_path / "run.mjs").write_text(f"""
import {{ load }} from "{made.directory}/ordered.mjs";
const model = await load();
const filled = (value) => ({{ data: new Float32Array(8).fill(value), shape: [8] }});
const state = model.newState({{ cache: filled(10) }});
const results = [100, 10].map((value) => [...model.main(filled(value), state).data]);
console.log(JSON.stringify([results, [...state.get("cache").data]]));
""")
    node = shutil.which("node")
    assert node, "no node: `make test` finds or installs it"
    done = subprocess.run([node, tmp_path / "run.mjs"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[[22] * 8, [202] * 8], OLD.tolist()]
