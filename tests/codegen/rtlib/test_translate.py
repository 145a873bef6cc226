"""The translator of the Python subset of the run-time library."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tilewright.codegen.build.native_library import Library
from tilewright.codegen.llvm import compile_text, emit_module
from tilewright.codegen.lower.host.to_thread import lower_host
from tilewright.codegen.rtlib import calls, views
from tilewright.codegen.rtlib.language import NULL, Code, Ptr, load_i64, move, number, store_i64
from tilewright.codegen.rtlib.translate import HostSyntaxError, rtlib_functions, translate
from tilewright.target.target import Target

HALF = 2


def collatz(n: int) -> int:
    """Return the number of steps."""
    steps = 0
    while n != 1:
        if n % HALF == 0:  # noqa: SIM108  # the subset has no conditional expressions
            n = n // HALF
        else:
            n = 3 * n + 1
        steps += 1
    return steps


def arithmetic(a: int, b: int) -> int:
    r = (a + b) * 3 - -a
    r = r ^ (a & 255) | (b >> 3)
    if not (a < b or a == 7) and b != 3:
        r += max(a, b) - min(a, b)
    elif a >= b:
        r = r << 1
    return r


def sums(values: Ptr, count: int) -> int:
    total = 0
    for k in range(1, count):
        at = move(values, 8 * k)
        store_i64(at, 0, load_i64(at, 0) + load_i64(at, -8))
        total = load_i64(at, 0)
    return total


def is_null(p: Ptr) -> int:
    if p == NULL:
        return 1
    return number(p) - number(p)


def code_of(n: int) -> Code:
    return Code(n % 100)


def compiled(function: Any, name: str, returns: Any, *params: Any) -> Any:
    import dataclasses

    lowered = dataclasses.replace(lower_host(translate(name, function)), exported=True)
    target = Target("cpu")
    library = Library([compile_text(emit_module([lowered], target), target)], target)
    call = ctypes.CFUNCTYPE(returns, *params)(library.address(name))
    call.library = library
    return call


I64 = ctypes.c_int64


def test_loops_and_branches() -> None:
    native = compiled(collatz, "collatz", I64, I64)
    assert [native(n) for n in range(1, 40)] == [collatz(n) for n in range(1, 40)]


@given(st.integers(-(10**6), 10**6), st.integers(-(10**6), 10**6))
def test_arithmetic_equals_python(a: int, b: int) -> None:
    global _NATIVE  # noqa: PLW0603
    _NATIVE = _NATIVE or compiled(arithmetic, "arithmetic", I64, I64, I64)
    assert _NATIVE(a, b) == arithmetic(a, b)


_NATIVE: Any = None


def test_memory() -> None:
    native = compiled(sums, "sums", I64, ctypes.c_void_p, I64)
    first, second = ((I64 * 5)(1, 2, 3, 4, 5) for _ in range(2))
    assert native(first, 5) == sums(Ptr(ctypes.addressof(second)), 5) == 15
    assert list(first) == list(second) == [1, 3, 6, 10, 15]


def test_addresses_and_codes() -> None:
    native = compiled(is_null, "is_null", I64, ctypes.c_void_p)
    assert (native(None), native(4096)) == (1, 0)
    assert compiled(code_of, "code_of", ctypes.c_int32, I64)(12345) == 45


def test_all_library_functions_are_translated() -> None:
    functions = rtlib_functions()
    assert {f.name for f in functions} >= {"tw_pack", "tw_run_openmp", "tw_make_result"}


def bad_statement(n: int) -> int:
    del n
    return 0


def bad_name(n: int) -> int:
    return n + unknown  # noqa: F821


def bad_while(n: int) -> int:
    while calls.scale(n, 2) > 0:
        n -= 1
    return n


def bad_pointer(p: Ptr) -> int:
    return p + 8


def bad_type(n: float) -> int:
    return int(n)


def bad_kind(p: Ptr) -> int:
    p = 3
    return p  # noqa: RET504  # the error under test


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (bad_statement, "unsupported statement: del n"),
        (bad_name, "neither a variable nor an integer constant"),
        (bad_while, "the called function is not a plain name"),
        (bad_pointer, r"arithmetic on an address; use move\(address, bytes\)"),
        (bad_type, "parameter is not of type int"),
        (bad_kind, "variable 'p' of kind ptr is assigned a value of kind int"),
    ],
)
def test_syntax_outside_of_the_subset_is_rejected(function: Any, message: str) -> None:
    with pytest.raises(HostSyntaxError, match=message) as caught:
        translate(function.__name__, function)
    assert function.__name__ in caught.value.where


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 40))
def test_magnitudes_saturate(a: int, b: int) -> None:
    assert calls.scale(a, b) == min(a * b, calls.LIMIT) or a * b > calls.LIMIT
    assert calls.join(a, b) == a + b
    assert calls.magnitude(-a) == a


def test_dtypes_of_numpy_kinds() -> None:
    assert views.numpy_dtype(ord("f"), 4) == 2 * 256 + 32
    assert views.numpy_dtype(ord("b"), 1) == 6 * 256 + 8
    assert views.numpy_dtype(ord("O"), 8) // 256 == 255
