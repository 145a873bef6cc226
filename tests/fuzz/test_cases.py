"""Failing walks run again, become smaller, and print as programs that parse."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.schedules.primitives.loops.reorder import Reorder

from tests.fuzz import driver, record, walk
from tests.fuzz.cases import Case, Minimizer, fails, run
from tests.fuzz.contained import Child, Parent, run_contained
from tests.fuzz.inputs import iterations
from tests.fuzz.oracles import Original
from tests.fuzz.program import Program
from tests.fuzz.walks import Walk
from tests.strategies import symbols_of
from tests.waiting import pause

ROOT = Path(__file__).parents[2]

TEXT = """
n = symbols("n", lower=0)

@prim_func
def random(x: Buffer[(n, 5), i8], y: InOut[(n + 1, 6), i8]):
    for a in range(n):
        for b in range(5):
            with block("other"):
                va, vb = spatial(a), spatial(b)
                y[va, vb] = y[va, vb] + x[va, vb]
    for i in range(n):
        for j in range(5):
            with block("step"):
                vi, vj = ordered(i), ordered(j)
                y[vi + 1, vj] = y[vi, vj + 1] + i8(1)
"""


def at(name: str, kind: str = "loop") -> dict[str, str]:
    """Return the data of a handle."""
    return {"kind": kind, "name": name}


STEPS = (
    {"verb": "split", "loop": at("a"), "factors": [None, 4], "tail": "predicate"},
    {"verb": "cache_read", "block": at("other", "block"), "buffer": at("x", "buffer"),
     "scope": "local", "index_map": None},
    {"verb": "reorder", "loops": [at("j"), at("i")]},
    {"verb": "unroll", "loop": at("b")},
)  # fmt: skip


@pytest.fixture
def case(monkeypatch) -> Case:
    """A failing walk, caused by a step without its checks."""
    for phase in ("structural", "proofs"):
        monkeypatch.setattr(Reorder, phase, lambda *_: iter(()))
    sizes = ({"n": 0}, {"n": 7})
    return Case(
        Program("case", TEXT), 0, STEPS, None, sizes, "interpreter", "WrongResultError", "", 0
    )


def test_a_case_fails_again_from_its_data(case):
    again = Case.from_json(case.to_json())
    assert again.to_json() == case.to_json()
    assert "expected" in fails(again)


def test_a_minimized_case_is_small_and_parses(case):
    small = Minimizer(case).minimized()
    assert fails(small)
    assert [step["verb"] for step in small.steps] == ["reorder"]
    assert small.sizes == ({"n": 2},)
    assert "other" not in small.program.text
    assert tw.parse(small.program.text).prims[0].name == "random"
    assert "sch.reorder(loops=('j', 'i', ))" in str(small)


PARTLY = """
n = symbols("n", lower=0)

@prim_func
def random(x: Buffer[(n,), f32], y: Out[({size},), f32]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            y[vi] = x[vi] / 3.0
"""


@pytest.mark.parametrize(("size", "covered"), [("n", True), ("n + 1", False)])
def test_a_case_becomes_smaller_only_if_its_outputs_are_written(size, covered):
    """Elements that the original program does not write have no value to compare with."""
    text = PARTLY.replace("{size}", size)
    program = Program("case", text, exact=False)
    steps = ({"verb": "split", "loop": at("i"), "factors": [None, 4], "tail": "predicate"},)
    found = Case(program, 0, steps, None, ({"n": 3},), "native", "WrongResultError", "", 0)
    original = Original(program, tw.parse(text))
    env = dict.fromkeys(symbols_of(original.function), 3)
    assert original.is_defined([env]) is covered
    assert run(found) is None


SHIFTED = """
n = symbols("n", lower=0)

@prim_func
def random(x: Buffer[(n,), i32], {out}z: Out[(n,), i32]):
    t = alloc((n + 1,), i32)
    for i in range(n):
        with block("first"):
            vi = spatial(i)
            {name}[vi] = x[vi]
    for j in range(n):
        with block("second"):
            vi = spatial(j)
            z[vi] = {name}[{read}] * 2
"""


@pytest.mark.parametrize(
    ("name", "read", "defined"),
    [("t", "vi", True), ("t", "vi + 1", False), ("y", "vi", True), ("y", "vi + 1", False)],
)
def test_a_program_that_reads_unwritten_elements_is_not_a_case(name, read, defined):
    """Elements of integers that are not written have no NaN, which would show in the results."""
    out = "y: Out[(n + 1,), i32], " if name == "y" else ""
    text = SHIFTED.format(out=out, name=name, read=read)
    program = Program("case", text)
    steps = ({"verb": "split", "loop": at("i"), "factors": [None, 4], "tail": "predicate"},)
    found = Case(program, 0, steps, None, ({"n": 3},), "native", "WrongResultError", "", 0)
    original = Original(program, tw.parse(text))
    env = dict.fromkeys(symbols_of(original.function), 3)
    assert original.is_defined([env]) is defined
    assert run(found) is None


def test_crashes_and_endless_functions_are_contained():
    crashed = run_contained(lambda: os.kill(os.getpid(), signal.SIGKILL), 20)
    assert crashed.ended == "signal SIGKILL"
    assert run_contained(signal.pause, 0.05).ended == "no result after 1 s"
    assert run_contained(lambda: [1, "a"], 20).value == [1, "a"]


def test_a_time_limit_counts_the_cpu_time_of_the_process():
    """A busy machine, on which a process waits most of the time, does not end it."""

    def waits() -> float:
        pause(0.5)
        return time.process_time()

    assert run_contained(waits, 0.2).value < 0.2

    def endless() -> None:
        while True:
            pass

    found = run_contained(endless, 0.2)
    assert found.ended == "no result after 0.2 s of CPU time"
    assert "in endless" in found.stack


def test_an_endless_function_ends_with_its_stack_and_its_note():
    def work(parent: Parent) -> None:
        parent.note("first")
        parent.note("second")
        parent.send("ready")
        while True:
            signal.pause()

    child = Child.start(work)
    while not child.lines:
        child.read()
    assert child.end(kill=True) < 0
    assert child.note == "second"
    assert "in work" in child.stack


@pytest.mark.parametrize("wait", [int, signal.pause])
def test_a_step_without_an_end_is_reported_with_its_name_and_stack(
    tmp_path, monkeypatch, capsys, wait
):
    def endless(*_: object) -> None:
        while True:
            wait()

    monkeypatch.setattr(Walk, "sound", endless)
    monkeypatch.setattr(driver, "STALLED", 2)
    monkeypatch.setattr(driver, "warm", lambda _: None)
    monkeypatch.setattr(driver, "LIMIT", 0.5)
    monkeypatch.setattr("sys.argv", [
        "walk", "--walks", "1", "--workers", "1", "--seed", "501", "--family", "pointwise",
        "--quick", "--defects", "1", "--out", str(tmp_path),
    ])  # fmt: skip
    assert walk.main() == 1
    shown = capsys.readouterr().out
    assert "[hang] hang, family" in shown
    assert "steps:\nsch." in shown
    assert "in endless" in shown


def test_a_run_continues_after_the_last_recorded_seed(tmp_path):
    """The command runs as a process of its own, as by a user."""
    file = tmp_path / "runs.json"

    def run(*arguments):
        command = [sys.executable, "-m", "tests.fuzz.walk", *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    arguments = ("--walks", "1", "--workers", "1", "--family", "pointwise",
                 "--out", str(tmp_path), "--record", str(file))  # fmt: skip
    run(*arguments, "--seed", "500")
    run(*arguments, "--resume")
    (found,) = record.read(file)
    assert found.seeds == ((500, 500), (501, 501))
    assert found.totals.walks == found.totals.complete == 2
    assert run("--report", str(file)).startswith("2 programs in all")


def test_no_seed_is_recorded_twice():
    run = record.Run("c", ((0, 9),))
    assert run.plus(record.Run("c", ((10, 19),))).seeds == ((0, 9), (10, 19))
    with pytest.raises(ValueError, match="seeds 9 to 12 are recorded already"):
        run.plus(record.Run("c", ((9, 12),)))


def test_the_committed_record_is_tidy():
    runs = record.read()
    assert record.FILE.read_text() == record.as_text(runs)


def test_the_cost_of_a_triangle_after_a_split_is_not_that_of_one_row() -> None:
    text = """
n = symbols("n", lower=1)

@prim_func
def f(y: Out[(n,), f32]):
    for o in range(32):
        for i in range(32):
            for j in range(o * 32 + i):
                if o * 32 + i < n:
                    y[0] = 0.0
"""
    (function,) = tw.parse(text).prims
    assert iterations(function.body, dict.fromkeys(symbols_of(function), 1)) > 100_000
