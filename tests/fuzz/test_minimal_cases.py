"""Minimal programs of defects found by random walks; each failed before its fix."""

from __future__ import annotations

import random

import pytest

from tilewright.codegen.lower import lower_kernel
from tilewright.ir.interpreter import run_prim
from tilewright.ir.script import parse
from tilewright.ir.verify import violations
from tilewright.schedules import Schedule
from tilewright.schedules.primitives.placement.compute_at import ComputeAt
from tilewright.schedules.primitives.reduction.rfactor import Rfactor
from tilewright.schedules.primitives.tensorize.pad_einsum import PadEinsum
from tilewright.target.target import Target

from tests.codegen.gpu.running import agrees
from tests.codegen.lower.test_random_programs import check
from tests.fuzz.program import Indices, Program
from tests.fuzz.walks import Walk
from tests.schedules.helpers import rejected
from tests.strategies import outputs, symbols_of

CPU, SIMT = Target("cpu", features=("avx2",)), Target("simt")


def agrees_everywhere(text: str, target: Target) -> None:
    """Schedule a program by the default rule, and run it on its target."""
    Walk(random.Random(0), Program("case", text), target).by_rule(target)


BAG = """
n, r = symbols("n r", lower=2)

@prim_func
def bag(x: Buffer[(r, 4), i32], at: Buffer[(n,), i32], y: Out[(4,), i32]):
    for i in range(n):
        for j in range(4):
            with block("bag"):
                vi, vj = reduce(i), spatial(j)
                with init(): y[vj] = 0
                with checked(at[vi], 0, r) as row:
                    y[vj] += x[row, vj]
"""


def test_a_partition_copies_values_read_from_memory_under_fresh_names():
    sch = Schedule(parse(BAG))
    sch.loop_partition(sch.get_loops(sch.get_block("bag"))[1], 2)
    assert violations(sch.module) == ()


PRODUCT = """
M, N, K = symbols("M N K", lower=1)

@prim_func
def random(A: Buffer[(M, K), {t}], B: Buffer[(K, N), {t}], C: Out[({out}), {t}]):
    for {a} in range({A}):
        for {b} in range({B}):
            for {c} in range({C}):
                with block("mm"):
                    v{a}, v{b}, v{c} = {kinds}
                    with init(): C[{at}] = {t}(0)
                    C[{at}] += A[vi, vk] * B[vk, vj]
"""


def product(order: str, out: str, dtype: str) -> str:
    """Return a matrix product with a given order of its loops and result dimensions."""
    extents = {"i": "M", "j": "N", "k": "K"}
    a, b, c = order
    kinds = ", ".join(f"{'reduce' if x == 'k' else 'spatial'}({x})" for x in order)
    return PRODUCT.format(
        a=a, b=b, c=c, A=extents[a], B=extents[b], C=extents[c], kinds=kinds, t=dtype,
        out=", ".join(extents[x] for x in out), at=", ".join(f"v{x}" for x in out),
    )  # fmt: skip


@pytest.mark.parametrize("target", [CPU, SIMT], ids=["cpu", "gpu"])
@pytest.mark.parametrize("out", ["ij", "ji"])
@pytest.mark.parametrize("order", ["jik", "kij"])
def test_default_rules_support_products_with_loops_in_any_order(order, out, target):
    agrees_everywhere(product(order, out, "f32"), target)


def test_a_product_with_loops_in_another_order_is_still_tiled():
    sch = Schedule(parse(product("ikj", "ij", "f32")), CPU)
    sch.schedule_kernel("random")
    assert [step.op for step in sch.trace.steps].count("tensorize") == 1


UNUSED = """
n = symbols("n", lower=1)

@prim_func
def random(x: Buffer[(n, 8), f32], y: Out[(n, 8), f32]):
    mean = alloc((n,), f32)
    unused = alloc((n,), f32)
    for i in range(n):
        for k in range(8):
            with block("mean"):
                vi, vk = spatial(i), reduce(k)
                with init(): mean[vi] = 0.0
                mean[vi] += x[vi, vk]
    for i1 in range(n):
        for k1 in range(8):
            with block("unused"):
                wi, wk = spatial(i1), reduce(k1)
                with init(): unused[wi] = 0.0
                unused[wi] += x[wi, wk]
    for i2 in range(n):
        for j in range(8):
            with block("shift"):
                ui, uj = spatial(i2), spatial(j)
                y[ui, uj] = x[ui, uj] - mean[ui]
"""


@pytest.mark.parametrize("target", [CPU, SIMT], ids=["cpu", "gpu"])
def test_default_rules_support_unused_results(target):
    agrees_everywhere(UNUSED, target)


FOLD = """
n = symbols("n", lower=1)

@prim_func
def fold(x: Buffer[(n, 16), {t}], y: Out[(n,), {t}]):
    for i in range(n):
        for k in range(16):
            with block("fold"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = {start}
                y[vi] = y[vi] {op} x[vi, vk]
"""
BITS = {"&": "{t}(-1)", "|": "{t}(0)", "^": "{t}(0)"}


def fold(op: str, dtype: str) -> Schedule:
    start = "u8(255)" if (op, dtype) == ("&", "u8") else BITS[op].format(t=dtype)
    return Schedule(parse(FOLD.format(op=op, t=dtype, start=start)))


@pytest.mark.parametrize("dtype", ["i32", "u8", "i64"])
@pytest.mark.parametrize("op", BITS)
def test_bits_are_combined_from_their_neutral_elements(op, dtype):
    sch = fold(op, dtype)
    before, block = sch.module.prims[0], sch.get_block("fold")
    outer, _ = sch.split(sch.get_loops(block)[1], (None, 5))
    sch.rfactor(block, outer)
    env = dict.fromkeys(symbols_of(before), 3)
    after = sch.module.prims[0]
    (wanted,), (found,) = outputs(before, run_prim, env), outputs(after, run_prim, env)
    assert (wanted == found).all()
    check(after, env, "avx2")


@pytest.mark.parametrize("dtype", ["i32", "u8"])
@pytest.mark.parametrize("op", BITS)
def test_lanes_of_a_vector_combine_bits(op, dtype):
    sch = fold(op, dtype)
    sch.decompose_reduction(sch.get_block("fold"), sch.get_loops(sch.get_block("fold"))[1])
    sch.vectorize(sch.split(sch.get_loops(sch.get_block("fold"))[1], (None, 5))[1])
    func = sch.module.prims[0]
    check(func, dict.fromkeys(symbols_of(func), 3), "avx2")


@pytest.mark.parametrize("dtype", ["i32", "u8"])
@pytest.mark.parametrize("op", BITS)
def test_threads_combine_bits(op, dtype):
    sch = fold(op, dtype)
    before = sch.module.prims[0]
    row, column = sch.get_loops(sch.get_block("fold"))
    sch.bind(row, "blockIdx.x")
    sch.bind(sch.split(column, (None, 32))[1], "threadIdx.x")
    agrees(sch.module.prims[0], before, {"n": 3})


def test_a_transposed_product_of_flat_threads_runs_as_thread_blocks():
    sch = Schedule(parse(product("ikj", "ji", "i32")), SIMT)
    before, block = sch.module.prims[0], sch.get_block("mm")
    i, k, j = sch.get_loops(block)
    sch.reorder((i, j, k))
    outer, thread = sch.split(sch.fuse((i, j)), (None, 32))
    sch.bind(outer, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    lower_kernel(sch.module.prims[0], SIMT)
    agrees(sch.module.prims[0], before, {"M": 9, "N": 7, "K": 5})


TOTAL = """
@prim_func
def total(x: Buffer[(5, 7), i32], y: Out[(), i32]):
    for i in range(5):
        for k in range(7):
            with block("total"):
                vi, vk = reduce(i), reduce(k)
                with init(): y[()] = 0
                y[()] = max(y[()], x[vi, vk])
"""


def test_pad_einsum_suggests_only_legal_padding():
    sch = Schedule(parse(TOTAL))
    assert (
        rejected(
            sch, PadEinsum(sch.get_block("total"), (16, 16)), PadEinsum.Requires.ZERO_PADDING
        ).fixes
        == ()
    )


def test_rfactor_does_not_suggest_a_loop_that_repeats_iterations():
    sch = fold("^", "i32")
    block = sch.get_block("fold")
    row, column = sch.get_loops(block)
    sch.split(column, (2, None, 3))  # with guards, some iterations have equal indices
    problem = rejected(sch, Rfactor(block, row), Rfactor.Requires.REDUCTION_LOOP)
    for fix in problem.fixes:
        assert sch.check(fix) == ()


CHAIN = """
@prim_func
def chain(x: Buffer[(8, 8), i32], y: Out[(8, 8), i32]):
    t = alloc((8, 8), i32)
    for i in range(8):
        for j in range(8):
            with block("first"):
                vi, vj = spatial(i), spatial(j)
                t[vi, vj] = x[vi, vj] + 1
    for a in range(8):
        for b in range(8):
            with block("second"):
                wa, wb = spatial(a), spatial(b)
                y[wa, wb] = t[wa, wb] * 2
    for c in range(8):
        with block("last"):
            uc = spatial(c)
            y[uc, 0] = y[uc, 0]
"""


def test_compute_at_does_not_suggest_a_vectorized_anchor():
    sch = Schedule(parse(CHAIN))
    first = sch.get_block("first")
    a, b = sch.get_loops(sch.get_block("second"))
    other = sch.get_loops(sch.get_block("last"))[0]
    sch.vectorize(b)
    assert rejected(sch, ComputeAt(first, other), ComputeAt.Requires.CONSUMERS_IN_LOOP).fixes == (
        ComputeAt(first, a),
    )


COMPLEX_AND_REAL = """
n, m = symbols("n m")

@prim_func
def random(x: Buffer[(n, m), c64], s: Out[(n,), c64], e: Out[(n,), f32]):
    for i in range(n):
        for k in range(m):
            with block("fold"):
                vi, vk = spatial(i), reduce(k)
                @reducer(identity=(0.0, 0.0))
                def both(a0: c64, a1: f32, b0: c64, b1: f32):
                    return a0 + b0, a1 + b1
                with init(): s[vi], e[vi] = 0.0, 0.0
                t = conj(x[vi, vk])
                s[vi], e[vi] = both(t, imag(t))
"""


def test_threads_combine_a_complex_and_a_real_result():
    agrees_everywhere(COMPLEX_AND_REAL, SIMT)


RAGGED_SCAN = """
n, m = symbols("n m", lower=0)

@prim_func
def random(off: Buffer[(n + 1,), i32], x: Buffer[(m,), i32], c: Buffer[(n,), i32],
           y: InOut[(m,), i32]):
    for i in range(n):
        with checked(off[i], 0, m + 1) as lo:
            with checked(off[i + 1], lo, m + 1) as hi:
                for j in range(hi - lo):
                    with block("scan"):
                        vi, vl, vj = spatial(i), spatial(m + 1, lo), ordered(m, j)
                        y[vl + vj] = scan(add, x[vl + vj], start=c[vi])
"""


def test_threads_scan_segments_of_a_ragged_array():
    spread = {"off": Indices("0", "m + 1", "sorted")}
    program = Program("case", RAGGED_SCAN, indices=spread)
    Walk(random.Random(0), program, SIMT).by_rule(SIMT)


IN_ORDER = """
n, m, k = symbols("n m k", lower=0)

@prim_func
def random(x: Buffer[(n, k), i32], w: Buffer[(k, m), i32], y: {mode}[(n, m), i32]):
    for i in range(n):
        for j in range(m):
            for r in range(k):
                with block("y"):
                    vi, vj, vr = spatial(i), spatial(j), reduce(r)
                    {update}
"""
HORNER = (
    "with init(): y[vi, vj] = 1\n                    y[vi, vj] = y[vi, vj] * x[vi, vr] + w[vr, vj]"
)


@pytest.mark.parametrize("target", [CPU, SIMT], ids=["cpu", "gpu"])
@pytest.mark.parametrize(
    ("mode", "update"), [("InOut", "y[vi, vj] -= x[vi, vr] * w[vr, vj]"), ("Out", HORNER)]
)
def test_reductions_in_order_are_vectorized_across_elements(mode, update, target):
    text = IN_ORDER.format(mode=mode, update=update)
    agrees_everywhere(text, target)
    if target == CPU:
        sch = Schedule(parse(text), target)
        sch.schedule_kernel("random")
        kinds = [sch.state.loop(loop).kind for loop in sch.get_loops("y")]
        assert kinds == ["parallel", "serial", "serial", "vectorized"]


POLYNOMIAL = """
{symbols}
@prim_func
def random(a: Buffer[({n},), f32], b: Buffer[(4,), f32], y: InOut[({n} + 3,), f32]):
    for i in range({n}):
        for r in range(4):
            with block("product"):
                vo, vk = {kinds[0]}({n} + 3, i + r), {kinds[1]}(4, r)
                y[vo] = y[vo] + a[vo - vk] * b[vk]
"""


@pytest.mark.parametrize("target", [CPU, SIMT], ids=["cpu", "gpu"])
@pytest.mark.parametrize("kinds", [("ordered", "ordered"), ("spatial", "reduce")])
def test_a_product_of_polynomials_with_one_coefficient(kinds, target):
    agrees_everywhere(POLYNOMIAL.format(symbols="", n=1, kinds=kinds), target)
    symbolic = POLYNOMIAL.format(symbols='n = symbols("n", lower=1)', n="n", kinds=kinds)
    sch = Schedule(parse(symbolic), target)
    sch.specialize("random", "n", 1, 1)
    assert violations(sch.module) == ()


COMPLEX_SUMS = """
@prim_func
def random(x: Buffer[(5, 3), f32], y: Out[(5 + 3 - 1,), c64]):
    for s in range(5 + 3 - 1):
        for r in range(max(min(s + 1, 5) - max(s - 3 + 1, 0), 0)):
            with block("y"):
                vs, vr = spatial(s), reduce(5, r + max(s - 3 + 1, 0))
                with init(): y[vs] = c64(0.0) * 1j
                y[vs] += c64(x[vr, vs - vr]) * 1j
"""


@pytest.mark.parametrize("target", [CPU, SIMT], ids=["cpu", "gpu"])
def test_complex_sums_of_anti_diagonals(target):
    """The threads of a GPU store two parts of each element."""
    agrees_everywhere(COMPLEX_SUMS, target)
