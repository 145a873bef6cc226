"""All primitives: importing this package imports every module below it, which registers them."""

from __future__ import annotations

import importlib
import pkgutil


def load() -> None:
    """Import every module below this package."""
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        importlib.import_module(module.name)


load()
