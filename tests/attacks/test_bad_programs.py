"""Programs with invalid claims, sizes and indices: a named error or the right result.

Each program is text, Python code with decorators, a kernel that a graph calls, and an exported
library; some are made by the builder, too.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.errors import FactError, KernelError, SizeError
from tilewright.errors import TilewrightError
from tilewright.ir.dtype import f32
from tilewright.ir.interpreter import run_prim
from tilewright.ir.loop.builder import Builder
from tilewright.ir.loop.nodes import Number
from tilewright.ir.module import Module
from tilewright.ir.script import module
from tilewright.ir.symbolic import Discharge, Facts, as_expr, eq, var

SYMBOLS = """
n = symbols("n", lower=0)
m = symbols("m", lower=1)
a, b, d = symbols("a b d")
"""
KERNELS = """
@prim_func
def gather(x: Buffer[(n,), f32], at: Buffer[(m,), i64], y: Out[(m,), f32]):
    for i in range(m):
        with checked(at[i], 0, n) as p:
            y[i] = x[p]


@prim_func
def scatter(x: Buffer[(m,), f32], at: Buffer[(m,), i64], y: InOut[(8,), f32]):
    for i in range(m):
        with checked(at[i], 0, 8) as p:
            y[p] = x[i]


@prim_func
def added(x: Buffer[(m,), f32], at: Buffer[(m,), i64], y: InOut[(8,), f32]):
    for i in range(m):
        with checked(at[i], 0, 8) as p:
            y[p] += x[i]


@prim_func
def total(x: Buffer[(m, n), f32], y: Out[(m,), f32]):
    for i in range(m):
        for j in range(n):
            with block("s"):
                vi, vj = spatial(i), reduce(j)
                with init():
                    y[vi] = 0.0
                y[vi] += x[vi, vj]


@prim_func
def tail(x: Buffer[(m,), f32], y: InOut[(m,), f32]):
    for i in range(m - 4):
        y[i] = x[i + 4]


@prim_func
def cyclic(d: Int, x: Buffer[(8,), f32], y: Out[(8,), f32]):
    for i in range(8):
        y[i] = x[i % d % 8]


@prim_func
def outer(a: Int, b: Int, y: Out[(a * b,), f32]):
    for i in range(a * b):
        y[i] = 0.0
"""
GRAPHS = """
@graph_func
def gather_graph(x: Tensor[(n,), f32], at: Tensor[(m,), i64]):
    y: Tensor[(m,), f32] = call_tir(gather, x, at)
    return y

@graph_func
def total_graph(x: Tensor[(m, n), f32]):
    y: Tensor[(m,), f32] = call_tir(total, x)
    return y
"""
X = np.arange(1, 9, dtype=np.float32)
DUPLICATES = np.array([3, 3, 0, 3])
ZEROS = np.zeros(8, np.float32)

Expected = tuple[type[TilewrightError], str] | np.ndarray
CASES: dict[str, tuple[str, tuple[object, ...], Expected]] = {
    "an index loaded from memory is out of range": (
        "gather", (X, np.array([0, 9])), (KernelError, r"line \d+ .*value 9, .* bound 8"),
    ),
    "a negative index loaded from memory": (
        "gather", (X, np.array([-1])), (KernelError, r"line \d+ .*value -1, least value 0"),
    ),
    "an index into an empty tensor": (
        "gather", (X[:0], np.array([0])), (KernelError, "value 0, .* bound 0"),
    ),
    "the last of duplicate indices is stored": (
        "scatter", (X[:4], DUPLICATES), np.array([3, 0, 0, 4, 0, 0, 0, 0], "f4"),
    ),
    "all duplicate indices are added": (
        "added", (X[:4], DUPLICATES), np.array([3, 0, 0, 7, 0, 0, 0, 0], "f4"),
    ),
    "a scatter out of range": ("scatter", (X[:1], np.array([8])), (KernelError, "value 8")),
    "a reduction without iterations": ("total", (np.ones((3, 0), "f4"),), np.zeros(3, "f4")),
    "a loop with a negative extent": ("tail", (X[:2],), np.zeros(2, "f4")),
    "a divisor of 0": ("cyclic", (0, X), (TilewrightError, "d")),
    "a product of sizes that overflows": (
        "outer", (1 << 40, 1 << 40), ((SizeError, FactError), "a \\* b|2\\*\\*60"),
    ),
    "a negative product of sizes": ("outer", (-3, 5), ((SizeError, FactError), "a \\* b|-15")),
}  # fmt: skip


def decorated(folder: Path) -> Module:
    """Return the kernels, written with decorators in a Python file."""
    path = folder / "decorated_kernels.py"
    path.write_text(f"from tilewright.ir.script.vocabulary import *\n{SYMBOLS}{KERNELS}")
    names = [line[4 : line.index("(")] for line in KERNELS.splitlines() if line[:4] == "def "]
    return module(*(getattr(loaded(path), name) for name in names))


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = made
    spec.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Callable[[str], Any]]]:
    """Return the function of a program by name, for each way to write and run programs."""
    folder = tmp_path_factory.mktemp("bad")
    text = tw.parse(SYMBOLS + KERNELS)
    executables = {"text": tw.compile(text), "decorator": tw.compile(decorated(folder))}
    directory = tw.export(text, folder / "library", name="bad").directory
    library = loaded(directory / "bad.py").load()
    yield {
        "text": lambda name: executables["text"][name],
        "decorator": lambda name: executables["decorator"][name],
        "library": lambda name: getattr(library, name),
    }
    del sys.modules["decorated_kernels"], sys.modules["bad"]


def arguments(name: str, given: tuple[object, ...]) -> tuple[object, ...]:
    """Return arguments with a new array for the written parameter."""
    if name in ("scatter", "added"):
        return (*given, np.zeros(8, np.float32))
    if name == "tail":
        return (*given, np.zeros(2, np.float32))
    return given


@pytest.mark.parametrize("door", ["text", "decorator", "library"])
@pytest.mark.parametrize("case", CASES)
def test_a_bad_input_is_a_named_error_or_right(
    case: str, door: str, doors: dict[str, Callable[[str], Any]]
) -> None:
    name, given, expected = CASES[case]
    function, args = doors[door](name), arguments(name, given)
    if isinstance(expected, np.ndarray):
        result = function(*args)
        np.testing.assert_array_equal(args[-1] if result is None else result, expected)
        return
    kind, pattern = expected
    if door == "library":
        kind = sys.modules["bad"].ModelError
    with pytest.raises(kind, match=pattern):
        function(*args)


@pytest.mark.parametrize("case", [c for c in CASES if CASES[c][0] in ("gather", "total")])
def test_a_bad_input_of_a_kernel_that_a_graph_calls(case: str) -> None:
    name, given, expected = CASES[case]
    function = tw.compile(tw.parse(SYMBOLS + KERNELS + GRAPHS))[f"{name}_graph"]
    if isinstance(expected, np.ndarray):
        np.testing.assert_array_equal(function(*given), expected)
        return
    with pytest.raises(expected[0], match=expected[1]):
        function(*given)


FALSE_CLAIMS = {
    "kernel": """
@prim_func
def f(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    fact(n % 64 == 0, "c", by="proof")
    for i in range(n):
        y[i] = x[i]
""",
    "graph": """
@graph_func
def f(x: Tensor[(n,), f32]):
    fact(n % 64 == 0, "c", by="proof")
    y = relu(x)
    return y
""",
}


@pytest.mark.parametrize("level", FALSE_CLAIMS)
@pytest.mark.parametrize("door", ["text", "decorator"])
def test_a_claimed_proof_that_does_not_hold_is_an_error(
    door: str, level: str, tmp_path: Path
) -> None:
    text = SYMBOLS + FALSE_CLAIMS[level]
    path = tmp_path / "false_claim.py"
    path.write_text(f"from tilewright.ir.script.vocabulary import *\n{text}")
    with pytest.raises(TilewrightError, match=r"claimed proof of 'n % 64 == 0' does not hold"):
        tw.parse(text) if door == "text" else loaded(path)


def test_a_claimed_proof_of_the_builder_is_checked_at_entry() -> None:
    n = var("n", lower=1)
    claim = Facts().assume(eq(n % 64, 0), origin="c", discharge=Discharge.PROOF)
    b = Builder("f", facts=claim)
    x, y = b.param("x", (n,), f32), b.param("y", (n,), f32, "out")
    b.compute(y, lambda i: b.load(x, i))
    exe = tw.compile(Module().with_functions(b.finish()))
    np.testing.assert_array_equal(exe(np.ones(64, np.float32)), np.ones(64, np.float32))
    with pytest.raises(FactError, match="n % 64 == 0"):
        exe(np.ones(63, np.float32))


def test_sizes_of_the_builder_that_overflow_are_an_error() -> None:
    b = Builder("f")
    y = b.param("y", (as_expr(2**31), as_expr(2**31)), f32, "out")
    b.compute(y, lambda i, j: Number(0.0, f32))
    with pytest.raises(TilewrightError, match=r"a number of 65 bits"):
        tw.compile(Module().with_functions(b.finish()))


def test_a_reduction_of_the_builder_without_iterations_is_its_init() -> None:
    n = var("n", lower=0)
    b = Builder("f")
    x, y = b.param("x", (4, n), f32), b.param("y", (4,), f32, "out")
    b.reduce(y, (n,), lambda i, j: b.load(x, i, j))
    exe = tw.compile(Module().with_functions(b.finish()))
    np.testing.assert_array_equal(exe(np.ones((4, 0), np.float32)), np.zeros(4, np.float32))


HALF = """
@prim_func
def half(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n // 2):
        y[i] = x[i]
"""


@pytest.mark.parametrize("door", ["interpreter", "cpu", "simt"])
@pytest.mark.parametrize("n", [0, 1, 9, 40])
def test_an_output_that_is_written_in_part_keeps_its_other_elements(door: str, n: int) -> None:
    text = tw.parse(SYMBOLS + HALF)
    x, y = np.arange(n, dtype=np.float32), np.full(n, -1, np.float32)
    if door == "interpreter":
        run_prim(text.prim("half"), [x, y])
    else:
        tw.compile(text, door)["half"].into(x, y)
    np.testing.assert_array_equal(y, np.where(np.arange(n) < n // 2, x, -1))


def test_a_library_returns_an_output_that_is_written_in_part(tmp_path: Path) -> None:
    made = tw.export(tw.parse(SYMBOLS + HALF), tmp_path / "library", name="partial").directory
    x = np.arange(9, dtype=np.float32)
    result = loaded(made / "partial.py").load().half(x)
    del sys.modules["partial"]
    assert result.shape == (9,)
    np.testing.assert_array_equal(result[:4], x[:4])
