"""The default rule of kernels whose nests run a part of their domain, or have no pattern."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.interpreter import run_prim
from tilewright.ir.loop.nodes import For
from tilewright.ir.loop.visit import walk
from tilewright.schedules.patterns import Other, Rows, classify
from tilewright.schedules.rules import with_default_schedule

HEAD = 'n = symbols("n", lower=0)\n\n@prim_func'
SUM = """
def f(x: Buffer[(n, n + 5), f32], y: Out[(n,), f32]):
    for i in range(n):
        for j in {loop}:
            with block("sum"):
                vi, vj = spatial(n, i), reduce(n + 5, {column})
                with init(): y[vi] = 0.0
                y[vi] += x[vi, vj]
"""
COLUMNS = {
    "lower triangle": ("range(i + 1)", "j"),
    "upper triangle": ("range(n - i)", "j + i"),
    "band": ("range(5)", "j + i"),
    "part of the domain": ("range(3)", "j"),
    "may be empty": ("range(n - 4)", "j"),
}
PROGRAMS = {
    name: HEAD + SUM.format(loop=loop, column=column) for name, (loop, column) in COLUMNS.items()
}
PROGRAMS["triangular product"] = (
    HEAD
    + """
def f(x: Buffer[(n, n + 5), f32], y: Out[(n, n), f32]):
    for i in range(n):
        for j in range(n):
            for k in range(i + 1):
                with block("product"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(n, k)
                    with init(): y[vi, vj] = 0.0
                    y[vi, vj] += x[vi, vk] * x[vk, vj]
"""
)
PROGRAMS["causal softmax"] = (
    HEAD
    + """
def f(x: Buffer[(n, n + 5), f32], y: InOut[(n, n), f32]):
    top = alloc((n,), f32)
    total = alloc((n,), f32)
    for i in range(n):
        for j in range(i + 1):
            with block("top"):
                vi, vj = spatial(i), reduce(n, j)
                with init(): top[vi] = -inf
                top[vi] = max(top[vi], x[vi, vj])
    for i2 in range(n):
        for j2 in range(i2 + 1):
            with block("total"):
                vi, vj = spatial(i2), reduce(n, j2)
                with init(): total[vi] = 0.0
                total[vi] += exp(x[vi, vj] - top[vi])
    for i3 in range(n):
        for j3 in range(i3 + 1):
            with block("out"):
                vi, vj = spatial(i3), spatial(n, j3)
                y[vi, vj] = exp(x[vi, vj] - top[vi]) / total[vi]
"""
)
PROGRAMS["branch"] = (
    HEAD
    + """
def f(x: Buffer[(n, n + 5), f32], y: InOut[(n, 8), f32]):
    for i in range(n):
        for j in range(8):
            if j < 3:
                with block("copy"):
                    vi, vj = spatial(i), spatial(j)
                    y[vi, vj] = x[vi, min(vj, n + 4)] * 2.0
"""
)


def results(function, n: int) -> np.ndarray:
    """Return the output of a function for integers of which sums are exact."""
    x = np.random.default_rng(n).integers(-8, 9, (n, n + 5)).astype(np.float32)
    shape = [n if d.free else int(str(d)) for d in function.buffer_params[1].shape]
    y = np.full(shape, 3, np.float32)
    run_prim(function, [x, y], {"n": n})
    return y


@pytest.mark.parametrize("target", ["cpu", "simt"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_default_schedule_keeps_the_results(name: str, target: str) -> None:
    module = tw.parse(PROGRAMS[name])
    chosen = tw.Target("cpu", features=("avx2",)) if target == "cpu" else tw.Target("simt")
    done = with_default_schedule(module, chosen)
    for n in (0, 1, 2, 7, 37):
        np.testing.assert_allclose(
            results(done.prim("f"), n), results(module.prim("f"), n), rtol=1e-5, atol=0
        )


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_results(name: str) -> None:
    module = tw.parse(PROGRAMS[name])
    call, y_of = tw.compile(module), module.prim("f").params[1]
    for n in (0, 1, 19, 53):
        x = np.random.default_rng(n).integers(-8, 9, (n, n + 5)).astype(np.float32)
        expected = results(module.prim("f"), n)
        arguments = (x, np.full(expected.shape, 3, np.float32)) if y_of.access == "inout" else (x,)
        found = call(*arguments)
        found = arguments[-1] if y_of.access == "inout" else found
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=0)


def test_triangular_rows_are_vectorized_and_parallel() -> None:
    module = tw.parse(PROGRAMS["causal softmax"])
    pattern = classify(module.prim("f"))
    assert isinstance(pattern, Rows)
    assert not pattern.complete
    done = tw.Schedule(module, tw.Target("cpu", features=("avx512",)))
    done.schedule_kernel("f")
    kinds = [[done.state.loop(x).kind for x in done.get_loops(b)] for b in done.get_blocks("f")]
    assert all(found[-1] == "vectorized" for found in kinds if len(found) > 1)
    assert kinds[-1][0] == "parallel"


RULES = {
    "lower triangle": ("schedule_nests", "schedule_gpu_rows"),
    "part of the domain": ("schedule_nests", "schedule_gpu_rows"),
    "triangular product": ("schedule_nests", "schedule_gpu_rows"),
    "causal softmax": ("schedule_rows", "schedule_gpu_rows"),
}
ON_CPU = {
    "upper triangle": PROGRAMS["upper triangle"],
    "band": PROGRAMS["band"],
    "clipped band": HEAD
    + SUM.format(loop="range(min(i + 3, n) - max(i - 2, 0))", column="j + max(i - 2, 0)"),
}


@pytest.mark.parametrize("name", [*RULES, *ON_CPU])
def test_causal_and_banded_reductions_are_parallel_and_vectorized(name: str) -> None:
    sch = tw.Schedule(
        tw.parse(ON_CPU.get(name) or PROGRAMS[name]), tw.Target("cpu", features=("avx512",))
    )
    sch.schedule_kernel("f")
    expected = RULES[name][0] if name in RULES else "schedule_nests"
    assert rules_of(sch) == ["schedule_kernel", expected]
    loops = [sch.state.loop(x) for x in sch.get_loops(sch.get_blocks("f")[-1])]
    assert loops[0].kind == "parallel"
    assert loops[-1].kind == "vectorized"


@pytest.mark.parametrize("name", RULES)
def test_the_rows_of_a_causal_reduction_run_in_thread_blocks(name: str) -> None:
    sch = tw.Schedule(tw.parse(PROGRAMS[name]), tw.Target("simt"))
    sch.schedule_kernel("f")
    assert rules_of(sch) == ["schedule_kernel", RULES[name][1]]
    loops = [sch.state.loop(x) for x in sch.get_loops(sch.get_blocks("f")[-1])]
    assert {"blockIdx.x", "threadIdx.x"} <= {x.thread for x in loops}


def rules_of(sch: tw.Schedule) -> list[str]:
    """Return the names of the rules of a schedule."""
    return [g.op for g in sch.trace.groups if g.op.startswith("schedule_")]


def test_kernels_with_a_branch_have_no_pattern() -> None:
    assert classify(tw.parse(PROGRAMS["branch"]).prim("f")) == Other()


DEPENDENT = {
    "rows in place": """
def f(x: InOut[(n, n), f32]):
    s = alloc((n,), f32)
    for i in range(n):
        for j in range(n):
            with block("sum"):
                vi, vj = spatial(i), reduce(j)
                with init(): s[vi] = 0.0
                s[vi] += x[vi, vj]
    for k in range(n):
        for l in range(n):
            with block("x"):
                vk, vl = spatial(k), spatial(l)
                x[vk, vl] = x[vk, vl] - s[vk]
""",
    "a product that its epilogue reads transposed": """
def f(x: InOut[(n, n), f32]):
    s = alloc((n, n), f32)
    for i in range(n):
        for j in range(n):
            for r in range(n):
                with block("product"):
                    vi, vj, vr = spatial(i), spatial(j), reduce(r)
                    with init(): s[vi, vj] = 0.0
                    s[vi, vj] += x[vi, vr] * x[vr, vj]
    for k in range(n):
        for l in range(n):
            with block("x"):
                vk, vl = spatial(k), spatial(l)
                x[vk, vl] = s[vk, vl] + s[vl, vk]
""",
    "a product into a cleared buffer": """
def f(x: Buffer[(n, n), f32], y: Out[(n + 1, n), f32]):
    for z in range(n + 1):
        for w in range(n):
            with block("clear"):
                vz, vw = spatial(z), spatial(w)
                y[vz, vw] = 0.0
    for i in range(n):
        for j in range(n):
            for r in range(n):
                with block("product"):
                    vi, vj, vr = spatial(i), spatial(j), reduce(r)
                    with init(): y[vi + 1, vj] = 0.0
                    y[vi + 1, vj] += x[vi, vr] * x[vr, vj]
""",
    "elements at products of symbols": """
def f(x: Buffer[(n, n), f32], y: Out[(n * n,), f32]):
    for i in range(n):
        for j in range(n):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                y[vi * n + vj] = x[vi, vj]
""",
}


@pytest.mark.parametrize("name", DEPENDENT)
def test_a_kernel_whose_dependences_forbid_the_rule_of_its_kind(name: str) -> None:
    module = tw.parse(f"{HEAD}{DEPENDENT[name]}")
    assert not isinstance(classify(module.prims[0]), Other)
    ready = with_default_schedule(module).prims[0]
    rng = np.random.default_rng(0)
    for n in (0, 1, 17):
        x = rng.integers(-3, 4, (n, n)).astype(np.float32)
        outputs = [np.zeros(s, np.float32) for s in ([(n + 1, n)] if "clear" in name else [])]
        outputs += [np.zeros(n * n, np.float32)] if "elements" in name else []
        wanted, found = ([a.copy() for a in (x, *outputs)] for _ in range(2))
        run_prim(module.prims[0], wanted)
        run_prim(ready, found)
        for a, b in zip(wanted, found, strict=True):
            np.testing.assert_array_equal(a, b)
    assert any(isinstance(s, For) and s.kind == "vectorized" for s in walk(ready.body))


IN_ORDER = """
def f(x: Buffer[(n, n), i32], y: InOut[(n, n), i32]):
    for i in range(n):
        for j in range(n):
            for r in range(n):
                with block("y"):
                    vi, vj, vr = spatial(i), spatial(j), reduce(r)
                    y[vi, vj] -= max(x[vi, vr], 0)
"""


def test_terms_in_order_at_adjacent_elements_are_not_vectorized() -> None:
    """The loop over terms reads adjacent elements, but only that over results can be vectorized."""
    module = tw.parse(f"{HEAD}{IN_ORDER}")
    sch = tw.Schedule(module, tw.Target("cpu", features=("avx2",)))
    sch.schedule_kernel("f")
    kinds = [sch.state.loop(loop).kind for loop in sch.get_loops("y")]
    assert kinds == ["parallel", "serial", "serial", "vectorized"]
    assert sch.verify()
