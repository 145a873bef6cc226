"""Values that no caller should pass: each is a named error."""

from __future__ import annotations

import copy
import math
import pickle  # noqa: TID251  # the test of its support
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.errors import ArgumentTypeError, SizeError
from tilewright.errors import UnpicklableError

from tests.attacks.children import run_child

PROGRAM = """
n = symbols("n", lower=0)

@prim_func
def add(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        y[i] = x[i] + 1.0
"""
INTEGER = """
@prim_func
def keep(m: Int, y: Out[(1,), i64]):
    for i in range(1):
        y[i] = index(m, i64)
"""
X = np.ones(8, np.float32)


@pytest.fixture(scope="module")
def made() -> SimpleNamespace:
    """A program, its schedule, and executables."""
    module = tw.parse(PROGRAM)
    return SimpleNamespace(
        module=module,
        schedule=tw.Schedule(module),
        exe=tw.compile(module),
        keep=tw.compile(tw.parse(INTEGER)),
    )


Action = Callable[[SimpleNamespace], object]

CALLS: dict[str, tuple[Action, str]] = {
    "exe[0]": (lambda m: m.exe[0], "UnknownFunctionError"),
    "exe[[1]]": (lambda m: m.exe[[1]], "UnknownFunctionError"),
    "exe[None]": (lambda m: m.exe[None], "UnknownFunctionError"),
    "exe()": (lambda m: m.exe(), "ArgumentCountError"),
    "exe(None)": (lambda m: m.exe(None), "ArgumentTypeError"),
    "exe([1.0])": (lambda m: m.exe([1.0]), "ArgumentTypeError"),
    "exe(object array)": (lambda m: m.exe(np.array([None])), "DTypeError"),
    "profile no times": (lambda m: m.exe.profile(X, repeats=0), "ProfileOptionsError"),
    "profile of nothing": (lambda m: m.exe.profile(X, function=0), "UnknownFunctionError"),
    "memory of a list": (lambda m: m.exe.memory([1]), "SymbolValueError"),
    "memory of nothing": (lambda m: m.exe.memory({"n": 1}, function=5), "UnknownFunctionError"),
    "memory of other symbols": (lambda m: m.exe.memory({"n": 1, "k": 1}), "SymbolValueError"),
    "no progress": (lambda m: tw.compile(m.module, progress=5), "ProgressOptionError"),
    "no table": (lambda m: tw.compile(m.module, table=5), "ProviderError"),
    "no program": (lambda _: tw.compile(None), "NotAProgramError"),
    "no token": (lambda m: tw.compile(m.module, cancel=5), "CompileOptionError"),
}
BAD_SIZES = ("a", -5, 2**62, 2**70, 10**400, 1.5, math.nan, None, True, [1])
BAD_OPTIONS = (
    *(("target", value) for value in ("", {}, [], 0, False, "gpu\0")),
    *(("workers", value) for value in (-1, 0.5, True, "2", math.nan)),
    *(("timeout", value) for value in (0, -1, math.nan, "a", None, True, -math.inf, 10**400)),
)


def error_of(action: Callable[[], object]) -> str:
    """Return the class of an error that is one of Tilewright."""
    with pytest.raises(tw.TilewrightError) as caught:
        action()
    assert str(caught.value)
    return type(caught.value).__name__


@pytest.mark.parametrize("name", CALLS)
def test_calls_with_other_values(made: SimpleNamespace, name: str) -> None:
    action, expected = CALLS[name]
    assert error_of(lambda: action(made)) == expected


@pytest.mark.parametrize("value", BAD_SIZES, ids=lambda v: repr(v)[:20])
def test_sizes_that_are_none(made: SimpleNamespace, value: object) -> None:
    assert error_of(lambda: made.exe.memory({"n": value})) == "SymbolValueError"


@pytest.mark.parametrize(("name", "value"), BAD_OPTIONS, ids=lambda v: repr(v)[:20])
def test_options_of_a_compilation(made: SimpleNamespace, name: str, value: object) -> None:
    expected = "UnknownTargetError" if name == "target" else "CompileOptionError"
    assert error_of(lambda: tw.compile(made.module, **{name: value})) == expected


@pytest.mark.parametrize("timeout", [math.inf, 1e308, 10**9])
def test_a_long_time_limit_is_none(timeout: float) -> None:
    text = PROGRAM.replace("1.0", f"{hash(timeout) % 1000 + 2}.5")  # not in the cache
    assert tw.compile(tw.parse(text), timeout=timeout)(X).shape == (8,)


LARGE = (2**63, 2**64 + 3, 10**30, 10**3000, -(2**63) - 1, -(10**20))


@pytest.mark.parametrize("value", LARGE, ids=lambda v: str(v)[:20])
def test_an_integer_of_more_than_64_bits(made: SimpleNamespace, value: int) -> None:
    with pytest.raises(SizeError, match="expected a 64-bit integer, got"):
        made.keep(value)
    if -(2**63) <= value < 2**64:
        with pytest.raises(SizeError, match="expected a 64-bit integer, got"):
            made.keep(np.uint64(value))


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 0, True, np.uint64(7), np.int8(-1)])
def test_an_integer_of_64_bits(made: SimpleNamespace, value: int) -> None:
    assert made.keep(value) == int(value)


@pytest.mark.parametrize("value", [1.0, "1", None, np.array([1]), b"1", 1j])
def test_an_argument_that_is_not_an_integer(made: SimpleNamespace, value: object) -> None:
    with pytest.raises(ArgumentTypeError, match="expected an integer, got"):
        made.keep(value)


COPIES: dict[str, Callable[[object], object]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
}


@pytest.mark.parametrize("name", COPIES)
def test_copies(made: SimpleNamespace, name: str) -> None:
    made_again = COPIES[name](made.module)
    assert str(made_again) == str(made.module)
    np.testing.assert_array_equal(tw.compile(made_again)(X), made.exe(X))
    for value in (made.exe, made.exe["add"], made.schedule):
        with pytest.raises(UnpicklableError, match="cannot be pickled or copied"):
            COPIES[name](value)


def test_tensors_that_native_code_must_not_read() -> None:
    lines = dict(
        line.split(": ", 1)
        for line in run_child(
            "-m", "tests.attacks.unreadable_tensors", new_cache=False
        ).splitlines()
    )
    assert len(lines) == 25
    assert {line for line in lines.values() if not line.startswith("ArgumentTypeError: ")} == set()
    assert "DLPack version 2 is not supported" in lines["version 2, read"]
    assert "its negative bit is set" in lines["negative bit, written"]
    assert "its conjugate bit is set" in lines["conjugate bit, read"]
    assert "masked arrays are not supported" in lines["masked array, read"]
    for name in ("fake", "part of a large fake", "part of zero", "null"):
        assert "the data pointer is null" in lines[f"{name}, read"], name
        assert "the data pointer is null" in lines[f"{name}, written"], name
