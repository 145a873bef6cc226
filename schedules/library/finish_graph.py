"""The ``finish_graph`` composite step."""

from __future__ import annotations

from ...ir.graph.nodes import GraphFunc
from ..composite import composite
from ..handles import FunctionRef
from ..schedule import Schedule
from .lower_graph import lift


@composite
def finish_graph(sch: Schedule, function: FunctionRef) -> None:
    """Move the packing of weights to load time, remove dead code, and plan memory.

    Before::

        def main(x):
            y = call_tir("add", (x,))
            return y

    After::

        def main(x):
            arena = alloc_storage(...)
            y = alloc_tensor(...)
            launch("add", (x, y))
            return y

    Parameters
    ----------
    function : FunctionRef
        The graph-level function. One in the memory stage is not changed.

    Notes
    -----
    ``lift_transforms``, ``dead_code`` and ``plan_memory``. Cost: that of the steps.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... n = symbols("n", lower=1)
    ...
    ... @graph_func
    ... def main(x: Tensor[(n, 4), f32]):
    ...     y = add(x, 1.0)
    ...     return y
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> sch.lower_graph("main")
    >>> sch.finish_graph("main")
    >>> sch.module.graph("main").stage
    'memory'
    """
    found = sch.module.functions.get(function.function)
    if isinstance(found, GraphFunc) and found.stage == "dataflow":
        lift(sch, function)
        sch.dead_code(function)
        sch.plan_memory(function)
