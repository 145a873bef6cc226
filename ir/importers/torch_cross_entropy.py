"""Definitions of the cross entropy of a linear layer, which PyTorch computes in chunks of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_SCALAR = "_linear_cross_entropy_batch_chunked"
_ROWS = "_linear_cross_entropy_batch_chunked_no_reduction"


def cross_entropy_rules() -> dict[Any, Callable[..., Any]]:
    """Return the definitions of the operators by other ones; none if PyTorch lacks them."""
    import torch

    space: Any = torch.ops.torch_nn
    rules = {_SCALAR: _reduced, _ROWS: _of_rows}
    return {getattr(space, n).default: rule for n, rule in rules.items() if hasattr(space, n)}


def _logits(x: Any, weight: Any, bias: Any, dtype: Any) -> Any:
    import torch

    shift = bias if bias is None else bias.to(dtype)
    return torch.nn.functional.linear(x.to(dtype), weight.to(dtype), shift)


def _factors(target: Any, weight: Any, ignored: int, dtype: Any) -> tuple[Any, Any]:
    """Return the classes of rows, 0 for ignored ones, and the factors of their losses."""
    import torch

    counted = target != ignored
    classes = torch.where(counted, target, 0)
    factors = counted.to(dtype)
    return classes, factors if weight is None else factors * weight.to(dtype)[classes]


def _of_rows(  # noqa: PLR0917  # the order of PyTorch
    x: Any, linear_weight: Any, target: Any, linear_bias: Any, weight: Any, ignored: int,
    _chunk: int, _policy: str, dtype: Any,
) -> Any:  # fmt: skip
    """Return the loss of each row."""
    logs = _logits(x, linear_weight, linear_bias, dtype).log_softmax(1)
    classes, factors = _factors(target, weight, ignored, dtype)
    return (-logs.gather(1, classes[:, None])[:, 0] * factors).to(x.dtype)


def _reduced(  # noqa: PLR0917  # the order of PyTorch
    x: Any, linear_weight: Any, target: Any, linear_bias: Any, weight: Any, reduction: str,
    ignored: int, _smoothing: float, _chunk: int, _policy: str, dtype: Any, _retain: bool,  # noqa: FBT001
    of_x: bool, of_weight: bool, of_bias: bool,  # noqa: FBT001
) -> tuple[Any, ...]:  # fmt: skip
    """Return the loss, and its wanted derivatives by the input, the weight, and the bias."""
    import torch

    logs = _logits(x, linear_weight, linear_bias, dtype).log_softmax(1)
    classes, factors = _factors(target, weight, ignored, dtype)
    if reduction == "mean":
        factors = factors / factors.sum()
    picked = logs.gather(1, classes[:, None])[:, 0]
    loss = -(picked * factors).sum()
    if reduction == "mean":
        loss = torch.where((target != ignored).any(), loss, torch.nan)
    slopes = logs.exp().scatter_add(1, classes[:, None], torch.full_like(picked[:, None], -1.0))
    slopes = slopes * factors[:, None]
    found = [
        slopes @ linear_weight.to(dtype) if of_x else x.new_empty(0, 0),
        slopes.mT @ x.to(dtype) if of_weight else x.new_empty(0, 0),
        slopes.sum(0) if of_bias else x.new_empty(0),
    ]
    return (loss.to(x.dtype), *(v.to(x.dtype) for v in found))
