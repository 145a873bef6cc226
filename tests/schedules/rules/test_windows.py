"""Reductions of windows by default: vectors of adjacent results, at all sizes and dtypes."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.llvm import assembly, emit_module
from tilewright.codegen.lower import lower_kernel
from tilewright.ir.dtype import dtype
from tilewright.ir.interpreter import run_graph
from tilewright.ir.script import parse
from tilewright.schedules import Schedule
from tilewright.schedules.problem import RuleNotApplicableError

from tests.amounts import covering
from tests.codegen.kernels import ALL_LEVELS, LEVELS

POOLS = {
    "2x2/2": ((2, 2), "kernel=(2, 2), strides=(2, 2)"),
    "3x3/2 padded": ((3, 3), "kernel=(3, 3), strides=(2, 2), padding=(1, 1, 1, 1)"),
    "3x3": ((3, 3), "kernel=(3, 3)"),
    "3x3 padded": ((3, 3), "kernel=(3, 3), padding=(1, 1, 1, 1)"),
    "2x3/1x3 dilated": ((2, 5), "kernel=(2, 3), strides=(1, 3), dilation=(1, 2)"),
    "3x3/2 ceil": ((3, 3), "kernel=(3, 3), strides=(2, 2), ceil=True"),
    "5/4": ((5,), "kernel=(5,), strides=(4,)"),
    "2/2": ((2,), "kernel=(2,), strides=(2,)"),
    "2x2x2/2": ((2, 2, 2), "kernel=(2, 2, 2), strides=(2, 2, 2)"),
    "3x1x3/1x1x2": (
        (3, 1, 3), "kernel=(3, 1, 3), strides=(1, 1, 2), padding=(1, 0, 1, 1, 0, 1)",
    ),
}  # fmt: skip

SIDES = (1, 2, 3, 5, 13, 17, 35, 66, 131)
"""Widths of images: primes, and results of one vector, one strip, and more."""


def program(op, attributes, shape, element="f32"):
    names = [str(s) for s in shape if isinstance(s, str)]
    head = f'{", ".join(names)} = symbols("{" ".join(names)}", lower=1)' if names else ""
    return parse(f"""
{head}

@graph_func
def main(x: Tensor[({", ".join(map(str, shape))}), {element}]):
    y = {op}(x, {attributes})
    return y
""")


def is_used(module, target) -> bool:
    """Return whether the default schedule contains the rule."""
    sch = Schedule(module, target)
    sch.default_schedule()
    return "schedule_windows" in str(sch.trace)


def values(shape, element="f32") -> np.ndarray:
    """Integers, whose sums are exact in every dtype."""
    drawn = np.random.default_rng(sum(shape)).integers(-9, 10, shape)
    return drawn.astype(dtype(element).numpy)


def expected(op, attributes, x):
    """Return the result of the reference."""
    module = program(op, attributes, x.shape, dtype_of(x))
    return run_graph(module, [x])[0]


def dtype_of(x) -> str:
    return {"float32": "f32", "float64": "f64", "float16": "f16", "int8": "i8", "int32": "i32"}[
        str(x.dtype)
    ]


def check(run, op, attributes, x) -> None:
    found, wanted = np.asarray(run(x)), np.asarray(expected(op, attributes, x))
    if op == "max_pool":
        np.testing.assert_array_equal(found, wanted)
    else:
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


CASES = [(op, name) for op in ("max_pool", "avg_pool") for name in POOLS]


@pytest.mark.parametrize(("case", "level"), covering(CASES, LEVELS), ids=str)
def test_symbolic_sizes(case, level) -> None:
    op, name = case
    spans, attributes = POOLS[name]
    module = program(op, attributes, ("n", "c", *"dhw"[3 - len(spans) :]))
    target = tw.Target("cpu", features=(level,), threads=2)
    assert is_used(module, target)
    run = tw.compile(module, target)
    for width in SIDES:
        if width >= spans[-1]:
            check(run, op, attributes, values((2, 3, *(max(5, s) for s in spans[:-1]), width)))


@pytest.mark.parametrize(("case", "level"), covering(CASES, LEVELS), ids=str)
def test_static_sizes(case, level) -> None:
    op, name = case
    spans, attributes = POOLS[name]
    target = tw.Target("cpu", features=(level,), threads=2)
    for width in (17, 66):
        x = values((1, 2, *(s + 4 for s in spans[:-1]), width))
        module = program(op, attributes, x.shape)
        assert is_used(module, target)
        check(tw.compile(module, target), op, attributes, x)


SHORT = (3, 7, 8, 11, 14, 15)
"""Widths of images whose rows of results are a part of a vector, or one vector."""


@pytest.mark.parametrize(("case", "level"), covering(CASES, LEVELS), ids=str)
def test_short_rows(case, level) -> None:
    """The lanes after a row are not stored, and the rows after it have their own results."""
    op, name = case
    spans, attributes = POOLS[name]
    target = tw.Target("cpu", features=(level,), threads=2)
    for width in [w for w in SHORT if w >= spans[-1]][::3]:
        x = values((2, 3, *(s + 4 for s in spans[:-1]), width))
        check(tw.compile(program(op, attributes, x.shape), target), op, attributes, x)


@pytest.mark.usefixtures("every_level")
@pytest.mark.parametrize("level", ALL_LEVELS)
def test_a_short_row_does_not_wait_for_the_row_before(level) -> None:
    """Each maximum starts at the first elements of its window, not at lanes of an earlier row."""
    target = tw.Target("cpu", features=(level,))
    sch = Schedule(program("max_pool", POOLS["2x2/2"][1], (1, 512, 14, 14)), target)
    sch.default_schedule()
    (kernel,) = sch.module.prims
    text = assembly(emit_module([lower_kernel(kernel, target).function], target), target)
    assert "vmaxps" in text
    assert "vblendps" not in text


@pytest.mark.parametrize(
    ("element", "level"), covering(["f64", "f16", "i8", "i32"], LEVELS), ids=str
)
def test_dtypes(element, level) -> None:
    _, attributes = POOLS["3x3/2 padded"]
    target = tw.Target("cpu", features=(level,), threads=2)
    for width in (3, 17, 150):
        x = values((2, 3, 9, width), element)
        module = program("max_pool", attributes, x.shape, element)
        assert is_used(module, target)
        check(tw.compile(module, target), "max_pool", attributes, x)


@pytest.mark.parametrize("level", LEVELS)
def test_special_values(level) -> None:
    """A window with a NaN has the maximum NaN; one of negative infinity keeps it."""
    _, attributes = POOLS["3x3/2 padded"]
    x = values((1, 2, 9, 35))
    x[0, 0, 4, 5], x[0, 0, 8, 34], x[0, 1] = np.nan, np.nan, -np.inf
    run = tw.compile(program("max_pool", attributes, x.shape), tw.Target("cpu", features=(level,)))
    check(run, "max_pool", attributes, x)


@pytest.mark.parametrize("level", LEVELS)
def test_blocks_around_the_reduction(level) -> None:
    """A block before the windows is computed per image, and those after them per strip."""
    module = parse("""
n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(2, 3, n, n), f32]):
    a = exp(x)
    b = max_pool(a, kernel=(2, 2), strides=(2, 2))
    c = relu(b)
    y = multiply(c, 2.0)
    return y
""")
    target = tw.Target("cpu", features=(level,), threads=2)
    assert is_used(module, target)
    run = tw.compile(module, target)
    for n in (2, 3, 37, 70):
        x = np.random.default_rng(n).standard_normal((2, 3, n, n)).astype(np.float32)
        parts = np.exp(x.astype(np.float64))[..., : n // 2 * 2, : n // 2 * 2]
        best = parts.reshape(2, 3, n // 2, 2, n // 2, 2).max((3, 5))
        np.testing.assert_allclose(run(x), best * 2, rtol=1e-6)


def kernel(value, image, result="(7, 33)", rows="7", columns="33"):
    return parse(f"""
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[{image}, f32], y: Out[{result}, f32]):
    for i in range({rows}):
        for j in range({columns}):
            for k in range(3):
                with block("max"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): y[vi, vj] = -inf
                    y[vi, vj] = max(y[vi, vj], {value})
""")


def test_channels_are_lanes_of_images_that_store_them_last() -> None:
    """Windows of rows have vectors along the columns, in strips of two."""
    sch = Schedule(kernel("x[vi * 2 + vk, vj]", "(15, 33)"), tw.Target("cpu", features=("avx512",)))
    sch.schedule_kernel("f")
    assert "schedule_windows" in str(sch.trace)
    kinds = [(sch.state.loop(x).kind, str(sch.state.loop(x).extent)) for x in sch.get_loops("max")]
    assert kinds == [("parallel", "7"), ("serial", "3"), ("unrolled", "3"), ("vectorized", "16")]


@pytest.mark.parametrize("level", LEVELS)
def test_no_results(level) -> None:
    module = kernel("x[vi * 2 + vk, vj]", "(15, n)", "(7, n)", columns="n")
    target = tw.Target("cpu", features=(level,))
    assert is_used(module, target)
    run = tw.compile(module, target)
    for n in (0, 1, 33, 97):
        x = values((15, n))
        found = run(x)
        parts = [x[k : k + 13 : 2] for k in range(3)]
        np.testing.assert_array_equal(found, np.maximum(np.maximum(*parts[:2]), parts[2]))


OTHER = {
    "columns far from each other": ("x[vi, vj * 8 + vk]", "(7, 259)"),
    "columns in two indices": ("x[vi + vj, vj + vk]", "(39, 35)"),
    "no windows": ("x[vk, vi, vj]", "(3, 7, 33)"),
    "reversed columns": ("x[vi, 34 - vj - vk]", "(7, 35)"),
}


@pytest.mark.parametrize("case", OTHER)
def test_other_reductions_keep_their_rule(case) -> None:
    sch = Schedule(kernel(*OTHER[case]), tw.Target("cpu"))
    with pytest.raises(tw.TilewrightError) as found:
        sch.schedule_windows("f")
    assert isinstance(found.value.__cause__ or found.value, RuleNotApplicableError)
    sch.schedule_kernel("f")
    assert "schedule_windows" not in str(sch.trace)


@pytest.mark.usefixtures("every_level")
@pytest.mark.parametrize("level", ALL_LEVELS)
def test_windows_have_contiguous_loads_and_no_calls_of_memory(level) -> None:
    """Elements at a distance of two are loaded by contiguous vectors, and results stay there."""
    target = tw.Target("cpu", features=(level,))
    module = program("max_pool", POOLS["2x2/2"][1], (4, 64, 32, 32))
    sch = Schedule(module, target)
    sch.default_schedule()
    lowered = lower_kernel(sch.module.prim("max_pool"), target)
    text = assembly(emit_module([lowered.function], target), target)
    assert "gather" not in text
    assert text.count("vmaxps") <= 16
    assert "vmaxss" not in text


@pytest.mark.parametrize("shape", [("n", "m"), ("n", 96), (96, "m"), (96, 96)], ids=str)
def test_code_of_large_windows_is_short(shape) -> None:
    """Conditions of padding have few versions: all rows of a window use the same code."""
    target = tw.Target("cpu", features=("avx512",))
    attributes = "kernel=(5, 5), padding=(2, 2, 2, 2)"
    sch = Schedule(program("max_pool", attributes, (2, 3, *shape)), target)
    sch.default_schedule()
    assert "schedule_windows" in str(sch.trace)
    lowered = lower_kernel(sch.module.prim("max_pool"), target)
    text = assembly(emit_module([lowered.function], target), target)
    assert text.count("\n") < 3000
