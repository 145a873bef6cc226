"""Reference interpreter of graph-level and loop-level functions on NumPy: the test oracle."""

from .graph import run_graph
from .loops import OutOfBoundsError, call_prim, run_prim
from .oracle import Exact, Verdict, compare, interpreted

__all__ = [
    "Exact",
    "OutOfBoundsError",
    "Verdict",
    "call_prim",
    "compare",
    "interpreted",
    "run_graph",
    "run_prim",
]
