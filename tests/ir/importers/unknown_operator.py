"""An operator of PyTorch that no importer knows."""

from __future__ import annotations

import torch


@torch.library.custom_op("tests::unknown", mutates_args=())
def unknown(x: torch.Tensor) -> torch.Tensor:
    """Return the tensor."""
    return x.clone()


@unknown.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)
