"""Registration of the import handlers: every module of this package is imported."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path


@cache
def load_handlers() -> None:
    """Import every module of this package, and so register the handlers in it."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        importlib.import_module(f"{__package__}.{module.name}")
