"""Results of executables in arrays of the caller."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tilewright as tw
from tilewright.codegen.errors import (
    AliasError,
    ArgumentCountError,
    ArgumentShapeError,
    ArgumentTypeError,
    CallError,
    DTypeError,
    RankError,
    ReadOnlyError,
    StrideError,
)
from tilewright.codegen.runtime.executable import Executable

TEXT = """
n = symbols("n", lower=1)
k = symbols("k", lower=0)

@graph_func
def main(x: Tensor[(n, 4), f32], w: Tensor[(4, 4), f32]):
    a = matmul(x, w)
    p = softmax(a, axis=-1)
    q = matmul(p, w)
    s = sum(q, axes=(-1,), keepdims=False)
    return q, s

@graph_func
def count(x: Tensor[(4,), f32], seen: State[Tensor[(4,), f32]]):
    new: Tensor[(4,), f32] = add(seen, x)
    y = multiply(new, 2.0)
    return y, updates(seen=new)

@graph_func
def positions(x: Tensor[(n,), f32]):
    found = nonzero(x)
    y = match_cast(found, Tensor[(k, 1), i64])
    return y

@prim_func
def accumulate(x: Buffer[(n,), f32], total: InOut[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        total[i] = total[i] + x[i]
        y[i] = x[i] * 2.0
"""


@pytest.fixture(scope="module")
def exe() -> Executable:
    return tw.compile(tw.parse(TEXT))


def arrays(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    x, w = (rng.standard_normal((rows, 4)).astype(np.float32) for rows in (n, 4))
    return x, w, np.full((n, 4), 9, np.float32), np.full(n, 9, np.float32)


@pytest.mark.parametrize("n", [1, 7, 40])
def test_results_are_written_to_the_arrays(exe: Executable, n: int) -> None:
    x, w, q, s = arrays(n)
    x.flags.writeable = False
    wanted = exe(x, w)
    results = exe(x, w=w, out=(q, s))
    assert results.q is q
    assert results.s is s
    assert np.array_equal(q, wanted.q)
    assert np.array_equal(s, wanted.s)
    q[:] = 0
    exe["main"](x, w, out=[q, s])
    assert np.array_equal(q, wanted.q)


def test_one_result_with_a_parameter_that_is_written_in_place(exe: Executable) -> None:
    x, y, total = (np.full(5, v, np.float32) for v in (3, 0, 1))
    results = exe["accumulate"](x, total, out=y)
    assert [r.tolist() for r in results] == [[4] * 5, [6] * 5]
    assert results[0] is total
    assert results[1] is y


def test_a_state(exe: Executable) -> None:
    state, y = exe.new_state(), np.empty(4, np.float32)
    for k in (1, 2):
        assert exe["count"](np.ones(4, np.float32), state=state, out=y) is y
        assert y.tolist() == [2 * k] * 4
    with pytest.raises(ArgumentShapeError):
        exe["count"](np.ones(4, np.float32), state=state, out=np.empty(3, np.float32))
    with pytest.raises(AliasError, match="shares memory with parameter 'seen'"):
        exe["count"](np.ones(4, np.float32), state=state, out=state["seen"])
    exe["count"](np.ones(4, np.float32), state=state, out=y)
    assert y.tolist() == [6] * 4  # refused calls have not changed the state


def test_a_shape_that_depends_on_elements(exe: Executable) -> None:
    x, y = np.array([1, 0, 2], np.float32), np.empty((2, 1), np.int64)
    assert exe["positions"](x, out=y).tolist() == [[0], [2]]
    with pytest.raises(ArgumentShapeError, match=r"expected shape \(2, 1\), got shape \(3, 1\)"):
        exe["positions"](x, out=np.empty((3, 1), np.int64))


X, W, Q, S = arrays(7)


@pytest.mark.parametrize(
    ("out", "error", "text"),
    [
        (Q, ArgumentCountError, "number of outputs: expected 2, got 1"),
        ((Q, S, S), ArgumentCountError, "number of outputs: expected 2, got 3"),
        ((Q, S[:6].copy()), ArgumentShapeError, r"expected shape \(7,\), got shape \(6,\)"),
        ((Q, Q), RankError, "expected rank 1, got rank 2"),
        ((Q, S.astype(np.float64)), DTypeError, "expected dtype f32, got float64"),
        ((Q, [0.0] * 7), ArgumentTypeError, "expected a NumPy array, because it is written"),
        ((Q, np.broadcast_to(S[:1], 7)), ReadOnlyError, "is read-only"),
        ((Q, np.zeros(14, np.float32)[::2]), StrideError, "expected compact row-major elements"),
        ((Q, Q.reshape(-1)[:7]), AliasError, "shares memory with result 'q'"),
        ((X, S), AliasError, "shares memory with parameter 'x'"),
    ],
)
def test_an_output_that_does_not_fit_is_refused(
    exe: Executable, out: object, error: type[CallError], text: str
) -> None:
    with pytest.raises(error, match=text) as caught:
        exe(X, W, out=out)
    assert "function 'main'" in str(caught.value)


def test_arguments_of_other_libraries(exe: Executable) -> None:
    x, w = torch.from_numpy(X.copy()), torch.from_numpy(W.copy())
    q, s = np.empty_like(Q), np.empty_like(S)
    exe(x, w, out=(q, s))
    assert np.array_equal(q, exe(X, W).q)
    with pytest.raises(AliasError, match="shares memory with parameter 'x'"):
        exe(x, w, out=(x.numpy(), s))
