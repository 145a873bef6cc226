"""The operators and samples of PyTorch's OpInfo database, as programs that can be exported.

The database is part of PyTorch's test library, which imports ``expecttest`` for a class of test
cases. Samples do not need it, so an empty class replaces a missing package.
"""

from __future__ import annotations

import sys
import types
import unittest
import warnings
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

UNINITIALIZED = frozenset((
    "empty", "empty_like", "new_empty", "new_empty_strided", "empty_strided", "empty_permuted",
))  # fmt: skip
"""Operators whose results have any elements; only shapes and dtypes are compared."""

RANDOM = frozenset((
    "bernoulli", "cauchy", "exponential", "geometric", "log_normal", "normal", "uniform", "randn",
    "randn_like", "rand_like", "randint", "randint_like", "multinomial", "nn.functional.dropout",
    "nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.alpha_dropout",
    "nn.functional.feature_alpha_dropout", "nn.functional.rrelu",
    "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d",
))  # fmt: skip
"""Operators whose results depend on a generator of random numbers."""


def _of_singular(made: Any, *, transposed: bool) -> list[torch.Tensor]:
    """Return the products of singular vectors that their signs do not change, and the values."""
    left, values, right = made
    right = right if transposed else right.mH
    count = values.shape[-1]
    if left.numel() == 0 or right.numel() == 0:
        return [values]
    product = (left[..., :count] * values[..., None, :]) @ right[..., :count, :]
    return [product, values, left.mH @ left, right @ right.mH]


def _of_eigen(made: Any) -> list[torch.Tensor]:
    """Return the products of eigenvectors that their signs do not change, and the values."""
    values, vectors = made
    return [(vectors * values[..., None, :]) @ vectors.mH, values, vectors.mH @ vectors]


def _ordered(values: torch.Tensor) -> list[torch.Tensor]:
    """Return the parts of eigenvalues in an order that their positions do not change."""
    square = values * values
    parts = (values.real, values.imag, square.real, square.imag)
    return [part.sort(-1).values for part in parts]


def _of_matrix(made: Any, matrix: torch.Tensor) -> list[torch.Tensor]:
    """Return ordered eigenvalues, the residual of the eigenvectors, and their lengths."""
    values, vectors = made
    right = vectors * values[..., None, :]
    rest = [matrix @ v - r for v, r in ((vectors.real, right.real), (vectors.imag, right.imag))]
    return [*_ordered(values), *rest, vectors.abs().square().sum(-2)]


DETERMINED: dict[str, Callable[[Any, Any], list[torch.Tensor]]] = {
    "svd": lambda made, _: _of_singular(made, transposed=False),
    "svd_lowrank": lambda made, _: _of_singular(made, transposed=False),
    "pca_lowrank": lambda made, _: _of_singular(made, transposed=False),
    "linalg.svd": lambda made, _: _of_singular(made, transposed=True),
    "linalg.eigh": lambda made, _: _of_eigen(made),
    "linalg.eig": _of_matrix,
    "linalg.eigvals": lambda made, _: _ordered(made),
}
"""The compared functions of results, and the first operand, whose vectors have any signs, or any
basis of a space, or whose eigenvalues have any order."""


def function_of(info: Any) -> Callable[..., Any]:
    """Return the function of an operator whose results are compared."""
    determined = DETERMINED.get(info.name)
    if determined is None:
        return info.op
    return lambda x, *args, **options: determined(info.op(x, *args, **options), x)


def names(info: Any) -> str:
    """Return the name of an operator with its variant, such as ``div.trunc_rounding``."""
    return f"{info.name}.{info.variant_test_name}" if info.variant_test_name else info.name


@cache
def operators() -> dict[str, Any]:
    """Return the operators that accept float32, by name, in the order of the database."""
    if find_spec("expecttest") is None and "expecttest" not in sys.modules:
        substitute: Any = types.ModuleType("expecttest")
        substitute.TestCase = unittest.TestCase
        sys.modules["expecttest"] = substitute
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db  # takes seconds
    return {names(info): info for info in op_db if torch.float32 in info.dtypes}


_INPUT = object()
"""The constant of an argument that is an input; None is an argument, too."""


class Calls(torch.nn.Module):
    """Calls of one operator with fixed arguments except tensors, which are the inputs."""

    def __init__(self, function: Callable[..., Any], samples: Sequence[Any]) -> None:
        super().__init__()
        self.function = function
        self.specs: list[Any] = []
        self.constants: list[list[Any]] = []
        self.inputs: list[torch.Tensor] = []
        for sample in samples:
            leaves, spec = pytree.tree_flatten((sample.input, tuple(sample.args), sample.kwargs))
            self.specs.append(spec)
            self.constants.append([_INPUT if _is_input(v) else v for v in leaves])
            self.inputs += [v.detach() for v in leaves if _is_input(v)]

    def forward(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        """Return the tensors among the results of all calls."""
        given, found = iter(tensors), list[torch.Tensor]()
        for spec, constants in zip(self.specs, self.constants, strict=True):
            leaves = [next(given) if value is _INPUT else value for value in constants]
            first, args, kwargs = pytree.tree_unflatten(leaves, spec)
            made = self.function(first, *args, **kwargs)
            found += [v for v in pytree.tree_leaves(made) if isinstance(v, torch.Tensor)]
        return found

    def results(self, dtype: torch.dtype | None = None) -> list[torch.Tensor]:
        """Return the results of PyTorch, for tensors of 32-bit floats converted to a dtype."""
        torch.manual_seed(0)
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            found = self(*(_copy(x, dtype) for x in self.inputs))
        return [x.resolve_conj().resolve_neg().detach() for x in found]


def _is_input(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _copy(x: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    copied = x.clone()
    if dtype is not None and x.dtype == torch.float32:
        return copied.to(dtype)
    return copied


def samples(info: Any, most: int) -> list[Any]:
    """Return samples of an operator, at most a number of them, from the whole list."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = list(info.sample_inputs("cpu", torch.float32, requires_grad=False))
    if info.name == "svd_lowrank":  # M raises the rank above q: the result depends on the draws
        found = [s for s in found if s.kwargs.get("M") is None]
    if len(found) <= most:
        return found
    return [found[k * len(found) // most] for k in range(most)]
