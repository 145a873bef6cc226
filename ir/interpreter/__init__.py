"""Slow and obviously right execution of loops and graphs on NumPy: the oracle of every test."""

from .graph import run_graph
from .loops import OutOfBoundsError, call_prim, run_prim

__all__ = ["OutOfBoundsError", "call_prim", "run_graph", "run_prim"]
