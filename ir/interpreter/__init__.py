"""Slow and obviously right execution of loops and graphs on NumPy: the oracle of every test."""

from .graph import run_graph
from .loops import OutOfBoundsError, call_prim, run_prim
from .oracle import Agreement, Exact, compare, interpreted

__all__ = [
    "Agreement",
    "Exact",
    "OutOfBoundsError",
    "call_prim",
    "compare",
    "interpreted",
    "run_graph",
    "run_prim",
]
