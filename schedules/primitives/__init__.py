"""All primitives. Importing this package imports, and so registers, every module below it."""

from __future__ import annotations

import importlib
import pkgutil


def load() -> None:
    """Import every module below this package."""
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        importlib.import_module(module.name)


load()
