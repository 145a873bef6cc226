"""Direct calls: which functions have one, and that results and errors are those of other calls."""

from __future__ import annotations

import cProfile
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tilewright.codegen import Executable, compile
from tilewright.codegen.errors import CallError
from tilewright.codegen.runtime import direct
from tilewright.codegen.runtime.direct_code import COPIED_BYTES, MOST_PARAMS, MOST_RANK
from tilewright.codegen.runtime.table import RuntimeTable
from tilewright.errors import TilewrightError
from tilewright.ir.dtype import dtype as dtype_named
from tilewright.ir.script import parse

from .helpers import CountingMemory

DOUBLE = """
n = symbols("n", lower=0)

@graph_func
def main(x: Tensor[(n,), f32]):
    y = add(x, x)
    return y
"""

SHIFTED = """
n = symbols("n", lower=0)

@prim_func
def shifted(x: Buffer[(n,), i64], k: Int, y: Out[(n,), i64]):
    for i in range(n):
        y[i] = x[i] + k
"""

SEVERAL = """
n = symbols("n", lower=0)

@graph_func
def main(x: Tensor[(n,), f32], y: Tensor[(n,), f32]):
    total = add(x, y)
    rest = subtract(x, y)
    return total, rest
"""

WHOLE = """
n, m = symbols("n m", lower=1)

@graph_func
def main(x: Tensor[(n, m), f32]):
    y = sum(x, axes=[0, 1])
    return y
"""


def called(text: str, *arguments: object) -> tuple[Executable, object]:
    """Return an executable after its first call, which loads constants, and the result."""
    exe = compile(parse(text))
    return exe, exe(*arguments)


def only(exe: Executable) -> object:
    (name,) = exe.names
    return exe[name]


@pytest.fixture(scope="module")
def double() -> Executable:
    return called(DOUBLE, np.zeros(1, np.float32))[0]


@pytest.fixture(scope="module")
def shifted() -> Executable:
    return called(SHIFTED, np.zeros(1, np.int64), 0)[0]


LIMIT = COPIED_BYTES // 4


@pytest.mark.parametrize("size", [0, 1, 2, 7, 31, 257, LIMIT - 1, LIMIT, LIMIT + 1, 5003])
def test_results_of_all_sizes(double, size):
    x = np.random.default_rng(size).standard_normal(size).astype(np.float32)
    found = only(double).direct(x)
    assert (type(found) is int) == (size > LIMIT)
    made = double(x) if type(found) is not int else only(double).results_of(found)
    for result in (made, double(x)):
        assert type(result) is np.ndarray
        assert result.dtype == np.float32
        assert result.flags.writeable
        np.testing.assert_array_equal(result, x + x)


def test_results_without_dimensions():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    exe, first = called(WHOLE, x)
    for result in (first, exe(x)):
        assert type(result) is np.ndarray
        assert result.shape == ()
        assert result == 66


@pytest.mark.parametrize(
    "name",
    ["bool", "i8", "u8", "i16", "i32", "i64", "u64", "f16", "bf16", "f32", "f64", "f8_e4m3", "c64"],
)
@pytest.mark.parametrize("size", [0, 1, 13, 3001])
def test_results_of_all_dtypes(name, size):
    text = DOUBLE.replace("f32", name).replace("add(x, x)", "concat(x, x, axis=0)")
    x = (np.arange(size) % 7).astype(dtype_named(name).numpy)
    exe, first = called(text, x)
    assert only(exe).direct is not None
    for result in (first, exe(x)):
        assert result.dtype == x.dtype
        np.testing.assert_array_equal(result, np.concatenate([x, x]))


@pytest.mark.parametrize("k", [0, -1, 5, 2**63 - 1, -(2**63), True, np.int64(-1), np.uint8(7)])
def test_integers(shifted, k):
    x = np.array([0, -1, 40], np.int64)
    assert only(shifted).direct is not None
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(shifted(x, k), x + np.int64(k))


def test_several_results_have_names():
    for size in (5, LIMIT + 1):
        x, y = np.arange(size, dtype=np.float32), np.ones(size, np.float32)
        exe, first = called(SEVERAL, x, y)
        assert exe["main"].direct is not None
        for results in (first, exe(x, y)):
            np.testing.assert_array_equal(results.total, x + y)
            np.testing.assert_array_equal(results.rest, x - y)


WRONG = {
    "dtype": (np.zeros(3, np.float64),),
    "byte order": (np.zeros(3, ">f4"),),
    "rank": (np.zeros((3, 1), np.float32),),
    "large rank": (np.zeros((1,) * (MOST_RANK + 1), np.float32),),
    "strides": (np.zeros(6, np.float32)[::2],),
    "alignment": (np.zeros(13, np.uint8)[1:].view(np.float32),),
    "type": ("text",),
    "masked": (np.ma.MaskedArray(np.zeros(3, np.float32), [True, False, True]),),
    "none": (),
    "two": (np.zeros(3, np.float32), np.zeros(3, np.float32)),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors_are_those_of_calls_in_python(double, case):
    assert only(double).direct is not None
    with pytest.raises(CallError) as expected:
        only(double).invoke(WRONG[case])
    with pytest.raises(type(expected.value)) as caught:
        double(*WRONG[case])
    assert str(caught.value) == str(expected.value)


@pytest.mark.parametrize("k", [2**63, -(2**63) - 1, 1.5, "1", None])
def test_errors_of_integers(shifted, k):
    x = np.zeros(3, np.int64)
    with pytest.raises(TilewrightError) as expected:
        only(shifted).invoke((x, k))
    with pytest.raises(type(expected.value)) as caught:
        shifted(x, k)
    assert str(caught.value) == str(expected.value)


def test_other_arrays_are_accepted(double):
    class Own(np.ndarray):
        pass

    x = np.arange(5, dtype=np.float32)
    fixed = x.copy()
    fixed.flags.writeable = False
    named = x.astype(np.dtype(np.float32, metadata={"unit": "m"}))
    for given in (x.view(Own), fixed, named, memoryview_like(x)):
        np.testing.assert_array_equal(double(given), x + x)


def memoryview_like(x: np.ndarray) -> object:
    """Return an object that only supports DLPack."""

    class Tensor:
        def __dlpack__(self, **options: object) -> object:
            return x.__dlpack__()

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    return Tensor()


INDIRECT = {
    "a written parameter": """
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(n,), f32], y: InOut[(n,), f32]):
    for i in range(n):
        y[i] = y[i] + x[i]
""",
    "a packed dtype": """
@graph_func
def main(x: Tensor[(8,), i4]):
    y = cast(x, dtype="i8")
    return y
""",
    "many parameters": """
@graph_func
def main({}):
    y = add(x0, x1)
    return y
""".format(", ".join(f"x{k}: Tensor[(4,), f32]" for k in range(MOST_PARAMS + 1))),
}  # fmt: skip


@pytest.mark.parametrize("case", INDIRECT)
def test_other_functions_are_called_in_python(case):
    function = only(compile(parse(INDIRECT[case])))
    assert direct.direct_call(function.spec, 1, 1, RuntimeTable()) is None


def test_own_memory_is_used_in_python():
    memory, spec = CountingMemory(), compile(parse(DOUBLE)).spec()
    assert direct.direct_call(spec, 1, 1, memory.table()) is None
    assert direct.direct_call(spec, 1, 1, RuntimeTable()) is not None


def test_references_do_not_grow(double):
    x = np.arange(5, dtype=np.float32)
    watched = (x, x.dtype, NotImplemented, np.ndarray)
    before = [sys.getrefcount(o) for o in watched]
    for _ in range(1000):
        double(x)
        only(double).direct("text")
        only(double).direct()
    after = [sys.getrefcount(o) for o in watched]
    assert all(abs(a - b) < 20 for a, b in zip(after, before, strict=True))


def test_a_call_executes_few_functions(double):
    x = np.arange(5, dtype=np.float32)
    profile = cProfile.Profile()
    profile.runcall(double, x)
    counts = [entry.callcount for entry in profile.getstats()]
    assert sum(counts) <= 4  # of the executable, the function, the machine code, and the profiler


def test_threads_call_at_once(double):
    def run(seed: int) -> bool:
        x = np.random.default_rng(seed).standard_normal(seed).astype(np.float32)
        return all(np.array_equal(double(x), x + x) for _ in range(200))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, [1, 17, 1000, 1025, 4096, 9]))


def test_layouts_of_other_interpreters_are_refused(monkeypatch):
    spec = compile(parse(DOUBLE)).spec()
    for name, value in {"has_layout": lambda: False, "numpy_interface": lambda: None}.items():
        with monkeypatch.context() as patch:
            patch.setattr(direct, name, value)
            direct.interface.cache_clear()
            assert direct.direct_call(spec, 1, 1, RuntimeTable()) is None
    direct.interface.cache_clear()
    assert direct.direct_call(spec, 1, 1, RuntimeTable()) is not None
