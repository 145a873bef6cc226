"""Programs whose claims, sizes, and indices are proved, or checked at entry or in the kernel."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.codegen.errors import FactError, KernelError, SizeError
from tilewright.codegen.simt.findings import TrapError
from tilewright.errors import TilewrightError
from tilewright.ir.interpreter import run_prim
from tilewright.ir.interpreter.elements import OutOfBoundsError
from tilewright.ir.script import ScriptSyntaxError, parse
from tilewright.ir.verify import IllFormedProgramError
from tilewright.target.target import Target

X = np.arange(8, dtype=np.float32)
COPY = """
n = symbols("n", lower=0)
@prim_func
def f(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        y[i] = {}
"""
LIKELY = """
n = symbols("n", lower=1)
@prim_func
def f(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    fact(n <= 8, "likely", by="{}")
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            y[vi] = where(condition(n <= 8), 1.0, 2.0)
"""


def interpreted(text: str, *arrays: np.ndarray, **scalars: int) -> np.ndarray:
    """Return the last array after running the function ``f`` of a text in the interpreter."""
    run_prim(parse(text).prim("f"), arrays, scalars)
    return arrays[-1]


def test_a_hint_is_not_a_fact_in_any_decision() -> None:
    text = LIKELY.format("assumed_hint")
    x, y = np.ones(12, np.float32), np.zeros(12, np.float32)
    assert (interpreted(text, x, y) == 2.0).all()
    assert (compile(parse(text))(x) == 2.0).all()


def test_a_claimed_proof_that_does_not_hold_is_an_error() -> None:
    with pytest.raises(ScriptSyntaxError, match=r"claimed proof of 'n <= 8' does not hold"):
        parse(LIKELY.format("proof"))


def test_a_claimed_proof_of_divisibility_writes_no_extra_elements() -> None:
    text = COPY.format("x[i]").replace(
        "    for", '    fact(n % 64 == 0, "c", by="proof")\n    for', 1
    )
    with pytest.raises(ScriptSyntaxError, match="it is false for n = "):
        parse(text)
    exe = compile(parse(text.replace('"proof"', '"entry_check"')))
    with pytest.raises(FactError, match="n % 64 == 0"):
        exe(np.ones(9, np.float32))


def test_a_claimed_proof_that_follows_from_the_other_facts_is_accepted() -> None:
    facts = '    fact(n % 64 == 0)\n    fact(n % 32 == 0, "c", by="proof")\n    for'
    module = parse(COPY.format("x[i]").replace("    for", facts, 1))
    assert [f.discharge.name for f in module.prim("f").facts] == ["ENTRY_CHECK", "PROOF"]


def test_an_index_from_an_integer_argument_is_checked_at_entry() -> None:
    text = """
@prim_func
def f(a: Int, x: Buffer[(8,), f32], y: Out[(4,), f32]):
    for i in range(4):
        y[i] = x[i + a]
"""
    exe = compile(parse(text))
    for a in (0, 1, 4):
        assert np.array_equal(exe(a, X), X[a : a + 4])
    for a in (-1, 5, 2**40, -(2**63)):
        with pytest.raises(FactError, match=f"false for a = {a}"):
            exe(a, X)
        with pytest.raises(TilewrightError, match=f"a = {a}"):
            interpreted(text, X, np.zeros(4, np.float32), a=a)


def test_a_write_to_an_index_from_an_integer_argument_is_checked_at_entry() -> None:
    text = """
@prim_func
def f(a: Int, x: Buffer[(4,), f32], y: InOut[(8,), f32]):
    for i in range(4):
        y[i + a] = x[i]
"""
    with pytest.raises(FactError, match="false for a = 5"):
        compile(parse(text))(5, X[:4], X.copy())


@pytest.mark.parametrize("index", ["-1", "i + 1000000000", "n", "n + i"])
def test_an_index_outside_for_all_arguments_is_refused_by_the_parser(index: str) -> None:
    with pytest.raises(IllFormedProgramError, match=r"is not in \[0, n\) for all arguments"):
        parse(COPY.format(f"x[{index}]"))


SIMT = Target("simt", arch="sm_80")


@pytest.mark.parametrize("target", [Target("cpu"), SIMT], ids=str)
def test_an_index_without_a_proof_is_checked_in_the_kernel(target: Target) -> None:
    text = COPY.format("x[i * i]")
    exe = compile(parse(text), target)
    for n in (0, 1, 2):
        assert np.array_equal(exe(X[:n]), X[:n])
    for n in (3, 8, 40):
        x = np.ones(n, np.float32)
        with pytest.raises((KernelError, TrapError), match=r"out of (bounds|range)") as caught:
            exe(x)
        assert "x[" in str(caught.value) or "operation" in str(caught.value)
        with pytest.raises(OutOfBoundsError, match=f"not in \\[0, {n}\\)"):
            interpreted(text, x, x.copy())


SELECTED = """
n = symbols("n", lower=0)
@prim_func
def f(p: Buffer[(n,), i32], w: Buffer[(n,), f32], x: Buffer[(8,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with checked(p[i], 0, 16) as v:
            y[i] = where(w[i] > 0.0, x[v + 1], 0.5)
"""


@pytest.mark.parametrize("target", [Target("cpu"), SIMT], ids=str)
@pytest.mark.parametrize("n", [1, 7, 33])
def test_only_accesses_that_run_are_checked(target: Target, n: int) -> None:
    exe = compile(parse(SELECTED), target)
    p, w = (np.arange(n) % 16).astype(np.int32), np.ones(n, np.float32)
    w[p + 1 >= 8] = -1.0
    expected = interpreted(SELECTED, p, w, X, np.zeros(n, np.float32))
    assert np.array_equal(exe(p, w, X), expected)
    p[n // 2], w[n // 2] = 15, 1.0
    with pytest.raises((KernelError, TrapError), match="16"):
        exe(p, w, X)
    with pytest.raises(OutOfBoundsError, match="index 16"):
        interpreted(SELECTED, p, w, X, np.zeros(n, np.float32))


CAUSAL = """
n = symbols("n", lower=1)
k = symbols("k", lower=0)

@prim_func(scheduled=True)
def f(x: Buffer[(n, n), f32], w: Buffer[(n, k), f32], y: InOut[(n, k), f32]):
    for i_d in {outer}:
        for j_0 in range((k * 255 + i_d) // (k * 256)):
            for j_1 in {inner}:
                with block("y"):
                    vi = spatial(n, i_d // k)
                    vd = spatial(k, i_d % k)
                    vj = reduce(n, j_0 * 256 + j_1)
                    guard(k + k * j_0 * 256 + k * j_1 <= i_d)
                    with init(): y[vi, vd] = 0.0
                    y[vi, vd] += x[vi, vj] * w[vj, vd]
"""
THREADS = ('thread(n * k, "blockIdx.x")', 'thread(256, "threadIdx.x")')


@pytest.mark.parametrize(
    ("target", "loops"),
    [(Target("cpu"), ("parallel(n * k)", "range(256)")), (SIMT, THREADS)],
    ids=["cpu", "simt"],
)
def test_a_guard_that_is_not_linear_refuses_no_legal_call(
    target: Target, loops: tuple[str, str]
) -> None:
    module = parse(CAUSAL.format(outer=loops[0], inner=loops[1]))
    assert not module.prim("f").facts
    exe = compile(module, target)
    for n, k in ((1, 1), (3, 2), (1, 0), (5, 4)):
        x = np.arange(n * n, dtype=np.float32).reshape(n, n)
        w = np.arange(n * k, dtype=np.float32).reshape(n, k) - 3
        y = np.full((n, k), 9, np.float32)
        assert np.array_equal(exe(x, w, y), np.tril(x, -1) @ w)


def test_a_store_without_a_proof_is_checked_in_parallel_and_vectorized_loops() -> None:
    text = """
n = symbols("n", lower=0)
@prim_func(scheduled=True)
def f(a: Int, x: Buffer[(n,), f32], y: InOut[(n,), f32]):
    for o in parallel((n + 15) // 16):
        for v in vectorized(16):
            with block("y"):
                vi = spatial(n, o * 16 + v)
                guard(o * 16 + v < n and (o * 16 + v) * a < 100)
                y[vi + a] = x[vi] + 1.0
"""
    exe = compile(parse(text))
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    assert np.array_equal(exe(0, x, y), x + 1)
    assert np.array_equal(exe(5, x, y)[5:25], x[:20] + 1)
    for a in (-1, 64):
        guarded = np.pad(y.copy(), 64)
        with pytest.raises(KernelError, match=r"y: index of axis 0 .*in block 'y'.* extent 64"):
            exe(a, x, guarded[64:128])
        assert not guarded[:64].any()
        assert not guarded[128:].any()


def test_an_init_is_not_written_outside_if_its_reduction_is_empty() -> None:
    text = """
k = symbols("k", lower=0)
@prim_func
def f(a: Int, x: Buffer[(4, k), f32], y: InOut[(8,), f32]):
    for i in range(4):
        for j in range(k):
            with block("s"):
                vi, vj = spatial(i), reduce(j)
                with init(): y[vi + a] = 0.0
                y[vi + a] += x[vi, vj]
"""
    exe = compile(parse(text))
    assert exe(4, np.ones((4, 0), np.float32), X.copy()).tolist() == [0, 1, 2, 3, 0, 0, 0, 0]
    with pytest.raises(FactError, match="a = 100"):
        exe(100, np.ones((4, 0), np.float32), X.copy())


def test_an_index_without_a_proof_is_proved_by_a_guard() -> None:
    guarded = COPY.format("where(condition(i * i < n), x[i * i], 0.0)")
    assert np.array_equal(compile(parse(guarded))(X), np.float32([0, 1, 4, 0, 0, 0, 0, 0]))


@pytest.mark.parametrize("operation", ["//", "%"])
def test_a_division_by_an_integer_argument_has_one_meaning(operation: str) -> None:
    text = f"""
@prim_func
def f(a: Int, b: Int, y: Out[(2,), i64]):
    for i in range(2):
        y[i] = index(a {operation} b, i64)
"""
    exe = compile(parse(text))
    for a, b in ((7, 2), (-7, 2), (7, -2), (-7, -1), (2**59, -1)):
        expected = a // b if operation == "//" else a % b
        assert exe(a, b)[0] == expected
        assert interpreted(text, np.zeros(2, np.int64), a=a, b=b)[0] == expected
    with pytest.raises(FactError, match="b = 0"):
        exe(1, 0)
    with pytest.raises(TilewrightError, match="b = 0"):
        interpreted(text, np.zeros(2, np.int64), a=1, b=0)


def test_the_smallest_integer_divided_by_minus_one_does_not_end_the_process() -> None:
    program = """
import tilewright as tw
exe = tw.compile(tw.parse('''
@prim_func
def f(a: Int, b: Int, y: Out[(8,), i64]):
    for i in range(8):
        y[i] = index(a // b + a % b, i64)
'''))
try:
    exe(-2**63, -1)
except tw.TilewrightError as error:
    print(type(error).__name__)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "SizeError"), done.stderr


@pytest.mark.parametrize("term", ["i // 0", "i % 0", "i // (n - n)"])
def test_a_literal_divisor_of_zero_is_refused_by_the_parser(term: str) -> None:
    with pytest.raises(ScriptSyntaxError, match="division by zero"):
        parse(COPY.format(f"x[{term}]"))


TEMPORARY = """
n = symbols("n", lower=0)
@prim_func
def f(m: Int, x: Buffer[(n,), f32], y: Out[(n,), f32]):
    t = alloc({shape}, f32)
    for i in range(n):
        if i < m:
            t[{index}] = x[i]
            y[i] = t[{index}]
"""


def temporary(shape: str) -> str:
    return TEMPORARY.format(shape=shape, index=", ".join("i" * shape.count("m")))


@pytest.mark.parametrize(("shape", "m"), [("(m, m, m, m)", 65536), ("(m,)", 2**62)])
def test_sizes_of_temporaries_are_checked_at_entry(shape: str, m: int) -> None:
    text = temporary(shape)
    exe = compile(parse(text))
    assert np.array_equal(exe(8, X), X)
    with pytest.raises(SizeError, match="overflows"):
        exe(m, X)
    with pytest.raises(TilewrightError, match="limit of 2"):
        interpreted(text, X, X.copy(), m=m)


@pytest.mark.parametrize("shape", ["(m,)", "(m, m)", "(m, m, m)"])
def test_a_temporary_of_negative_size_has_no_elements(shape: str) -> None:
    """No iteration uses it, wherever it is allocated and however its loops are scheduled."""
    text = temporary(shape).replace("y: Out", "y: InOut")
    exe = compile(parse(text))
    for m, expected in [(-5, X * 0), (0, X * 0), (3, np.where(np.arange(8) < 3, X, 0))]:
        y = np.zeros_like(X)
        exe(m, X, y)
        assert np.array_equal(y, expected)
        assert np.array_equal(interpreted(text, X, np.zeros_like(X), m=m), expected)


KEPT = """
n = symbols("n", lower=0)
@prim_func(scheduled=True)
def f(m: Int, x: Buffer[(n,), f32], y: InOut[(n,), f32]):
    s = alloc((m, m), f32)
    t = alloc((n,), f32)
    for i in {loop}(n{axis}):
        t[i] = x[i] + 1.0
    for j in {loop}(n{axis}):
        for k in range(m):
            s[j, k] = x[j]
        for l in range(m):
            y[j] = y[j] + s[j, l]
        y[j] = y[j] + t[n - 1 - j]
"""


@pytest.mark.parametrize("kind", ["cpu", "simt"])
def test_a_temporary_of_negative_size_has_no_bytes_of_others(kind: str) -> None:
    thread = {"cpu": ("range", ""), "simt": ("thread", ', "blockIdx.x"')}[kind]
    text = KEPT.format(loop=thread[0], axis=thread[1])
    if kind == "simt":  # two loops over blocks are two kernels
        text = text.replace("blockIdx.x", "threadIdx.x").replace('n, "', '8, "')
        text = text.replace("(n,)", "(8,)").replace("n - 1", "7")
    exe = compile(parse(text), Target(kind))
    reversed_sum = X[::-1] + 1
    for m in (-5, 0, 8):
        y = np.zeros_like(X)
        exe(m, X, y)
        expected = reversed_sum + max(m, 0) * X
        assert np.array_equal(y, expected), m
        assert np.array_equal(interpreted(text, X, np.zeros_like(X), m=m), expected)


def test_a_clamped_index_needs_a_range_that_is_not_empty() -> None:
    text = """
n = symbols("n", lower=0)
@prim_func
def f(p: Buffer[(4,), i32], x: Buffer[(n,), f32], y: Out[(4,), f32]):
    for i in range(4):
        with clamped(p[i], 0, n) as q:
            y[i] = x[q]
"""
    p = np.array([-3, 0, 2, 99], np.int32)
    exe = compile(parse(text))
    assert np.array_equal(exe(p, X), np.float32([0, 0, 2, 7]))
    with pytest.raises(FactError, match="n = 0"):
        exe(p, X[:0])


def test_a_clamped_index_in_a_loop_over_its_range_needs_no_check() -> None:
    text = """
n = symbols("n", lower=0)
@prim_func
def f(p: Buffer[(n,), i32], x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with clamped(p[i], 0, n) as q:
            y[i] = x[q]
"""
    assert len(parse(text).prim("f").facts) == 0
    assert compile(parse(text))(np.zeros(0, np.int32), X[:0]).shape == (0,)


def test_loops_with_a_negative_extent_have_no_iterations() -> None:
    text = """
n, m = symbols("n m", lower=1)
@prim_func
def f(x: Buffer[(n, m), f32], y: InOut[(n, m), f32]):
    for i in range(n - 3):
        for j in range(m - 3):
            with block("y"):
                vi, vj = spatial(n, i), spatial(m, j)
                y[vi, vj] = x[vi, vj]
"""
    exe = compile(parse(text))
    for n, m in ((1, 1), (2, 5), (5, 2), (4, 4)):
        expected = np.zeros((n, m), np.float32)
        expected[: max(n - 3, 0), : max(m - 3, 0)] = 1
        y = np.zeros((n, m), np.float32)
        assert np.array_equal(exe(np.ones((n, m), np.float32), y), expected)


@pytest.mark.parametrize("init", ["y[vi] = x[vi, vk]", "if vk < 3: y[vi] = 0.0"])
def test_an_init_with_the_reduction_variable_is_refused(init: str) -> None:
    text = f"""
@prim_func
def f(x: Buffer[(4, 8), f32], y: Out[(4,), f32]):
    for i in range(4):
        for k in range(8):
            with block("s"):
                vi, vk = spatial(i), reduce(k)
                with init():
                    {init}
                y[vi] += x[vi, vk]
"""
    with pytest.raises(IllFormedProgramError, match="the init contains reduction variable 'vk'"):
        parse(text)


def test_an_output_that_is_never_written_is_refused() -> None:
    with pytest.raises(IllFormedProgramError, match="output 'y' is never written"):
        parse("@prim_func\ndef f(y: Out[(8,), f32]):\n    pass")


def test_a_block_that_uses_an_outer_loop_variable_is_refused() -> None:
    text = COPY.replace(
        "y[i] = {}", 'with block("y"):\n            vi = spatial(i)\n            y[i] = x[vi]'
    )
    with pytest.raises(IllFormedProgramError, match="L5 block isolation"):
        compile(parse(text, check=False))


MODEL = """<ir_version: 8, opset_import: ["" : 17]> g (float[n] x, float[m] y)
    => (float[n] z, float[n] w, float[a] q) {
  a = Softmax(y)
  a2 = Softmax(a)
  q = ReduceSum(a2)
  b = Softmax(x)
  b2 = Softmax(b)
  w = Softmax(b2)
  z = Add(x, y)
}"""


def test_a_check_precedes_all_kernels_whose_memory_relies_on_it() -> None:
    program = f"""
from onnx import parser
import numpy as np, tilewright as tw
exe = tw.compile(tw.from_onnx(parser.parse_model('''{MODEL}''')))
try:
    exe(np.ones(10**7, "f4"), np.ones(1, "f4"))
except tw.TilewrightError as error:
    print(type(error).__name__, error.details["values"])
print(exe(np.ones(10, "f4"), np.ones(10, "f4"))[0].shape)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "CheckError {'n': 10000000, 'm': 1}\n(10,)\n"


def test_facts_of_a_kernel_are_checked_at_its_call() -> None:
    text = """
n = symbols("n", lower=0)
@prim_func
def half(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    fact(n % 2 == 0, "pairs", by="{by}")
    for i in range(n):
        y[i] = x[i] * 0.5

@graph_func
def main(x: Tensor[(n,), f32]):
    y: Tensor[(n,), f32] = call_tir(half, x)
    return y
"""
    for by in ("entry_check", "caller"):
        exe = compile(parse(text.format(by=by)))
        assert exe(X).shape == (8,)
        with pytest.raises(FactError, match="n % 2 == 0"):
            exe(X[:7])


@pytest.mark.parametrize(
    ("term", "a", "b"), [("(i + a * b) % 7", 2**62, 4), ("min(max(a * 8 - i + b, 0), 7)", 2**60, 0)]
)
def test_index_arithmetic_does_not_wrap(term: str, a: int, b: int) -> None:
    text = f"""
@prim_func
def f(a: Int, b: Int, x: Buffer[(8,), f32], y: Out[(8,), f32]):
    for i in range(8):
        y[i] = x[{term}]
"""
    exe = compile(parse(text))
    assert np.array_equal(exe(1000, 3, X), interpreted(text, X, X.copy(), a=1000, b=3))
    with pytest.raises(SizeError, match="overflows"):
        exe(a, b, X)
    with pytest.raises(TilewrightError, match="limit of 2"):
        interpreted(text, X, X.copy(), a=a, b=b)


@pytest.mark.parametrize(
    ("symbol", "loop"),
    [
        ("lower=0", "range(n, bounds=(0, 7))"),
        ("lower=0, upper=8", "range(n)"),
        ("lower=0, multiple_of=2", "range(n, bounds=(0, 7))"),
    ],
)
def test_declared_bounds_are_checked_at_entry(symbol: str, loop: str) -> None:
    text = f"""
n = symbols("n", {symbol})

@prim_func
def f(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in {loop}:
        with block("y"):
            vi = spatial(i)
            y[vi] = x[vi]
"""
    exe, x = compile(parse(text)), np.ones(9, np.float32)
    assert np.array_equal(exe(x[:8]), interpreted(text, x[:8], np.zeros(8, np.float32)))
    with pytest.raises(FactError, match="n = 9"):
        exe(x)
    with pytest.raises(TilewrightError, match="n = 9"):
        interpreted(text, x, x.copy())


def test_a_declared_multiple_of_a_symbol_is_checked_at_entry() -> None:
    text = """
n = symbols("n", lower=0, multiple_of=4)

@prim_func
def f(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            y[vi] = x[vi]
"""
    exe, x = compile(parse(text)), np.ones(6, np.float32)
    with pytest.raises(FactError, match="n = 6"):
        exe(x)
    with pytest.raises(TilewrightError, match="n % 4 == 0 is false for n = 6"):
        interpreted(text, x, x.copy())


def test_a_declared_range_over_entry_symbols_of_a_loaded_integer_is_checked_at_entry() -> None:
    text = """
n = symbols("n", lower=1)

@prim_func
def f(p: Buffer[(n,), i64], x: Buffer[(4,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            with checked(p[vi], 0, n, bounds=(0, 3)) as v:
                y[vi] = x[v]
"""
    exe, x = compile(parse(text)), np.arange(4, dtype=np.float32)
    assert exe(np.array([2, 0, 1]), x).tolist() == [2, 0, 1]
    with pytest.raises(FactError, match="n <= 4, which is false for n = 5"):
        exe(np.zeros(5, np.int64), x)
    with pytest.raises(TilewrightError, match="n = 5"):
        interpreted(text, np.zeros(5, np.int64), x, np.zeros(5, np.float32))


GATHER = """
n, m = symbols("n m", lower=1)
@prim_func
def f(x: Buffer[(n,), f32], at: Buffer[(m,), i64], y: Out[(m,), f32]):
    for i in range(m):
        with block("take"):
            vi = spatial(i)
            with checked(at[vi], 0, n) as row:
                y[vi] = x[row]
"""
SQUARES = """
@prim_func
def f(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    for i in range(8):
        with block("y"):
            vi = spatial(i)
            y[vi] = x[vi * vi]
"""
OUTSIDE = {
    "an integer loaded from memory": (
        GATHER,
        (X, np.array([0, 9, 2])),
        3,
        "with checked(at[vi], 0, n) as row:",
    ),
    "an index that is checked in the kernel": (SQUARES, (X,), 8, "y[vi] = x[vi * vi]"),
}


@pytest.mark.parametrize("case", OUTSIDE)
@pytest.mark.parametrize("target", ["cpu", "simt"])
def test_an_index_out_of_range_states_value_bound_and_line(case: str, target: str) -> None:
    text, arrays, _, line = OUTSIDE[case]
    with pytest.raises((KernelError, TrapError)) as caught:
        compile(parse(text), Target(target))(*arrays)
    message = str(caught.value)
    assert re.search(rf"line \d+ of 'f': {re.escape(line)}", message)
    assert re.search(r"\((index|value) 9, (extent|exclusive upper bound) 8\)", message)


@pytest.mark.parametrize("case", OUTSIDE)
def test_an_index_out_of_range_states_its_line_in_the_interpreter(case: str) -> None:
    text, arrays, size, line = OUTSIDE[case]
    func = parse(text).prim("f")
    number = next(k for k, x in enumerate(str(func).split("\n"), 1) if line in x)
    with pytest.raises(OutOfBoundsError) as caught:
        run_prim(func, (*arrays, np.zeros(size, np.float32)), {})
    assert f"{number} | {line}" in str(caught.value)
    assert "9" in caught.value.message
    assert "[0, 8)" in caught.value.message


def test_a_line_is_stated_only_if_it_is_unique() -> None:
    text = SQUARES.replace("= x[vi * vi]", "= x[vi * vi]\n            y[vi] = x[vi * vi]")
    with pytest.raises(KernelError, match=r"in x\[i \* i\] \(index 9, extent 8\)"):
        compile(parse(text))(X)
