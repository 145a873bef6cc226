"""All composite steps. Importing this package imports, and so registers, every module in it."""

from __future__ import annotations

import importlib
import pkgutil


def load() -> None:
    """Import every module of this package."""
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        importlib.import_module(module.name)


load()
