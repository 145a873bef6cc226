"""The command line: ``tilewright lab | compile | run | replay | show | bench | cache | doctor``."""

from .main import main

__all__ = ["main"]
