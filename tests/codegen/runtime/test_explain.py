"""Errors of calls underline the parameter in the signature, and have a hint."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.codegen import Executable, compile, compiler
from tilewright.codegen.errors import CallError, OutOfMemoryError
from tilewright.ir.script import parse
from tilewright.schedules import schedule
from tilewright.target.target import Target

MATMUL = """
M, N, K = symbols("M N K", lower=1)

@prim_func
def matmul(A: Buffer[(M, K), f32], B: Buffer[(K, N), f32], C: Out[(M, N), f32]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                with block("mm"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): C[vi, vj] = 0.0
                    C[vi, vj] += A[vi, vk] * B[vk, vj]
"""
A, B = np.ones((2, 3), np.float32), np.ones((3, 5), np.float32)
SIGNATURE = "1 | matmul(A: Tensor((M, K), f32), B: Tensor((K, N), f32))"


@pytest.fixture(scope="module")
def exe() -> Executable:
    return compile(parse(MATMUL), "cpu")


CALLS = [
    ("dtype", lambda exe: exe(A.astype("f8"), B), "A"),
    ("rank", lambda exe: exe(A, B.reshape(3, 5, 1)), "B"),
    ("shape", lambda exe: exe(A, np.ones((4, 5), np.float32)), "B"),
    ("strides", lambda exe: exe(A, np.ones((5, 3), np.float32).T), "B"),
    ("type", lambda exe: exe([1.0], B), "A"),
]


@pytest.mark.parametrize(("name", "call", "parameter"), CALLS, ids=[c[0] for c in CALLS])
def test_the_parameter_is_underlined(
    exe: Executable, name: str, call: Callable[[Executable], object], parameter: str
) -> None:
    with pytest.raises(CallError) as caught:
        call(exe)
    error = caught.value
    column = SIGNATURE.index(f"{parameter}: ")
    assert f"{SIGNATURE}\n      | {' ' * (column - 4)}^\n" in str(error), name
    assert error.hint


@pytest.mark.parametrize(
    ("arguments", "named"), [((), {}), ((A, B, A), {}), ((A,), {"C": B}), ((A,), {"A": A})]
)
def test_errors_about_the_number_and_names_have_a_hint(
    exe: Executable, arguments: tuple[object, ...], named: dict[str, object]
) -> None:
    with pytest.raises(CallError) as caught:
        exe(*arguments, **named)
    assert caught.value.hint


def test_a_symbol_out_of_range_has_a_hint(exe: Executable) -> None:
    with pytest.raises(CallError, match="symbol out of range: M >= 1 is false") as caught:
        exe(np.ones((0, 3), np.float32), B)
    assert "change the range: symbols(..., lower=0)" in caught.value.hint


def test_an_index_out_of_bounds_has_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    # Without the checks of the program, as after a wrong step.
    monkeypatch.setattr(compiler, "checked_program", lambda module: module)
    monkeypatch.setattr(schedule, "accepted", lambda module, **_: module)
    text = "@prim_func\ndef f(y: Out[(8,), f32]):\n    for i in range(9): y[i] = 0.0"
    with pytest.raises(CallError, match="index of axis 0 is out of bounds") as caught:
        compile(parse(text, check=False), "cpu", debug=True)()
    advice = "change the index or the loops around it, or guard the access: if i * i < n:"
    assert caught.value.hint == advice


LARGE = """
n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(n,), f32], m: Tensor[(n, 1), f32]):
    a = multiply(x, m)
    b = matmul(a, a)
    y = sum(b, axes=(0,))
    return y
"""

SCRATCH = """
n = symbols("n", lower=1)

@prim_func
def twice(x: Buffer[(n, 4), f32], y: Out[(n, 4), f32]):
    for i in range(n):
        t = alloc((n * 100000000000000,), f32, scope="local")
        for j in range(4):
            with block("t"):
                vi, vj = spatial(i), spatial(j)
                t[vj * vi] = x[vi, vj]
        for k in range(4):
            with block("y"):
                vi, vk = spatial(i), spatial(k)
                y[vi, vk] = t[vk * vi]
"""


TWO_SCRATCHES = f"""{SCRATCH}{SCRATCH[SCRATCH.index("@prim_func") :].replace("twice", "again")}
@graph_func
def main(x: Tensor[(n, 4), f32]):
    y: Tensor[(n, 4), f32] = call_tir(twice, x)
    z: Tensor[(n, 4), f32] = call_tir(again, y)
    return z
"""


def test_the_largest_parts_of_an_arena_that_does_not_fit_are_named() -> None:
    size = 6_000_000
    with pytest.raises(OutOfMemoryError) as caught:
        compile(parse(LARGE))(np.ones(size, np.float32), np.ones((size, 1), np.float32))
    assert "bytes for the arena" in caught.value.message
    assert "the largest parts are a: 144 TB, b: 144 TB" in caught.value.hint


def test_a_temporary_that_does_not_fit_is_named_with_its_kernel() -> None:
    with pytest.raises(OutOfMemoryError, match="bytes for the arena") as caught:
        compile(parse(SCRATCH), Target("cpu", threads=1))(np.ones((3, 4), np.float32))
    assert "the largest parts are t (kernel twice): 1200 TB" in caught.value.hint


def test_equally_named_temporaries_of_two_kernels_are_different_parts() -> None:
    exe = compile(parse(TWO_SCRATCHES), Target("cpu", threads=1))
    names = ("t (kernel twice)", "t (kernel again)")
    assert {*names} <= {name for s in exe.memory({"n": 3}).storages for name in s.tensors}
    with pytest.raises(OutOfMemoryError) as caught:
        exe(np.ones((3, 4), np.float32))
    assert all(f"{name}: 1200 TB" in caught.value.hint for name in names)
