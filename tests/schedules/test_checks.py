"""Dependences per index: which loops of a recurrence are independent."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.ir.interpreter.loops import call_prim
from tilewright.ir.script import parse
from tilewright.schedules import Schedule, StepError
from tilewright.target.target import Target

ROWS = """
for i in range(n):
    for j in range(m):
        y[i, j + 1] = y[i, j] * 0.5 + x[i, j]
"""
GUARDED = """
for i in range(n):
    for j in range(m):
        y[i, j] = where(j >= 1, y[i, j - 1] * 0.5, 1.0) + x[i, j]
"""
COLUMNS = """
for i in range(n):
    for j in range(m):
        y[i + 1, j] = y[i, j] * 0.5 + x[i, j]
"""
FLIPPED = """
for i in range(n):
    for j in range(m):
        y[i, j] = where(i >= 1, y[i - 1, m - 1 - j], 0.0) + x[i, j]
"""
DISTANCE = """
for i in range(n):
    for j in range(m):
        y[i, j + 2] = y[i, j] * 0.5 + x[i, j]
"""
SKEW = """
for i in range(n):
    for j in range(m):
        y[i + 1, j] = y[i, j + 1] * 0.5 + x[i, j]
"""
WAVEFRONT = """
for i in range(n):
    for j in range(m):
        y[i + 1, j + 1] = y[i, j + 1] + y[i + 1, j] * 0.5 + x[i, j]
"""
STATE = """
for i in range(n):
    s = alloc((2,), f32)
    s[0] = 0.0
    s[1] = 1.0
    for j in range(m):
        t = alloc((), f32)
        t[()] = s[0] * 0.5 + x[i, j]
        s[0] = s[1]
        s[1] = t[()]
        y[i, j] = s[1]
"""
NEIGHBOR = """
for i in range(n):
    for j in range(m):
        y[i, j + 1] = y[max(i - 1, 0), j] + x[i, j]
"""
SIZES = {
    ROWS: ("n", "m + 1"), GUARDED: ("n", "m"), COLUMNS: ("n + 1", "m"), FLIPPED: ("n", "m"),
    DISTANCE: ("n", "m + 2"), SKEW: ("n + 1", "m + 1"), WAVEFRONT: ("n + 1", "m + 1"),
    STATE: ("n", "m"), NEIGHBOR: ("n", "m + 1"),
}  # fmt: skip
NAMES = {
    "rows": ROWS, "guarded": GUARDED, "columns": COLUMNS, "flipped": FLIPPED,
    "distance": DISTANCE, "skew": SKEW, "wavefront": WAVEFRONT, "state": STATE,
    "neighbor": NEIGHBOR,
}  # fmt: skip


def program(body: str) -> str:
    first, second = SIZES[body]
    text = textwrap.indent(body.strip("\n"), "    ")
    return (
        'n, m = symbols("n m", lower=1)\n\n@prim_func\n'
        f"def f(x: Buffer[(n, m), f32], y: InOut[({first}, {second}), f32]):\n{text}\n"
    )


def apply(sch: Schedule, step: str) -> None:
    verb, *rest = step.split()
    loop = rest[0]
    if verb == "reorder":
        sch.reorder(*rest)
        return
    if len(rest) > 1:
        _, loop = sch.split(loop, factors=(None, int(rest[1])))
    if verb == "bind":
        sch.bind(loop, "threadIdx.x")
    elif verb != "split":
        getattr(sch, verb)(loop)


LEGAL = [
    *((name, step) for name in ("rows", "guarded") for step in
      ("parallel i", "vectorize i 4", "reorder j i", "split j 3")),
    ("rows", "bind i 4"),
    ("columns", "parallel j"), ("columns", "vectorize j 4"), ("columns", "bind j 4"),
    ("columns", "reorder j i"), ("flipped", "parallel j"), ("flipped", "vectorize j 4"),
    ("distance", "vectorize j 2"), ("distance", "parallel i"), ("skew", "vectorize j 4"),
    ("skew", "parallel j"), ("state", "parallel i"), ("state", "bind i 4"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "step"), LEGAL)
def test_steps_on_independent_indices_keep_the_result(name, step):
    text = program(NAMES[name])
    target = Target("simt") if step.startswith("bind") else Target("cpu")
    sch = Schedule(parse(text), target)
    apply(sch, step)
    assert str(parse(str(sch.module))) == str(sch.module)
    exe = compile(sch, target)
    rng = np.random.default_rng(3)
    for n, m in ((1, 1), (5, 7), (3, 16)):
        x = rng.random((n, m)).astype(np.float32)
        first, second = (eval(dim, {"n": n, "m": m}) for dim in SIZES[NAMES[name]])
        start = rng.random((first, second)).astype(np.float32)
        native = start.copy()
        (want,) = call_prim(parse(text).prims[0], [x, start])
        (scheduled,) = call_prim(sch.module.prims[0], [x, start])
        exe(x, native)
        np.testing.assert_array_equal(scheduled, want)
        np.testing.assert_allclose(native, want, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "step", "dependence"),
    [
        ("rows", "parallel j", "it reads y[vi, vj] and writes y[vi, vj + 1]"),
        ("rows", "vectorize j 4", "it reads y[vi, vj] and writes y[vi, vj + 1]"),
        ("rows", "bind j 4", "it reads y[vi, vj] and writes y[vi, vj + 1]"),
        ("guarded", "parallel j", "it reads y[vi, vj - 1] and writes y[vi, vj]"),
        ("columns", "parallel i", "it reads y[vi, vj] and writes y[vi + 1, vj]"),
        ("flipped", "parallel i", "it reads y[vi - 1, m - vj - 1] and writes y[vi, vj]"),
        ("flipped", "reorder j i", "loops 'i' and 'j' would exchange their order"),
        ("distance", "vectorize j 3", "it reads y[vi, vj] and writes y[vi, vj + 2]"),
        ("distance", "parallel j", "it reads y[vi, vj] and writes y[vi, vj + 2]"),
        ("skew", "reorder j i", "it reads y[vi, vj + 1] and writes y[vi + 1, vj]"),
        ("skew", "parallel i", "it reads y[vi, vj + 1] and writes y[vi + 1, vj]"),
        ("wavefront", "parallel i", "it reads y[vi, vj + 1], y[vi + 1, vj] and writes"),
        ("wavefront", "vectorize j 4", "it reads y[vi, vj + 1], y[vi + 1, vj] and writes"),
        ("state", "parallel j", "may write the same elements of 's'"),
        ("neighbor", "parallel i", "it reads y[max(0, vi - 1), vj] and writes y[vi, vj + 1]"),
        ("neighbor", "reorder j i", "would exchange their order"),
    ],
)
def test_steps_on_dependent_indices_name_the_dependence(name, step, dependence):
    target = Target("simt") if step.startswith("bind") else Target("cpu")
    sch = Schedule(parse(program(NAMES[name])), target)
    with pytest.raises(StepError) as caught:
        apply(sch, step)
    text = " ".join(" ".join(problem.message.split()) for problem in caught.value.problems)
    assert dependence in text
