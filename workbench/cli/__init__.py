"""The command line: ``tilewright compile``, ``run``, ``export``, ``bench`` and others."""

from .main import main

__all__ = ["main"]
