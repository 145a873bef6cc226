"""Reductions of columns by default: strips of vectors in registers, at all sizes and dtypes."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.llvm import assembly, emit_module
from tilewright.codegen.lower import lower_kernel
from tilewright.ir.dtype import dtype
from tilewright.ir.script import parse
from tilewright.schedules import Schedule
from tilewright.schedules.problem import RuleNotApplicableError

from tests.amounts import covering
from tests.codegen.kernels import ALL_LEVELS, LEVELS, Runtime, build

COUNTS = (0, 1, 7, 33, 1025)
"""The numbers of rows."""

WIDTHS = (0, 1, 2, 3, 8, 13, 15, 16, 17, 31, 64, 127, 255, 256, 257, 769)
"""The numbers of columns: primes, whole vectors and strips, and one less and one more."""

SHAPES = [(7, m) for m in WIDTHS] + [(n, 17) for n in COUNTS] + [(33, 769), (1025, 33)]


def program(body, shape, element="f32"):
    symbols = [str(s) for s in shape if isinstance(s, str)]
    head = f'{", ".join(symbols)} = symbols("{" ".join(symbols)}", lower=0)' if symbols else ""
    return parse(f"""
{head}

@graph_func
def main(x: Tensor[({", ".join(map(str, shape))}), {element}]):
    {body}
    return y
""")


def is_used(module, target) -> bool:
    """Return whether the default schedule contains the rule."""
    sch = Schedule(module, target)
    sch.default_schedule()
    return "schedule_columns" in str(sch.trace)


def values(shape, element) -> np.ndarray:
    """Small integers, whose sums are exact in every dtype."""
    drawn = np.random.default_rng(sum(shape)).integers(-3, 4, shape)
    return drawn.astype(dtype(element).numpy)


REDUCERS = {
    "sum": ("y = sum(x, axes=(0,))", lambda x: x.sum(0, dtype=x.dtype), "f32 f64 f16 i32 i8"),
    "prod": ("y = prod(x, axes=(0,))", lambda x: x.prod(0, dtype=x.dtype), "i32"),
    "max": ("y = max(x, axes=(0,))", lambda x: x.max(0), "f32 f64 f16 i32 i8"),
    "min": ("y = min(x, axes=(0,))", lambda x: x.min(0), "f32 i8"),
    "mean": ("y = mean(x, axes=(0,))", lambda x: x.mean(0, dtype=np.float64), "f32 f64 f16"),
    "any": ("y = any(x, axes=(0,))", lambda x: x.any(0), "bool"),
    "all": ("y = all(x, axes=(0,))", lambda x: x.all(0), "bool"),
    "argmax": ("y = argmax(x, axis=0)", lambda x: x.argmax(0), "f32 f64 i32 i8"),
    "argmin": ("y = argmin(x, axis=0)", lambda x: x.argmin(0), "f16"),
    "before and after": (
        "a = relu(x)\n    s = sum(a, axes=(0,))\n    t = multiply(s, s)\n    y = add(t, s)",
        lambda x: np.maximum(x, 0).sum(0) ** 2 + np.maximum(x, 0).sum(0), "f32",
    ),
    "variance": (
        (
            "a = mean(x, axes=(0,), keepdims=True)\n    d = subtract(x, a)\n"
            "    e = multiply(d, d)\n    y = mean(e, axes=(0,))"
        ),
        lambda x: x.var(0, dtype=np.float64), "f32 f64",
    ),
}  # fmt: skip
CASES = [(name, kind) for name, (*_, kinds) in REDUCERS.items() for kind in kinds.split()]


def check(run, name, element, shape) -> None:
    body, reference, _ = REDUCERS[name]
    defined = "sum" in body or name in ("any", "all", "prod")
    if shape[0] == 0 and not defined:
        return
    x = values(shape, element)
    found = np.asarray(run(x))
    rounded = name in ("mean", "variance")
    tolerance = (1e-3 if element == "f16" else 1e-5) if rounded else 0.0
    np.testing.assert_allclose(found, reference(x), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("case", "level"), covering(CASES, LEVELS), ids=str)
def test_symbolic_sizes(case, level) -> None:
    name, element = case
    module = program(REDUCERS[name][0], ("n", "m"), element)
    target = tw.Target("cpu", features=(level,), threads=2)
    assert is_used(module, target)
    run = tw.compile(module, target)
    for shape in SHAPES:
        check(run, name, element, shape)


STATIC = [(n, s) for s in SHAPES for n in ("sum", "argmax") if n == "sum" or 0 not in s]


@pytest.mark.parametrize(("case", "level"), covering(STATIC, LEVELS), ids=str)
def test_static_sizes(case, level) -> None:
    name, shape = case
    module = program(REDUCERS[name][0], shape)
    target = tw.Target("cpu", features=(level,), threads=2)
    assert is_used(module, target) == (shape[1] > 1)
    check(tw.compile(module, target), name, "f32", shape)


@pytest.mark.parametrize(
    ("axes", "level"), covering([(1,), (0, 1), (0, 2), (1, 2)], LEVELS), ids=str
)
def test_several_dimensions(axes, level) -> None:
    shape = ("a", "b", "c", "d")
    module = program(f"y = sum(x, axes={axes})", shape)
    target = tw.Target("cpu", features=(level,), threads=2)
    assert is_used(module, target)
    run = tw.compile(module, target)
    for sizes in ((2, 3, 4, 37), (1, 5, 2, 300), (3, 0, 2, 16), (0, 2, 2, 5), (2, 2, 2, 0)):
        x = values(sizes, "f32")
        np.testing.assert_array_equal(run(x), x.sum(axes))


MOMENTS = """
n, m = symbols("n m", lower=0)

@prim_func
def moments(x: Buffer[(n, m), f32], c: Out[(m,), f32], mean: Out[(m,), f32], y: Out[(m,), f32]):
    square = alloc((m,), f32)
    for j in range(m):
        for k in range(n):
            with block("reduce"):
                vj, vk = spatial(j), reduce(k)
                with init(): c[vj], mean[vj], square[vj] = 0.0, 0.0, 0.0
                c[vj], mean[vj], square[vj] = welford(1.0, x[vk, vj], 0.0)
    for l in range(m):
        with block("divide"):
            vl = spatial(l)
            y[vl] = square[vl] / f32(i64(n))
"""


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("level", LEVELS)
def test_several_results(level, threads) -> None:
    sch = Schedule(parse(MOMENTS), tw.Target("cpu", features=(level,)))
    sch.schedule_kernel("moments")
    assert "schedule_columns" in str(sch.trace)
    kernel = build(sch.module.prim("moments"), level)
    for n, m in ((0, 5), (5, 0), (1, 1), (70, 13), (33, 300)):
        x = np.random.default_rng(n).normal(3, 2, (n, m)).astype(np.float32)
        results = [np.empty(m, np.float32) for _ in range(3)]
        assert kernel(x, *results, runtime=Runtime(threads=threads)) == 0
        np.testing.assert_array_equal(results[0], n)
        if n:
            np.testing.assert_allclose(results[1], x.mean(0, np.float64), rtol=1e-5)
            np.testing.assert_allclose(results[2], x.var(0, np.float64), rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("every_level")
@pytest.mark.parametrize(("level", "vectors"), [*zip(ALL_LEVELS, (8, 16), strict=True)])
def test_sums_stay_in_registers(level, vectors) -> None:
    target = tw.Target("cpu", features=(level,))
    sch = Schedule(program("y = sum(x, axes=(0,))", ("n", "m")), target)
    sch.default_schedule()
    lowered = lower_kernel(sch.module.prim("sum"), target)
    text = assembly(emit_module([lowered.function], target), target)
    adds = ["\n".join(x for x in b.splitlines() if "mm" in x) for b in text.split("\n.LBB")]
    assert any(b.count("vaddps") >= vectors and "rsp" not in b and "vmov" not in b for b in adds)


OTHER = {
    "rows": ("(64, 32)", "x[vj, vi]"),
    "every second column": ("(32, 128)", "x[vi, vj * 2] + x[vi, vj]"),
    "a matrix and its transpose": ("(64, 64)", "x[vi, vj] + x[vj, vi]"),
}


@pytest.mark.parametrize("case", OTHER)
def test_other_reductions_keep_their_rule(case) -> None:
    shape, value = OTHER[case]
    module = parse(f"""
@prim_func
def f(x: Buffer[{shape}, f32], y: Out[(64,), f32]):
    for j in range(64):
        for i in range(32):
            with block("sum"):
                vj, vi = spatial(j), reduce(i)
                with init(): y[vj] = 0.0
                y[vj] += {value}
""")
    sch = Schedule(module, tw.Target("cpu"))
    with pytest.raises(tw.TilewrightError) as found:
        sch.schedule_columns("f")
    assert isinstance(found.value.__cause__ or found.value, RuleNotApplicableError)
    sch.schedule_kernel("f")
    assert "schedule_columns" not in str(sch.trace)
    assert "schedule_rows" in str(sch.trace)
