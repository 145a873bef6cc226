"""Each imported PyTorch operator by itself, with both dimensions dynamic."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from tilewright.errors import TilewrightError, UnsupportedOperatorsError
from tilewright.ir.importers import from_exported_program
from tilewright.ir.interpreter.graph import run_graph
from tilewright.ir.loop.element_functions import named

from tests.amounts import amount
from tests.ir.importers.exported import same_as_pytorch

F: Any = functional


def assigned(x: Any) -> Any:
    """Assign columns in place."""
    y = x.clone()
    y[:, torch.tensor([1, 0])] = x[:, 2:4]
    return y


def masked(x: Any) -> Any:
    """Assign numbers to masked elements, rows, and columns in place."""
    y = x.clone()
    y[x > 1] = 0
    y[x[:, 0] > 0] = x[0] * 2
    y[:, x[0] > 0] = torch.tensor([3.0])
    return y.index_put((x < -1,), torch.tensor(5.0), accumulate=True)


def spread(x: Any, i: Any) -> Any:
    """Assign elements by several index tensors in place."""
    y = torch.stack([x, -x], 1)
    y[i[:3, 0] % 3, :, i[:3, 1] - 1] = x[:3, :2]
    y[:, i[:1, :1] % 2, i[:2, 2:3]] = x[:, :2, None] * 2
    y[i[:2, :1] % 2] = 7
    return y.index_put((i[:, 0] % 3, i[:, 1] * 0, i[:, 2] % 2), x[:, 0], accumulate=True)


def means_by_index(x: Any, i: Any) -> Any:
    """Replace columns by means; PyTorch warns that the function may change."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return x.index_reduce(1, i[0] // 2, x, "mean", include_self=False)


def stepped(x: Any) -> Any:
    """Assign slices with steps in place."""
    y = x.clone()
    y[::2] = 1
    y[:, 1:4:2] = x[:, 1:4:2] * 2
    return y


# Functions of x (n, m) float and i (n, m) integers in [0, m).
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "abs": lambda x, _: x.abs(),
    "erf and erfinv's friends": lambda x, _: torch.erf(x) + torch.expm1(x) + torch.log1p(x.abs()),
    "rounding": lambda x, _: x.floor() + x.ceil() * 2 + x.round() * 3 + x.trunc() * 4,
    "trigonometry": lambda x, _: x.sin() + x.cos(),
    "sign": lambda x, i: x.sign() * i.sign(),
    "integers become floats": lambda _, i: i.sqrt() + i / 2,
    "add alpha": lambda x, _: torch.add(x, x, alpha=2.5),
    "sub alpha": lambda x, _: torch.sub(x, x * 2, alpha=3),
    "rsub": lambda x, _: 2 - x,
    "rsub alpha": lambda x, _: torch.rsub(x, x * x, alpha=2),
    "promotion": lambda x, i: x * i + i * 2 + True,
    "double": lambda x, _: x.double() * x,
    "truncating division": lambda x, i: (
        torch.div(x, 0.3, rounding_mode="trunc") + torch.div(i - 3, 2, rounding_mode="trunc")
    ),
    "remainder of the dividend": lambda x, i: torch.fmod(x, 0.7) + torch.fmod(i - 3, 2),
    "shifts": lambda _, i: ((i - 3) << 2) + ((i - 3) >> 1) + torch.bitwise_left_shift(i, i * 9),
    "powers of two": lambda x, i: torch.ldexp(x, i) + x.frac() + torch.exp2(i),
    "fractions and exponents": lambda x, i: (
        torch.frexp(x)[0] + torch.frexp(x * 2.0 ** (i * 4))[1] + torch.frexp(x * 2.0**-146)[1]
    ),
    "fractions of limits": lambda x, _: (
        torch.frexp(x / 0)[0] + torch.frexp(x / 0)[1] + torch.frexp(x * 0)[0]
    ),
    "signs": lambda x, _: torch.signbit(x * 0) | (torch.copysign(x, -1.0) > 0),
    "neighbors": lambda x, _: torch.nextafter(x, -x) - x,
    "kinds of numbers": lambda x, i: (
        torch.isposinf(x / 0) | torch.isneginf(x / 0) & torch.isfinite(x) & torch.isfinite(i)
    ),
    "gamma functions": lambda x, i: torch.lgamma(x) + torch.polygamma(0, x) + torch.lgamma(i + 1),
    "special functions": lambda x, _: (
        torch.special.erfc(x)
        + torch.special.erfinv(x / 3)
        + torch.xlogy(x.abs(), x.abs())
        + torch.arctan2(x, x + 3)
        + torch.arcsinh(x)
        + torch.special.expit(x)
    ),
    "floor division": lambda _, i: (i - 3) // 2,
    "remainder": lambda x, i: torch.remainder(x, 0.7) + (i - 3) % 2,
    "reciprocal": lambda x, _: (x.abs() + 1).reciprocal() + x.square(),
    "power": lambda x, _: (x.abs() + 0.1) ** 1.5 + x**2 + x**3,
    "comparison of kinds": lambda x, i: (x > 0.5) & (i <= 2) | (x == 1) ^ (i != 0),
    "comparison with fractions": lambda _, i: i < 1.5,
    "logic": lambda x, i: torch.logical_or(x > 0, torch.logical_and(i > 1, ~(x < 0))),
    "logical not of numbers": lambda _, i: torch.logical_not(i),
    "bitwise": lambda _, i: (i & 3) | (i ^ 1) | ~i,
    "clamp": lambda x, _: x.clamp(-0.5, 0.5) + x.clamp(min=0) + x.clamp_max(0.2),
    "clamp by tensors": lambda x, _: torch.clamp(x, -x.abs(), x.abs() / 2),
    "extremes": lambda x, _: torch.maximum(x, -x) + torch.minimum(x, x * 2) + torch.max(x, -x),
    "extremes of two dtypes": lambda x, i: torch.max(x.double(), i) + torch.min(i, x),
    "sums of conditions are conditions": lambda x, i: torch.stack(
        [(x > 0) + (i > 1), (x > 0) * (i > 1), torch.maximum(x > 0, i > 1)]
    ),
    "extremes of conditions": lambda x, _: (
        (x > 0).amax(0) & (x > -3).min() | (x > 1).amin((0, 1)) | (x > 1).max()
    ),
    "where": lambda x, _: torch.where(x > 0, x, 0.0) + torch.where(x > 0, 1.0, -math.inf).exp(),
    "masked fill": lambda x, i: x.masked_fill(i > 1, -5.0).masked_fill(i == 0, x.new_zeros(())),
    "activations": lambda x, _: F.silu(x) + F.relu(x) + F.gelu(x, approximate="tanh"),
    "flatten": lambda x, _: x[None].flatten(0, 1).flatten(),
    "transposes": lambda x, _: x.t() @ x + x.transpose(0, 1) @ x,
    "permute": lambda x, _: x[:, None].permute(2, 0, 1),
    "squeeze": lambda x, _: x[None, :, None].squeeze(0).squeeze(1) + x[None].squeeze(),
    "expand": lambda x, _: x[:, None].expand(-1, 3, -1).contiguous(),
    "expand as": lambda x, _: x[:1].expand_as(x) + x,
    "repeat": lambda x, _: x.repeat(2, 1, 3),
    "repeat interleave": lambda x, _: x.repeat_interleave(3, dim=1),
    "slices": lambda x, _: x[1:, :-1] if x.shape[0] > 0 else x,
    "step": lambda x, _: x[::2],
    "narrow": lambda x, _: x.narrow(1, 1, 1),
    "select": lambda x, _: x[-1] + x[0] + x.select(0, 1),
    "unbind": lambda x, _: torch.stack([x, -x]).unbind(0)[1],
    "split": lambda x, _: torch.cat([x, x, x], 1).view(-1, 3, x.shape[1]).split([1, 2], 1)[1],
    "chunk": lambda x, _: sum(torch.stack([x, x * 2, x * 3, x * 4], 1).chunk(2, 1)),
    "stack": lambda x, i: torch.stack([x, i], -1),
    "cat of kinds": lambda x, i: torch.cat([x, i], 0),
    "fills": lambda x, _: x + torch.ones_like(x) * torch.full_like(x, 3) + x.new_full((1,), 2.0),
    "arange": lambda x, _: x + torch.arange(x.shape[1]) + torch.arange(2, x.shape[0] + 2)[:, None],
    "arange with a step": lambda x, _: torch.arange(0, x.shape[1] * 2, 2) + x,
    "arange downward": lambda x, _: (
        x + torch.arange(x.shape[1] - 1, -1, -1) + torch.arange(4, 3, -3)
    ),
    "arange of fractions": lambda x, _: (
        x[:, :4] + torch.arange(0, 1, 0.25) + torch.arange(1.5, 0.7, -0.2)[:4]
    ),
    "fraction of positions": lambda x, _: x * (torch.arange(x.shape[1]).float() / x.shape[1]),
    "triangles": lambda x, _: x.tril() + x.triu(1),
    "causal": lambda x, _: torch.ones(x.shape[1], x.shape[1]).tril().bool(),
    "gather": lambda x, i: x.gather(1, i),
    "index select": lambda x, i: x.index_select(1, i[0]),
    "index": lambda x, i: x[:, i[0]] + x[torch.arange(x.shape[0])[:, None], i],
    "index from the end": lambda x, i: x[:, i[0] - 1],
    "last of each row": lambda x, i: x[torch.arange(x.shape[0]), i[:, 0]],
    "embedding": lambda x, i: F.embedding(i, x.t()),
    "index copy": lambda x, _: x.index_copy(1, torch.tensor([1, 0]), x[:, 2:4]),
    "index put": lambda x, _: assigned(x),
    "masked writes": lambda x, _: masked(x),
    "writes at several indices": spread,
    "writes of slices with steps": lambda x, _: stepped(x),
    "diagonals": lambda x, _: torch.cat(
        [x.diagonal(), x.diagonal(-1), x[None].diagonal(1, -1, 1)[0], x.diagonal(99)]
    ),
    "diagonal of a product": lambda x, _: torch.einsum("ii->i", x @ x.t()) + torch.trace(x @ x.t()),
    "windows": lambda x, _: x.unfold(0, 2, 1).sum(-1)[:, :1] + x[:1, :5].unfold(1, 3, 2).sum(),
    "windows of a number": lambda x, _: x.sum().unfold(0, 1, 1),
    "extremes without NaN": lambda x, i: (
        torch.fmax(torch.where(x > 0, math.nan, x), x - 1)
        + torch.fmin(torch.where(x > 0, math.nan, x), torch.where(x > 1, math.nan, -x))
        + torch.fmax(i, i * 2)
    ),
    "powers of integers": lambda _, i: (i - 2) ** 3 + i**0 + i**1 + (i.int() - 9) ** 30,
    "scatter": lambda x, i: x.scatter(1, i[:, :1], x[:, :1] * 9),
    "scatter of the first updates": lambda x, i: x.scatter_add(1, i[:2, :3], x * 9),
    "scatters with reductions": lambda x, i: torch.stack(
        [
            x.scatter_reduce(1, i // 2, x * 3, reduce, include_self=kept)
            for reduce in ("sum", "prod", "mean", "amax", "amin")
            for kept in (True, False)
        ]
    ),
    "scatters of integers with reductions": lambda _, i: torch.stack(
        [
            i.scatter_reduce(1, i // 2, i * 3 - 5, reduce, include_self=kept)
            for reduce in ("sum", "prod", "mean", "amax", "amin")
            for kept in (True, False)
        ]
    ),
    "products by index": lambda x, i: x.scatter(1, i[:, :2], 9.0, reduce="multiply"),
    "means of slices by index": means_by_index,
    "slice scatter": lambda x, _: torch.slice_scatter(x, x[:, 1:3], 1, 0, 2),
    "sums": lambda x, _: x.sum() + x.sum(0) + x.sum(-1, keepdim=True) + x.sum((0, 1)),
    "sum of integers": lambda _, i: i.int().sum(1) + (i > 1).sum(1),
    "mean": lambda x, _: x.mean(-1, keepdim=True) + x.mean(),
    "products": lambda x, _: x.prod(1),
    "amax": lambda x, _: x.amax(1) - x.amin((0,), keepdim=True).sum(),
    "max with indices": lambda x, _: x.max(1)[0] + x.min(1, keepdim=True)[1].float().sum(1),
    "extreme of all": lambda x, _: x.max() - x.min(),
    "argmax": lambda x, _: x.argmax(1) + x.argmin(-1),
    "argmax of all": lambda x, i: x.argmax() + torch.argmin(i, keepdim=True),
    "least and largest": lambda x, _: (
        torch.aminmax(x, dim=1, keepdim=True)[0] + torch.aminmax(x).max
    ),
    "logsumexp": lambda x, i: (
        torch.logsumexp(x * 90, 1, keepdim=True)
        + torch.logsumexp(i, (0, 1))
        + torch.logsumexp(torch.where(x > 0, -math.inf, x), 0)
        + torch.logsumexp(x * 0 - math.inf, 1)[:, None].exp()
    ),
    "logaddexp": lambda x, _: torch.logaddexp(x * 99, x.floor() / 0) + torch.logaddexp(x, -x),
    "variance and mean": lambda x, _: torch.stack(torch.var_mean(x, dim=1, correction=0)),
    "deviation and mean": lambda x, _: torch.std_mean(x, 0, correction=0, keepdim=True)[0],
    "8-bit floats saturate like those of PyTorch": lambda x, _: (
        (x * 1e3).to(torch.float8_e4m3fn).float() + (x / 0).to(torch.float8_e4m3fn).float()
    ),
    "any and all": lambda x, i: (x > 0).any(1) | (i >= 0).all(-1) | (x > 9).any(),
    "cumsum": lambda x, i: x.cumsum(1) + i.cumsum(0),
    "cumprod": lambda x, i: x.cumprod(1) + i.cumprod(0) + (i > 2).cumprod(-1),
    "logcumsumexp": lambda x, _: x.logcumsumexp(1) + x.logcumsumexp(0),
    "running maxima": lambda x, i: torch.cummax(x, 1)[0] + torch.cummax(i - 2, 0).values,
    "running minima": lambda x, i: torch.cummin(x, 0)[0] + torch.cummin(i, -1).values,
    "indices of running maxima": lambda x, i: (
        torch.cummax(x, 1).indices + torch.cummax(i % 3, 0).indices * 10
    ),
    "indices of running minima": lambda x, i: (
        torch.cummin(x, 0).indices + torch.cummin(i % 2, 1)[1] * 10
    ),
    "running extremes of conditions": lambda _, i: (
        torch.cummax(i > 2, 1)[0].int() + torch.cummin(i > 0, 0)[1]
    ),
    "running extremes with NaN": lambda x, _: torch.stack(
        [v.float() for v in torch.cummax(torch.where(x > 1, x / 0 * 0, x), 1)]
    ),
    "scans of one number": lambda x, _: (
        x[0, 0].cumsum(0) + x[0, 1].cumprod(-1) + torch.cummax(x[0, 2], 0)[0]
    ),
    "numbers outside of small integers wrap": lambda _, i: (
        (i.to(torch.int8) + 300) * 5 + i.to(torch.uint8) - 300 + (i.to(torch.int8) < 300)
    ),
    "squeeze of sizes proved to be 1": lambda x, _: x[:1].squeeze(0) + x[-1:].squeeze(),
    "variance in all signatures": lambda x, _: (
        x[:, :3].var(1, False)
        + x[:, :3].var(1, True, False)
        + x[:, :3].var([1], unbiased=True, keepdim=True)[:, 0]
        + x[:2, :3].var(False)
    ),
    "variance of any number of elements": lambda x, _: (
        x.var() + x.std(0) + x.var(1, correction=2)[:, None] + torch.var_mean(x, 1)[0][:, None]
    ),
    "deviation": lambda x, _: x[:, :3].std(1) + x.std(1, correction=0) + x[:2, :3].std(),
    "variance": lambda x, _: x.var(1, correction=0) + x[:, :3].var(1),
    "norms of other orders": lambda x, _: torch.stack(
        [torch.linalg.vector_norm(x, ord=order, dim=1) for order in (3, 0.5, 0, -math.inf, -2)]
    ),
    "indices of a number": lambda x, i: (
        x.sum().index_select(0, i[0, :1] * 0)
        + x.sum().gather(0, i[0, 0] * 0)
        + x.sum().index_copy(0, i[0, :1] * 0, x.min())
        + x.sum().index_add(0, i[0, :1] * 0, x.min(), alpha=2)
    ),
    "dimensions of a number": lambda x, _: (
        x.sum().squeeze(0) + x.sum().squeeze((0,)) + x.sum().transpose(0, -1) + x.sum().squeeze()
    ),
    "parts of real numbers": lambda x, _: x.angle() + torch.real(x),
    "extremes of a number": lambda x, _: x.sum().max(0)[0] + x.sum().min(0)[1],
    "norms": lambda x, _: F.normalize(x) + torch.linalg.vector_norm(x, ord=1),
    "largest magnitude": lambda x, _: torch.linalg.vector_norm(x, ord=math.inf, dim=1),
    "softmaxes": lambda x, _: x.softmax(1) + x.log_softmax(0) + x.softmax(-1, dtype=torch.float32),
    "layer norm": lambda x, _: F.layer_norm(x[:, :3], (3,), bias=torch.ones(3)),
    "rms norm with the default epsilon": lambda x, _: F.rms_norm(x[:, :3] * 1e-4, (3,)),
    "rms norm": lambda x, _: F.rms_norm(x[:, :3], (3,), eps=1e-6),
    "vectors": lambda x, _: (x @ x[0]) + (x[:, 0] @ x).sum() + x[0] @ x[1],
    "batches": lambda x, _: torch.bmm(x[None], x.t()[None]) + torch.mm(x, x.t()),
    "addmm": lambda x, _: torch.addmm(x, x @ x.t(), x, beta=0.5, alpha=2),
    "addmm without the first matrix": lambda x, _: (
        torch.addmm(x.log(), x @ x.t(), x, beta=0, alpha=2)
        + torch.addmm(x.log(), x @ x.t(), x, beta=0)
    ),
    "linear": lambda x, _: F.linear(x, x[:2].contiguous()),
    "linear of vectors": lambda x, _: (
        F.linear(x, x[0])
        + F.linear(x[1], x, torch.ones(1))
        + F.linear(torch.ones(x.shape[1]), x)
        + F.linear(x[1], x[0])
    ),
    "causal attention": lambda x, _: F.scaled_dot_product_attention(
        x[None], x[None], x[None], is_causal=True, scale=0.3
    ),
    "grouped attention": lambda x, _: F.scaled_dot_product_attention(
        x.expand(1, 4, -1, -1),
        x.expand(1, 2, -1, -1),
        x.expand(1, 2, -1, -1),
        scale=1.0,
        enable_gqa=True,
    ),
    "sizes": lambda x, _: x * (x.shape[0] * 2 + x.shape[1] // 2 - x.numel() % 3),
    "type as": lambda x, i: i.type_as(x) + x.to(torch.float32),
    "log and exp": lambda x, _: x.exp().log() + (x.abs() + 1).rsqrt() + x.sigmoid() + x.tanh(),
    "tests": lambda x, _: torch.isnan(x / 0 * 0) | torch.isinf(x / 0),
}

REJECTED: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "mask": (lambda x, _: x[x[:, 0] > 0].sum(), "operators|depends on data"),
    "arange of fractions": (
        lambda x, _: torch.arange(0, x.shape[1], 0.5).sum() + x,
        "all of them constants",
    ),
    "dropout": (lambda x, _: F.dropout(x, 0.5, training=True), "training mode"),
    "attention with dropout": (
        lambda x, _: F.scaled_dot_product_attention(x[None], x[None], x[None], dropout_p=0.5),
        "attention with dropout_p=0.5",
    ),
    "values of a mask": (
        lambda x, _: x.index_put((x > 0,), x.flatten()),
        "one value for all selected elements",
    ),
    "bits": (lambda x, _: x.view(torch.int32), "bits of f32"),
    "sum of conditions by index": (
        lambda x, i: (x > 0).index_put((i[:, 0] % 3,), x > 0, accumulate=True),
        "expected a numeric dtype, got bool at operand 'x'",
    ),
    "power of two tensors of integers": (
        lambda _, i: i**i,
        "expected a floating-point or complex dtype, got i64 at operand 'x' of power",
    ),
}


def exported(function: Callable[[Any, Any], Any]) -> Any:
    class One(torch.nn.Module):
        def forward(self, x: Any, i: Any) -> Any:
            return function(x, i)

    axes = {0: torch.export.Dim("n", min=3), 1: torch.export.Dim("m", min=5)}
    return torch.export.export(
        One().eval(),
        (torch.rand(4, 6), torch.zeros(4, 6, dtype=torch.long)),
        dynamic_shapes={"x": axes, "i": axes},
    )


TOGETHER = amount(12, 1)
"""The number of functions in one program, because each export takes a tenth of a second."""


@pytest.mark.parametrize("first", range(0, len(FUNCTIONS), TOGETHER), ids=[*FUNCTIONS][::TOGETHER])
def test_operators_equal_pytorch(first: int) -> None:
    names = [*FUNCTIONS][first : first + TOGETHER]
    module = from_exported_program(exported(lambda x, i: [FUNCTIONS[n](x, i) for n in names]))
    rng = np.random.default_rng(0)
    for n, m in ((4, 6), (3, 5), (5, 8)):
        x = rng.uniform(-2, 2, (n, m)).astype(np.float32)
        i = np.argsort(rng.random((n, m)), axis=1)
        for name, found in zip(names, run_graph(module, [x, i]), strict=True):
            expected = FUNCTIONS[name](torch.from_numpy(x), torch.from_numpy(i)).numpy()
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype), name
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("name", sorted(named("torch")))
def test_every_element_function_with_a_name_in_pytorch_is_imported(name: str) -> None:
    function = named("torch")[name]
    apply = getattr(torch, name)
    inputs = (torch.rand(4, 6), torch.rand(4, 6))[: function.arity]

    class One(torch.nn.Module):
        def forward(self, *operands: Any) -> Any:
            return apply(*operands)

    module = from_exported_program(torch.export.export(One(), inputs))
    low, high = (1.1, 3.0) if name == "acosh" else (0.05, 0.95)
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(low, high, (4, 6)).astype(np.float32) for _ in inputs]
    (found,) = run_graph(module, arrays)
    expected = apply(*map(torch.from_numpy, arrays)).numpy()
    np.testing.assert_allclose(found, expected, rtol=2e-6, strict=True)


def test_squeeze_of_the_first_row_of_any_batch() -> None:
    class First(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x[:1].squeeze(0)

    batch = torch.export.Dim("batch", min=1)
    program = torch.export.export(First(), (torch.rand(4, 6),), dynamic_shapes=({0: batch},))
    module = from_exported_program(program)
    for rows in (1, 5):
        x = np.arange(rows * 6, dtype=np.float32).reshape(rows, 6)
        (found,) = run_graph(module, [x])
        np.testing.assert_array_equal(found, x[0], strict=True)
    with pytest.raises(TilewrightError, match="batch > 0 does not hold"):
        run_graph(module, [np.zeros((0, 6), np.float32)])


ONE: dict[str, Callable[[Any], Any]] = {
    "first row": lambda x: x - x[:1],
    "last row": lambda x: x * x[-1:],
    "first and last column": lambda x: x[:, :1] + x + x[:, -1:],
    "other size": lambda x: torch.ones(5) * x[:, :1],
    "condition": lambda x: torch.where(x[:1] > 0, x, x[:, :1]),
    "expanded": lambda x: x[:, :1].expand(-1, x.shape[1]).clone(),
}


@pytest.mark.parametrize("name", ONE)
def test_a_slice_of_one_element_broadcasts(name: str) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return ONE[name](x)

    dims = {0: torch.export.Dim("n"), 1: torch.export.Dim("m")}
    program = torch.export.export(Model(), (torch.rand(4, 6),), dynamic_shapes=(dims,))
    module = from_exported_program(program)
    for shape in ((4, 6), (1, 3), (7, 1), (1, 1)):
        x = torch.randn(shape)
        (found,) = run_graph(module, [x.numpy()])
        np.testing.assert_array_equal(found, ONE[name](x).numpy(), strict=True)
    with pytest.raises(TilewrightError, match="does not hold"):
        run_graph(module, [np.zeros((0, 0), np.float32)])


DECIMALS = (-3, -1, 0, 1, 2, 5, 40, -40, 400)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("decimals", DECIMALS)
def test_rounding_to_decimals_equals_pytorch(decimals: int, dtype: Any) -> None:
    class One(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.round(decimals=decimals)

    numbers = [1234.5678, -2.5, 0.125, 2.675, 1e30, math.inf, -math.inf, math.nan, -0.0, 250, -49.9]
    x = torch.tensor(numbers, dtype=torch.float64).to(dtype)
    module = from_exported_program(torch.export.export(One(), (x,)))
    stored = module.graph().params[0].value.info.dtype.numpy
    (found,) = run_graph(module, [x.double().numpy().astype(stored)])
    expected = One()(x).double().numpy()
    assert found.dtype == stored
    np.testing.assert_array_equal(found.astype(np.float64), expected)
    signs = [np.signbit(a[~np.isnan(expected)]) for a in (found, expected)]
    np.testing.assert_array_equal(*signs)


@pytest.mark.parametrize("name", REJECTED)
def test_unsupported_variants_are_rejected_by_name(name: str) -> None:
    function, message = REJECTED[name]
    with pytest.raises(UnsupportedOperatorsError) as caught:
        from_exported_program(exported(function))
    assert any(word in str(caught.value) for word in message.split("|"))


HALF: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "norm": (lambda x: x.norm(), torch.full((400,), 300.0)),
    "norm of rows": (lambda x: torch.linalg.vector_norm(x, dim=1), torch.full((2, 300), 250.0)),
    "standard deviation": (lambda x: x.std(0), torch.linspace(-300, 300, 120).reshape(40, 3)),
    "variance": (lambda x: x.var(0), torch.linspace(-30, 30, 120).reshape(40, 3)),
    "gelu": (functional.gelu, torch.linspace(-4, 4, 65)),
    "sum with a factor": (lambda x: torch.add(x, x, alpha=0.125), torch.linspace(-4, 4, 65)),
    "running sum": (lambda x: x.cumsum(0), torch.ones(3000)),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", HALF)
def test_one_operator_of_pytorch_on_16_bits_is_rounded_once(name: str, dtype: Any) -> None:
    function, operand = HALF[name]

    class One(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return function(x)

    x = operand.to(dtype)
    module = from_exported_program(torch.export.export(One().eval(), (x,)))
    given = np.from_dlpack(x.float()).astype(module.graph("main").params[0].value.info.dtype.numpy)
    (found,) = run_graph(module, [given])
    expected = np.asarray(function(x.double()))
    unit = 2.0**-10 if dtype == torch.float16 else 2.0**-7
    assert (np.abs(np.asarray(found, np.float64) - expected) <= unit * np.abs(expected)).all()


@pytest.mark.parametrize("axes", [(), (1,), (0, 1)])
def test_rotations_of_dimensions_of_any_size_equal_pytorch(axes: tuple[int, ...]) -> None:
    shifts = (3, -1)[: max(len(axes), 1)]

    class Rotation(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.roll(x, shifts, axes)

    dynamic = ({0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC},)
    program = torch.export.export(Rotation(), (torch.rand(4, 6),), dynamic_shapes=dynamic)
    module = from_exported_program(program)
    for shape in ((4, 6), (1, 5), (2, 3), (0, 3), (3, 0)):
        x = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
        (found,) = run_graph(module, [x])
        wanted = torch.roll(torch.from_numpy(x), shifts, axes).numpy()
        np.testing.assert_array_equal(found, wanted, strict=True)


def test_the_first_elements_in_another_shape_equal_pytorch() -> None:
    aten = torch.ops.aten

    def function(x: Any, other: Any) -> list[Any]:
        sizes = ((2, 3), (), (4, 6), (0, 2))
        return [aten.resize_as.default(x, other), *(aten.resize.default(x, s) for s in sizes)]

    same_as_pytorch(function, torch.arange(24.0).reshape(4, 6), torch.zeros(5, 2))


def test_elements_after_the_last_one_are_zeros() -> None:
    class Larger(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.ops.aten.resize.default(x, (2, 3))

    module = from_exported_program(torch.export.export(Larger(), (torch.ones(4),)))
    (found,) = run_graph(module, [np.ones(4, np.float32)])
    assert found.tolist() == [[1, 1, 1], [1, 0, 0]]


def test_tensors_with_strides_equal_pytorch() -> None:
    def function(x: Any) -> list[Any]:
        made = (
            x.new_empty_strided((4, 6), (1, 9)),
            torch.empty_permuted((4, 6), (1, 0)),
            torch.empty_strided((4, 6), (8, 1)),
        )
        return [m.copy_(x) for m in made]

    same_as_pytorch(function, torch.arange(24.0).reshape(4, 6))
