"""User interfaces: sessions, the notebook widget, and the command line."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .session import Session
    from .widget import Workbench

__all__ = ["Session", "Workbench"]

_HOME = {"Session": ".session", "Workbench": ".widget"}


def __getattr__(name: str) -> Any:
    """Import the widget on first use, because the command line does not need ipywidgets."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    return getattr(import_module(_HOME[name], __name__), name)
