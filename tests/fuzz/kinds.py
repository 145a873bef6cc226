"""The kinds of random walks: on one loop-level function, and on the graph of a program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.fuzz import walks
from tests.fuzz.cases import Case, Minimizer
from tests.fuzz.graphs import cases as of_graphs, walks as on_graphs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True)
class Kind:
    """A kind of random walks.

    Parameters
    ----------
    name : str
        The name in the record.
    start : callable
        A function from a seed, a family of programs and a goal to the first state of a walk.
    advance : callable
        A function that tries steps until a walk is complete.
    case, minimizer : type
        The data of a failing walk, and its reduction.
    warm : callable
        A function that imports and compiles the parts that all processes use.
    whole : int
        One of so many programs is also compiled as a whole, which takes longer.
    """

    name: str
    start: Callable[[int, str, str], Any]
    advance: Callable[[Any], None]
    case: type[Case]
    minimizer: type[Minimizer]
    warm: Callable[[Any], None] = lambda _: None
    whole: int = 5


LOOPS = Kind("loops", walks.start, walks.advance, Case, Minimizer)
GRAPHS = Kind(
    "graphs", on_graphs.start, on_graphs.advance, of_graphs.GraphCase, of_graphs.GraphMinimizer,
    on_graphs.warm, 40,
)  # fmt: skip
KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (LOOPS, GRAPHS)}
