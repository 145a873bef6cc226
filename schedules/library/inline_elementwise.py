"""The ``inline_elementwise`` composite step."""

from __future__ import annotations

from ..composite import composite
from ..handles import FunctionRef
from ..inline_checks import stays_small
from ..primitives.placement.compute_inline import ComputeInline
from ..schedule import Schedule


@composite
def inline_elementwise(sch: Schedule, function: FunctionRef) -> None:
    """Inline each element-wise block that has a single consumer, if that is legal.

    Before::

        for i in range(n):
            t[i] = x[i] + 1.0
        for i in range(n):
            y[i] = max(t[i], 0.0)

    After::

        for i in range(n):
            y[i] = max(x[i] + 1.0, 0.0)

    Parameters
    ----------
    function : FunctionRef
        The loop-level function.

    Notes
    -----
    One ``compute_inline`` per block. Blocks with several consumers stay, because their values would
    be computed several times. A block also stays if the expression of the consumer would have more
    than 512 nodes or be nested deeper than 64. Cost: linear in the size of the function for each
    block.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    ...     t = alloc((8,), f32)
    ...     for i in range(8):
    ...         with block("add"):
    ...             vi = spatial(i)
    ...             t[vi] = x[vi] + 1.0
    ...     for j in range(8):
    ...         with block("relu"):
    ...             vj = spatial(j)
    ...             y[vj] = max(t[vj], 0.0)
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> sch.inline_elementwise("f")
    >>> [block.name for block in sch.get_blocks("f")]
    ['relu']
    """
    for ref in sch.get_blocks(function.function):
        consumers = sch.get_consumers(ref)
        if sch.state.block(ref).init is None and len(consumers) == 1:
            step = ComputeInline(ref)
            if not sch.check(step) and stays_small(sch.state, ref):
                sch.apply(step)
