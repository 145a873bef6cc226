"""Decomposition of reduction blocks, including empty reduction domains."""

from itertools import product

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.ir.interpreter import call_prim
from tilewright.ir.loop.decompose import (
    InseparableInitError,
    around,
    decomposed,
    reduction_variables,
    without_variables,
)
from tilewright.ir.loop.nodes import Block
from tilewright.ir.loop.visit import walk
from tilewright.ir.script import parse
from tilewright.ir.symbolic import eq, ne, var
from tilewright.ir.verify import IllFormedProgramError
from tilewright.schedules import Schedule

SUM = """
M, N = symbols("M, N", lower=0)

@prim_func
def total(x: Buffer[(M, N), f32], y: Out[(M,), f32]):
    for i in range(M):
        for k in range(N):
            with block("sum"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = 0.0
                y[vi] += x[vi, vk]
"""

OUTSIDE = SUM.replace(
    "for i in range(M):\n        for k in range(N):",
    "for k in range(N):\n        for i in range(M):",
)

FUSED = """
M = symbols("M", lower=0)

@prim_func
def total(x: Buffer[(M, 4), f32], y: Out[(M,), f32]):
    for f in range(M * 4):
        with block("sum"):
            vi, vk = spatial(M, f // 4), reduce(4, f % 4)
            with init(): y[vi] = 0.0
            y[vi] += x[vi, vk]
"""

GUARDED = """
M, N = symbols("M, N", lower=0)

@prim_func
def total(x: Buffer[(M, N), f32], y: Out[(M,), f32]):
    for i0 in range(ceildiv(M, 4)):
        for k0 in range(ceildiv(N, 4)):
            for i1 in range(4):
                for k1 in range(4):
                    with block("sum"):
                        vi, vk = spatial(M, i0 * 4 + i1), reduce(N, k0 * 4 + k1)
                        guard(i0 * 4 + i1 < M and k0 * 4 + k1 < N)
                        with init(): y[vi] = 0.0
                        y[vi] += x[vi, vk]
"""

TRIANGLE = """
@prim_func
def triangle(x: Buffer[(8, 8), f32], y: Out[(8,), f32]):
    for k in range(8):
        for i in range(k + 1):
            with block("sum"):
                vi, vk = spatial(8, i), reduce(k)
                with init(): y[vi] = 0.0
                y[vi] += x[vi, vk]
"""


def the_function(text):
    return parse(text).prims[0]


@pytest.mark.parametrize("text", [SUM, OUTSIDE, FUSED, GUARDED])
def test_no_block_keeps_its_init(text):
    function = the_function(text)
    new = decomposed(function)
    assert all(s.init is None for s in walk(new.body) if isinstance(s, Block))
    assert decomposed(new) is new
    uids = [s.uid for s in walk(new.body) if hasattr(s, "uid")]
    assert len(uids) == len(set(uids))


def test_an_init_runs_for_the_iterations_of_all_reduction_iterations():
    """The first iteration of the reduction computes only one of the results."""
    function = the_function(TRIANGLE)
    assert all(s.init is None for s in walk(decomposed(function).body) if isinstance(s, Block))
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    (y,) = call_prim(function, [x])
    np.testing.assert_array_equal(y, np.triu(x).sum(axis=1))


def test_an_init_that_cannot_be_separated_is_an_error():
    text = TRIANGLE.replace("range(k + 1)", "range(n % (k + 1))").replace("range(8)", "range(m)")
    text = text.replace("spatial(8, i)", "spatial(8, i + 1)").replace("reduce(k)", "reduce(8, k)")
    text = text.replace("(x:", "(m: Int, n: Int, x:")
    with pytest.raises(InseparableInitError, match="block 'sum'"):
        decomposed(parse(text, check=False).prims[0])
    with pytest.raises(IllFormedProgramError, match="separable init"):
        parse(text)


DEPENDENT = """
n = symbols("n", lower=0)

@prim_func
def f(size: Buffer[(n,), i32], row: Buffer[(n,), i32], x: Buffer[(n, n), f32], y: Out[(n,), f32]):
    for k in range(n):
        {first}
            {second}
                with block("sum"):
                    vi, vk = spatial(n, {index}), reduce(n, k)
                    with init(): y[vi] = 0.0
                    y[vi] += x[vk, vi]
"""
"""The spatial iterations depend on the reduction loop, or on an integer loaded inside of it."""

CASES = {
    "growing": ("", "for i in range(k + 1):", "i", lambda k, n, v: range(k + 1)),
    "shrinking": ("", "for i in range(n - k):", "i", lambda k, n, v: range(n - k)),
    "up and down": (
        "",
        "for i in range(min(k + 1, n - k)):",
        "i",
        lambda k, n, v: range(min(k + 1, n - k)),
    ),
    "without an order": (
        "",
        "for i in range(min(n, k % 3 + 1)):",
        "i",
        lambda k, n, v: range(min(n, k % 3 + 1)),
    ),
    "from the end": (
        "",
        "for i in range(k + 1):",
        "n - 1 - i",
        lambda k, n, v: range(n - 1 - k, n),
    ),
    "loaded size": ("size[k], 0, n + 1", "for i in range(p):", "i", lambda k, n, v: range(v[k])),
    "loaded index": ("row[k], 0, n", "for i in range(1):", "p", lambda k, n, v: [v[k]]),
    "loaded start": (
        "row[k], 0, n",
        "for i in range(n - p):",
        "p + i",
        lambda k, n, v: range(v[k], n),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_results_of_loops_that_depend_on_the_reduction_are_initialized(case):
    load, second, index, reached = CASES[case]
    first = f"with checked({load}) as p:" if load else "if True:"
    module = parse(DEPENDENT.format(first=first, second=second, index=index))
    exe = compile(module)
    for n in (0, 1, 2, 3, 7, 13, 37):
        rng = np.random.default_rng(n)
        size = rng.integers(0, n + 1, n).astype(np.int32)
        row = rng.integers(0, max(n, 1), n).astype(np.int32)
        x = rng.integers(-8, 8, (n, n)).astype(np.float32)
        want = np.zeros(n, np.float32)
        for k in range(n):
            chosen = list(reached(k, n, size if "size" in load else row))
            want[chosen] += x[k, chosen]
        results = slice(3 if case == "without an order" else n)
        (y,) = call_prim(module.prims[0], [size, row, x])
        np.testing.assert_array_equal(y[results], want[results])
        np.testing.assert_array_equal(exe["f"](size, row, x)[results], want[results])


OUTSIDE_OF_BUFFER = """
@prim_func
def f(x: Buffer[(8,), f32], y: Out[({size},), f32]):
    for i in range(8):
        for k in range(8):
            if i + k < 4:
                with block("sum"):
                    vi, vk = spatial(8, i), reduce(8, k)
                    with init(): y[vi] = 0.0
                    y[vi] += x[vk]
"""


def test_a_condition_on_the_reduction_does_not_bound_the_accesses_of_the_init():
    (y,) = call_prim(the_function(OUTSIDE_OF_BUFFER.format(size=8)), [np.ones(8, np.float32)])
    assert y.tolist() == [4, 3, 2, 1, 0, 0, 0, 0]
    with pytest.raises(
        IllFormedProgramError, match=r"y\[vi\]: index vi of axis 0 is not in \[0, 4\)"
    ):
        parse(OUTSIDE_OF_BUFFER.format(size=4))


@pytest.mark.parametrize("text", [SUM, OUTSIDE, GUARDED])
@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (0, 0), (5, 7)])
def test_an_empty_sum_is_zero(text, shape):
    function = the_function(text)
    x = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
    (y,) = call_prim(function, [x])
    np.testing.assert_array_equal(y, x.sum(axis=1))


@pytest.mark.parametrize("text", [SUM, OUTSIDE, GUARDED])
def test_an_empty_sum_is_zero_compiled(text):
    exe = compile(parse(text))
    for shape in [(3, 0), (5, 7)]:
        x = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
        np.testing.assert_array_equal(exe["total"](x), x.sum(axis=1))


BRANCHES = """
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(6, n), f32], y: InOut[(6,), f32]):
    for i in range(6):
        if i < 4:
            for k in range(n):
                if k >= 2:
                    with block("then"):
                        vi, vk = spatial(6, i), reduce(n, k)
                        with init(): y[vi] = 0.0
                        y[vi] += x[vi, vk]
        else:
            for k2 in range(n):
                if i == 5 and k2 == 1:
                    y[0] = y[0]
                else:
                    with block("otherwise"):
                        wi, wk = spatial(6, i), reduce(n, k2)
                        with init(): y[wi] = 10.0
                        y[wi] += x[wi, wk]
"""


@pytest.mark.parametrize("n", [0, 1, 5])
def test_branches_on_the_reduction_do_not_keep_the_init_from_running(n):
    x = np.arange(6 * n, dtype=np.float32).reshape(6, n)
    y = np.full(6, 7.0, np.float32)
    (y,) = call_prim(parse(BRANCHES).prims[0], [x, y])
    want = [*x[:4, 2:].sum(1), 10 + x[4].sum(), 10 + x[5].sum() - (x[5, 1] if n > 1 else 0)]
    np.testing.assert_array_equal(y, np.asarray(want, np.float32))


POLYNOMIALS = """
@prim_func
def f(a: Buffer[(7,), f32], b: Buffer[(3,), f32], y: Out[(9,), f32]):
    for {first} in range({m}):
        for {second} in range({n}):
            with block("sum"):
                vi, vk = spatial(9, i + k), reduce(3, k)
                with init(): y[vi] = 0.0
                y[vi] += a[vi - vk] * b[vk]
"""


@pytest.mark.parametrize("order", [("i", 7, "k", 3), ("k", 3, "i", 7)])
def test_results_with_terms_in_several_iterations_are_initialized_before_all_of_them(order):
    first, m, second, n = order
    text = POLYNOMIALS.format(first=first, m=m, second=second, n=n)
    a, b = np.arange(1, 8, dtype=np.float32), np.asarray([1, 10, 100], np.float32)
    (y,) = call_prim(parse(text).prims[0], [a, b])
    np.testing.assert_array_equal(y, np.convolve(a, b))


RAGGED = """
n = symbols("n", lower=1)
l = symbols("l", lower=1)

@prim_func
def smallest(off: Buffer[(n + 1,), i32], x: Buffer[(l,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with checked(off[i], 0, l + 1) as lo:
            with checked(off[i + 1], lo, l + 1) as hi:
                for j in range(2):
                    for k in range((hi - lo) // 2):
                        with block("s"):
                            vi = spatial(i)
                            vl = spatial(l + 1, lo)
                            vj = reduce(l, ((hi - lo) // 2) * j + k)
                            with init(): y[vi] = inf
                            y[vi] = min(y[vi], x[vl + vj])
"""


def test_an_integer_of_the_row_in_the_binding_of_a_reduction_does_not_iterate_it():
    new = decomposed(the_function(RAGGED))
    assert all(s.init is None for s in walk(new.body) if isinstance(s, Block))
    offsets, x = np.array([0, 0, 2], np.int32), np.array([3.0, 1.0], np.float32)
    function = the_function(RAGGED)
    assert call_prim(function, [offsets, x], {"n": 2})[0].tolist() == [np.inf, 1.0]


CONVOLUTION = """
n = symbols("n", lower=0)
m = symbols("m", lower=0)

@prim_func
def convolve(a: Buffer[(n,), i32], b: Buffer[(m,), i32], c: Out[(n + m,), i32]):
    for s in range(n + m):
        for i in range(max(min(s + 1, n) - max(s - m + 1, 0), 0)):
            with block("c"):
                vs, vi = spatial(s), reduce(n, i + max(s - m + 1, 0))
                with init(): c[vs] = 0
                c[vs] += a[vi] * b[vs - vi]
"""

DIAGONAL_SIZES = (0, 1, 2, 3, 7, 17)


def check_convolution(call):
    for n, m in product(DIAGONAL_SIZES, repeat=2):
        a, b = np.arange(1, n + 1, dtype=np.int32), np.arange(3, m + 3, dtype=np.int32)
        expected = np.zeros(n + m, np.int32)
        if n and m:
            expected[:-1] = np.convolve(a, b)
        np.testing.assert_array_equal(call(a, b), expected)


def test_a_loop_that_is_a_spatial_variable_does_not_iterate_a_reduction_from_its_value_on():
    function = the_function(CONVOLUTION)
    check_convolution(lambda a, b: call_prim(function, [a, b])[0])


@pytest.mark.parametrize("sizes", [None, (None, 4)])
def test_a_reduction_over_an_anti_diagonal_compiles(sizes):
    sch = Schedule(parse(CONVOLUTION))
    if sizes is not None:
        sch.split("s", sizes)
    check_convolution(compile(sch.module)["convolve"])


@pytest.mark.parametrize(
    ("bindings", "reducing"),
    [
        ("spatial(64, a), reduce(64, b + a)", {"b"}),
        ("spatial(64, 63 - a), reduce(64, b + a)", {"b"}),
        ("spatial(64, a * 4 + c), reduce(64, b + a + c)", {"b"}),
        ("spatial(64, a * 3 + c), reduce(64, b + a + c)", {"a", "b", "c"}),
        ("spatial(64, a // 4), reduce(64, b + a % 4)", {"a", "b"}),
        ("spatial(64, a + b), reduce(64, b)", {"a", "b"}),
        ("spatial(64, a * 2 + c + u * 3), reduce(64, b + a + c)", {"a", "b", "c", "u"}),
        ("spatial(64, a * 2 + c + u * 3), reduce(64, b + a + c)\nguard(c < 2)", {"b"}),
        ("spatial(64, a * 2 + c), reduce(64, b + a + c + u)\nguard(a + c * 3 < 6)", {"b", "u"}),
    ],
)
def test_loops_that_spatial_variables_determine_do_not_iterate_the_reduction(bindings, reducing):
    text = """
@prim_func
def f(x: Buffer[(64,), f32], y: InOut[(64,), f32]):
    for a in range(8):
        for c in range(4):
            for u in range(1):
                for b in range(8):
                    with block("y"):
                        vs, vr = BINDINGS
                        with init(): y[vs] = 0.0
                        y[vs] += x[vr]
""".replace("BINDINGS", bindings.replace("\n", "\n" + " " * 24))
    function = the_function(text)
    (block,) = (s for s in walk(function.body) if isinstance(s, Block))
    found = reduction_variables(around(function.body, block), block)
    assert {v.name for v in found} == reducing


LIMITED = """
n = symbols("n", lower=0)

@prim_func
def f(a: Int, x: Buffer[(n, 4), f32], r: InOut[(n,), f32]):
    for i in range(n):
        for k0 in range(2):
            for k1 in range(2):
                if {condition}:
                    with block("sum"):
                        vi, vk = spatial(i), reduce(4, k0 * 2 + k1)
                        with init(): r[vi] = 0.0
                        r[vi] += x[vi, vk]
"""

LIMITS = {
    "the loop of the results": ("a > i", lambda a, i, k: a > i, lambda a, i: a > i),
    "a digit that does not matter": (
        "i * 2 + k1 < a * 2",
        lambda a, i, k: i < a,
        lambda a, i: i < a,
    ),
    "a digit that matters": (
        "i + k1 < a",
        lambda a, i, k: i + k % 2 < a,
        lambda a, i: True,
    ),
    "the reduction alone": ("k0 * 2 + k1 < a", lambda a, i, k: k < a, lambda a, i: True),
    "both": (
        "i * 2 + k1 < a * 2 and k0 < a",
        lambda a, i, k: i < a and k // 2 < a,
        lambda a, i: i < a,
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_condition_keeps_the_init_from_running_unless_it_depends_on_the_reduction(name):
    text, runs, starts = LIMITS[name]
    module = parse(LIMITED.format(condition=text))
    function, compiled = module.prims[0], compile(module)
    for n, a in product((0, 1, 2, 3, 5), (-1, 0, 1, 2, 3, 4)):
        x = np.arange(4 * n, dtype=np.float32).reshape(n, 4) + 1
        r = np.full(n, 7, np.float32)
        expected = [
            sum(x[i, k] for k in range(4) if runs(a, i, k)) + (0 if starts(a, i) else r[i])
            for i in range(n)
        ]
        np.testing.assert_array_equal(call_prim(function, [x, r.copy()], {"a": a})[0], expected)
        np.testing.assert_array_equal(compiled(a, x, r.copy()), expected)


TILED = """
n, k = symbols("n, k", lower=0)

@prim_func
def f(a: Int, x: Buffer[(n, k), f32], r: InOut[(n,), f32]):
    for i0 in range(ceildiv(n, 2)):
        for i1 in range(2):
            for j in range(k):
                if a > i0 * 2 + i1:
                    with block("sum"):
                        vi, vj = spatial(n, i0 * 2 + i1), reduce(j)
                        guard(i0 * 2 + i1 < n)
                        with init(): r[vi] = 0.0
                        r[vi] += x[vi, vj]
"""


def test_results_of_a_branch_that_is_not_taken_are_unchanged():
    """The branch limits the spatial iterations, and the reduction may be empty."""
    module = parse(TILED)
    function, compiled = module.prims[0], compile(module)
    for n, k, a in product((0, 1, 3, 6), (0, 1, 3), (0, 1, 2, 5)):
        x, r = np.ones((n, k), np.float32), np.full(n, 7, np.float32)
        expected = np.where(np.arange(n) < a, k, 7)
        np.testing.assert_array_equal(call_prim(function, [x, r.copy()], {"a": a})[0], expected)
        np.testing.assert_array_equal(compiled(a, x, r.copy()), expected)


def test_conditions_without_variables():
    i, n = var("i"), var("n")
    k = var("k", lower=0, upper=1)
    assert without_variables(i * 2 + k < n * 2, {k}) is (i < n)
    assert without_variables(i < n, {k}) is (i < n)
    for condition in (i + k < n, i * k < n, (i + k) % 2 < n, eq(i * 2 + k, n)):
        assert without_variables(condition, {k}) is None
    assert without_variables(i + n < 3, {n}) is None


@pytest.mark.parametrize("compare", [eq, ne])
def test_an_equality_that_holds_between_the_ends_of_a_range_is_kept(compare):
    """At both ends, ``3 * i + k == 1`` is false for divisibility, and true for ``k == 1``."""
    i, k = var("i"), var("k", lower=0, upper=2)
    assert without_variables(compare(i * 3 + k, 1), {k}) is None
