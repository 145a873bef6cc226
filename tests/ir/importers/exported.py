"""Programs of functions of a matrix (n, m), exported with both dimensions dynamic."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

import tilewright as tw
from tilewright.ir.interpreter import run_graph

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = ((4, 6), (3, 5), (7, 8))


def compiled(function: Callable[[Any], list[Any]], *, dtype: Any = torch.float32) -> Any:
    """Compile a function of a matrix for all sizes."""

    class One(torch.nn.Module):
        def forward(self, x: Any) -> list[Any]:
            return function(x)

    axes = {0: torch.export.Dim("n", min=3), 1: torch.export.Dim("m", min=5)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(
            One(), (torch.rand(4, 6, dtype=dtype),), dynamic_shapes={"x": axes}
        )
    return tw.compile(tw.from_exported_program(program), target="cpu")


def matrix(n: int, m: int, dtype: Any = torch.float32) -> Any:
    """Return a matrix of distinct numbers around 0."""
    generator = torch.Generator().manual_seed(17 * n + m)
    return torch.randn(n, m, generator=generator, dtype=dtype) * 2


def equals_pytorch(
    function: Callable[[Any], list[Any]], *, dtype: Any = torch.float32, tolerance: float = 1e-5
) -> None:
    """Require that one program equals PyTorch at several sizes."""
    run = compiled(function, dtype=dtype)
    for n, m in SIZES:
        x = matrix(n, m, dtype)
        made = run(x.numpy())
        found = made if isinstance(made, tuple) else (made,)
        for have, want in zip(found, function(x), strict=True):
            expected = want.numpy()
            assert (have.shape, have.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_allclose(np.asarray(have), expected, rtol=tolerance, atol=tolerance)


def same_as_pytorch(
    function: Callable[..., list[Any]], *inputs: Any, dynamic: Any = None, others: Any = (),
    tolerance: float = 1e-5, reference: Callable[..., list[Any]] | None = None,
) -> None:  # fmt: skip
    """Require that the interpreter equals PyTorch for inputs, and for others of dynamic sizes.

    A reference replaces the results of PyTorch.
    """

    class One(torch.nn.Module):
        def forward(self, *operands: Any) -> list[Any]:
            return function(*operands)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        axes = None if dynamic is None else {"operands": tuple(dynamic)}
        program = torch.export.export(One(), inputs, dynamic_shapes=axes)
    module = tw.from_exported_program(program)
    for given in (inputs, *others):
        found = run_graph(module, [x.numpy() for x in given])
        for k, (have, want) in enumerate(zip(found, (reference or function)(*given), strict=True)):
            expected = want.numpy()
            assert (have.shape, have.dtype) == (expected.shape, expected.dtype), k
            finite = np.abs(np.where(np.isfinite(expected), expected, 0)).max(initial=0)
            np.testing.assert_allclose(
                have, expected, rtol=tolerance, atol=tolerance * (1 + finite), err_msg=str(k)
            )
