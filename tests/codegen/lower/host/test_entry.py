"""Entry checks: arguments are validated before the call, with one error class per mistake."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tilewright.codegen import Executable, compile
from tilewright.codegen.errors import (
    AliasError,
    AlignmentError,
    ArgumentCountError,
    ArgumentShapeError,
    ArgumentTypeError,
    CallError,
    DeviceError,
    DTypeError,
    FactError,
    RankError,
    ReadOnlyError,
    SizeError,
    StrideError,
)
from tilewright.ir.dtype import bf16, i64
from tilewright.ir.graph.builder import GraphBuilder
from tilewright.ir.graph.nodes import CallTIR, PrimInfo, TensorInfo
from tilewright.ir.loop.builder import Builder
from tilewright.ir.loop.nodes import Binary
from tilewright.ir.module import Module
from tilewright.ir.script import parse
from tilewright.ir.symbolic import Discharge, as_expr, eq, var

from tests.codegen.runtime.helpers import add_kernel, chain, increment_kernel, tensor


def ones(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.ones(shape, dtype)


@pytest.fixture(scope="module")
def pair() -> Executable:
    """main(x: (n, 4), y: (n, 4), z: (2 * n,), k: integer >= 1)"""
    n = var("n", lower=1, upper=64)
    k = var("k", lower=1)
    g = GraphBuilder("main")
    g.param("x", tensor(n, 4))
    g.param("y", tensor(n, 4))
    z = g.param("z", tensor(2 * n))
    g.param("k", PrimInfo(i64, k))
    g.assume(eq(n % 2, 0), "the pairs are complete")
    h = g.bind("h", tensor(2 * n), CallTIR("add", (z, z), (tensor(2 * n),)))
    return compile(Module().with_functions(add_kernel(), g.finish((h,))))


def call(exe: Executable, **changes: object) -> object:
    good: dict[str, object] = {"x": ones(6, 4), "y": ones(6, 4), "z": ones(12), "k": 3}
    return exe(*(good | changes).values())


def test_a_good_call(pair: Executable) -> None:
    assert np.array_equal(call(pair), ones(12) * 2)


BAD: list[tuple[dict[str, object], type[CallError], str]] = [
    ({"x": ones(6, 4, dtype="float64")}, DTypeError, "expected dtype f32, got f64"),
    ({"x": ones(6, 4).astype(">f4")}, DTypeError, "expected dtype f32, got >f4"),
    ({"x": np.empty((6, 4), object)}, DTypeError, "expected dtype f32, got object"),
    ({"x": ones(6)}, RankError, "expected rank 2, got rank 1 (shape (6,))"),
    ({"x": ones(4, 6).T}, StrideError, "got strides (1, 6) (in elements) of shape (6, 4)"),
    ({"x": ones(12, 4)[::2]}, StrideError, "got strides (8, 1) (in elements) of shape (6, 4)"),
    ({"y": ones(6, 5)}, ArgumentShapeError, "dimension 1 of shape (6, 5): expected 4, got 5"),
    ({"y": ones(8, 4)}, ArgumentShapeError, "expected n = 6 from the other arguments, got 8"),
    ({"z": ones(13)}, ArgumentShapeError, "expected n * 2 = 12 (with n = 6 from"),
    ({"k": 0}, FactError, "k >= 1 is false for k = 0"),
    ({"k": 1.5}, ArgumentTypeError, "expected an integer, got float"),
    ({"x": [[1.0]]}, ArgumentTypeError, "expected an array or a DLPack tensor, got list"),
]


@pytest.mark.parametrize(("changes", "error", "message"), BAD, ids=lambda v: str(v)[:30])
def test_a_bad_argument(
    pair: Executable, changes: dict[str, object], error: type[CallError], message: str
) -> None:
    with pytest.raises(error) as caught:
        call(pair, **changes)
    assert message in caught.value.message
    assert "function 'main'" in caught.value.where
    name = next(iter(changes))
    if error is not FactError:
        assert f"parameter {name!r}" in caught.value.where
        assert caught.value.details["parameter"] == name
    assert np.array_equal(call(pair), ones(12) * 2)


def test_a_symbol_out_of_its_declared_range(pair: Executable) -> None:
    with pytest.raises(FactError, match="n <= 64 is false for n = 66"):
        call(pair, x=ones(66, 4), y=ones(66, 4), z=ones(132))


def test_a_fact_that_does_not_hold(pair: Executable) -> None:
    with pytest.raises(FactError, match="for n = 5") as caught:
        call(pair, x=ones(5, 4), y=ones(5, 4), z=ones(10))
    assert "the pairs are complete" in caught.value.hint


def test_the_number_of_arguments(pair: Executable) -> None:
    with pytest.raises(ArgumentCountError, match="number of arguments: expected 4, got 1"):
        pair(ones(6, 4))


def test_misaligned_elements(pair: Executable) -> None:
    raw = np.zeros(6 * 4 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(6, 4)
    with pytest.raises(AlignmentError, match="multiple of 4 bytes"):
        call(pair, x=raw)


def test_size_one_dimensions_may_have_any_stride(pair: Executable) -> None:
    odd = np.lib.stride_tricks.as_strided(ones(4), (2, 4), (16 * 7, 4))[:1]
    n = var("n")
    g = GraphBuilder("main")
    x = g.param("x", tensor(n, 4))
    exe = compile(Module().with_functions(g.finish((x,))))
    assert exe(odd).shape == (1, 4)


def test_an_error_has_all_as_data(pair: Executable) -> None:
    with pytest.raises(ArgumentShapeError) as caught:
        call(pair, y=ones(8, 4))
    data = caught.value.to_json()["details"]
    assert data == {
        "function": "main", "parameter": "y", "annotation": "Tensor((n, 4), f32)",
        "dimension": 0, "expected": 6, "actual": 8, "symbols": {"n": 6},
    }  # fmt: skip


# ---------------------------------------------------------------- symbols


def echo_of(*dims: object, extra: TensorInfo | None = None) -> Executable:
    g = GraphBuilder("main")
    x = g.param("x", tensor(*dims))
    if extra is not None:
        g.param("extra", extra)
    return compile(Module().with_functions(g.finish((x,))))


def test_a_symbol_inside_a_linear_term_is_solved_for() -> None:
    n = var("n", lower=1)
    exe = echo_of(3 * n + 1)
    assert exe(ones(10)).shape == (10,)
    with pytest.raises(ArgumentShapeError, match=r"expected n \* 3 \+ 1"):
        exe(ones(11))


def test_a_later_parameter_may_determine_an_earlier_ones_symbol() -> None:
    n, m = var("n", lower=1), var("m", lower=1)
    exe = echo_of(n * m, n, extra=tensor(m))
    assert exe(ones(12, 3), ones(4)).shape == (12, 3)
    with pytest.raises(ArgumentShapeError, match="got 13"):
        exe(ones(13, 3), ones(4))


def test_elements_of_an_integer_tensor_are_symbols() -> None:
    n, m = var("n", lower=1), var("m", lower=0)
    g = GraphBuilder("main")
    x = g.param("x", tensor(n, m))
    g.param("shape", TensorInfo((as_expr(2),), i64, elements=(n, m)))
    exe = compile(Module().with_functions(g.finish((x,))))
    assert exe(ones(2, 3), np.array([2, 3])).shape == (2, 3)
    with pytest.raises(ArgumentShapeError, match="element 1"):
        exe(ones(2, 3), np.array([2, 4]))


def test_division_by_a_symbol_that_is_zero() -> None:
    n, m = var("n", lower=0), var("m", lower=0)
    exe = echo_of(n, m, extra=tensor(n // m))
    assert exe(ones(6, 2), ones(3)).shape == (6, 2)
    with pytest.raises(SizeError, match="division by zero"):
        exe(ones(6, 0), ones(3))


def test_facts_from_the_caller_are_checked_and_proved_ones_are_not() -> None:
    n = var("n", lower=0)
    g = GraphBuilder("main")
    x = g.param("x", tensor(n))
    g.assume(n <= 8, "asked of the caller", Discharge.CALLER)
    g.assume(n <= 1, "a likely value", Discharge.ASSUMED_HINT)
    exe = compile(Module().with_functions(g.finish((x,))))
    assert exe(ones(8)).shape == (8,)
    with pytest.raises(FactError, match="n <= 8"):
        exe(ones(9))


# ---------------------------------------------------------------- writing in place


@pytest.fixture(scope="module")
def update() -> Executable:
    """increment(state inout), and add(a, b) beside it"""
    return compile(Module().with_functions(increment_kernel(), add_kernel()))


def test_a_written_argument_may_not_be_read_only(update: Executable) -> None:
    frozen = ones(4)
    frozen.flags.writeable = False
    with pytest.raises(ReadOnlyError, match=r"writes this parameter \(inout\)"):
        update["increment"](frozen)


def test_a_written_argument_shares_no_memory(update: Executable) -> None:
    memory = ones(8)
    with pytest.raises(AliasError, match=r"'y' \(out\) shares memory with 'a' \(in\)"):
        update["add"].into(memory[:4], ones(4), memory[3:7])
    update["add"].into(memory[:4], memory[:4], memory[4:])
    assert np.array_equal(memory[4:], ones(4) * 2)


def test_empty_arguments_share_nothing(update: Executable) -> None:
    memory = ones(8)
    update["add"].into(memory[:0], memory[:0], memory[:0])


def strided() -> Executable:
    return compile(
        parse("""
n, m, s = symbols("n m s", lower=0)

@prim_func
def every_other(x: Buffer((n, m), f32, strides=(m * 2, 1)), y: Out[(n, m), f32]):
    for i in range(n):
        for j in range(m):
            y[i, j] = x[i, j]

@prim_func
def any_rows(x: Buffer((n, m), f32, strides=(s, 1)), y: Out[(n, m), f32]):
    for i in range(n):
        for j in range(m):
            y[i, j] = x[i, j]
""")
    )


def test_explicit_strides_of_a_kernel() -> None:
    exe = strided()
    memory = np.arange(24, dtype=np.float32).reshape(3, 8)
    assert np.array_equal(exe["every_other"](memory[:, :4]), memory[:, :4])
    assert np.array_equal(exe["any_rows"](memory[:, :5]), memory[:, :5])
    assert np.array_equal(exe["any_rows"](torch.from_numpy(memory)[:, 2:5]), memory[:, 2:5])
    assert np.array_equal(exe["every_other"](memory[:1, :3]), memory[:1, :3])
    with pytest.raises(
        StrideError, match=r"dimension 0: expected stride m \* 2 = 16, got 8 \(in elements\)"
    ):
        exe["every_other"](memory)
    with pytest.raises(StrideError, match=r"dimension 1: expected stride 1, got 2 \(in elements\)"):
        exe["any_rows"](memory[:, ::2])
    with pytest.raises(FactError, match="s >= 0 is false for s = -8"):
        exe["any_rows"](memory[::-1])


def test_an_integer_below_its_declared_range() -> None:
    k, g = var("k", lower=0), GraphBuilder("main")
    x = g.param("x", tensor(4))
    g.param("k", PrimInfo(i64, k))
    exe = compile(Module().with_functions(g.finish((x,))))
    exe(ones(4), 0)
    with pytest.raises(FactError, match="k >= 0 is false for k = -1"):
        exe(ones(4), -1)


# ---------------------------------------------------------------- DLPack


def test_torch_tensors_go_in(pair: Executable) -> None:
    got = call(pair, x=torch.ones(6, 4), z=torch.full((12,), 3.0))
    assert np.array_equal(got, ones(12) * 6)


def test_torch_tensors_are_checked_as_well(pair: Executable) -> None:
    with pytest.raises(DTypeError, match="expected dtype f32, got f64"):
        call(pair, x=torch.ones(6, 4, dtype=torch.float64))
    with pytest.raises(StrideError, match=r"strides \(1, 6\)"):
        call(pair, x=torch.ones(4, 6).T)
    with pytest.raises(ArgumentTypeError, match="require gradient"):
        call(pair, x=torch.ones(6, 4, requires_grad=True))
    with pytest.raises(ReadOnlyError):
        compile(Module().with_functions(increment_kernel()))(_ReadOnly(torch.ones(3)))


class _ReadOnly:
    """A tensor that is exported as read-only."""

    def __init__(self, inner: torch.Tensor) -> None:
        array = inner.numpy()
        array.flags.writeable = False
        self.array = array

    def __dlpack__(self, **options: object) -> object:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class _Elsewhere:
    """A tensor that reports a GPU as its device."""

    dtype, shape, device = "float32", (6, 4), "cuda:0"

    def __init__(self) -> None:
        self.array = ones(6, 4)

    def __dlpack__(self, **options: object) -> object:
        import ctypes

        capsule = self.array.__dlpack__(max_version=(1, 0))
        get = ctypes.pythonapi.PyCapsule_GetPointer
        address = get(ctypes.py_object(capsule), b"dltensor_versioned")
        ctypes.c_int32.from_address(address + 32 + 8).value = 2
        return capsule


def test_a_tensor_on_another_device(pair: Executable) -> None:
    with pytest.raises(DeviceError, match="got one on cuda:0"):
        call(pair, x=_Elsewhere())


def test_an_old_dlpack_without_versions(pair: Executable) -> None:
    class Old:
        dtype, shape = "float32", (12,)

        def __dlpack__(self) -> object:
            return torch.full((12,), 5.0).__dlpack__()

    assert np.array_equal(call(pair, z=Old()), ones(12) * 10)


def test_bfloat16_arguments_and_results() -> None:
    n, b = var("n"), Builder("twice")
    x, y = b.param("x", (n,), bf16), b.param("y", (n,), bf16, "out")
    b.compute(y, lambda i: Binary("add", b.load(x, i), b.load(x, i)))
    exe = compile(Module().with_functions(b.finish()))
    values = np.array([1, -2.5, 3], bf16.numpy)
    got = exe(values)
    assert got.dtype == bf16.numpy
    assert np.array_equal(got.astype("f4"), [2, -5, 6])
    assert np.array_equal(exe(torch.tensor([1.0, -2.5, 3], dtype=torch.bfloat16)), got)
    with pytest.raises(DTypeError, match="expected dtype bf16, got u16"):
        exe(values.view(np.uint16))
    with pytest.raises(DTypeError, match="expected dtype f32, got bf16"):
        compile(chain(1))(values)
