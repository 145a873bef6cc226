"""Optional packages of models, and how they load beside PyTorch without CUDA."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Final

import torch

PACKAGES: Final = ("transformers", "torchvision", "timm", "diffusers")

_LIBRARIES: list[torch.library.Library] = []


def available(package: str) -> bool:
    """Return whether a package is installed."""
    return find_spec(package) is not None


@cache
def declare_torchvision_operators() -> None:
    """Declare the operators of ``torchvision`` that its Python code names, if it is installed.

    Its library of operators needs CUDA, and its import fails without two of them. No model of the
    catalog calls them.
    """
    if not available("torchvision"):
        return
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, name):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _LIBRARIES.append(library)  # its declarations end with it


def load_packages() -> None:
    """Import the installed packages once, so that the processes of the models share them."""
    declare_torchvision_operators()
    for name in ("transformers.modeling_utils", "timm"):
        if available(name.partition(".")[0]):
            import_module(name)
