"""Reference interpreter of graph-level and loop-level functions on NumPy: the test oracle."""

from typing import TYPE_CHECKING

from ...renamed import module_getattr
from .elements import OutOfBoundsError
from .graph import run_graph
from .loops import call_prim, run_prim
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

if not TYPE_CHECKING:  # a type checker reports former names as unknown
    __getattr__ = module_getattr(__name__)
