"""Failing walks run again, become smaller, and print as programs that parse."""

from __future__ import annotations

import json
import os
import signal

import pytest

import tilewright as tw
from tilewright.schedules.primitives.loops.reorder import Reorder

from tests.fuzz import walk as driver
from tests.fuzz.cases import Case, Minimizer, fails
from tests.fuzz.contained import run_contained
from tests.fuzz.program import Program

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


def test_crashes_and_endless_functions_are_contained():
    crashed = run_contained(lambda: os.kill(os.getpid(), signal.SIGKILL), 20)
    assert crashed.ended == "signal SIGKILL"
    assert "no result" in run_contained(signal.pause, 0.2).ended
    assert run_contained(lambda: [1, "a"], 20).value == [1, "a"]


def test_a_run_continues_after_the_last_seed(tmp_path, monkeypatch, capsys):
    file = tmp_path / "walks.json"
    arguments = ["walk", "--walks", "2", "--workers", "1", "--seed", "500", "--family",
                 "pointwise", "--json", str(file), "--out", str(tmp_path)]  # fmt: skip
    monkeypatch.setattr("sys.argv", arguments)
    assert driver.main() == 0, capsys.readouterr().out
    first = json.loads(file.read_text())
    assert first["totals"]["walks"] >= 2
    monkeypatch.setattr("sys.argv", [x for x in arguments if x not in ("--seed", "500")]
                        + ["--resume", "--walks", "4"])  # fmt: skip
    driver.main()
    runs = json.loads(file.read_text())["runs"]
    assert [r["first"] for r in runs] == [500, runs[0]["next"]]
    assert json.loads(file.read_text())["totals"]["walks"] >= 4
