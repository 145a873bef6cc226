"""Predicted rates of kernels, by their estimated instructions and the bytes of their arguments."""

from __future__ import annotations

from ..codegen.lower.analysis.cost_estimate import LANES, estimated_work
from ..errors import TilewrightError
from ..ir.loop.decompose import decomposed
from ..ir.loop.nodes import For, PrimFunc
from ..ir.loop.visit import walk
from ..schedules.launch.realize_blocks import RealizeBlocks
from ..target.target import Target
from .protocol_runs import Roof, RoofLevel
from .render import Samples, at_samples

OPERATIONS = 2 * LANES
"""The operations of an estimated instruction at the peak: a multiply-add of a vector."""


def estimated_instructions(function: PrimFunc, samples: Samples, threads: int) -> float | None:
    """Return the estimated number of instructions of the thread that executes most of them.

    Parameters
    ----------
    function : PrimFunc
        A kernel.
    samples : Samples
        The sample values of its symbols.
    threads : int
        The number of threads of parallel loops.

    Returns
    -------
    float or None
        The number; None without a sample, or if no code can be generated for a reduction.

    Examples
    --------
    >>> from ..ir.script import parse
    >>> module = parse('''
    ... @prim_func
    ... def f(x: Buffer[(64,), f32], y: Out[(64,), f32]):
    ...     for i in parallel(4):
    ...         for j in vectorized(16):
    ...             with block("y"):
    ...                 v = spatial(64, i * 16 + j)
    ...                 y[v] = x[v] + 1.0
    ... ''')
    >>> estimated_instructions(module.prim("f"), {}, threads=2)  # load, addition, and store
    6.0
    """
    try:
        realized = RealizeBlocks().run(decomposed(function), Target("cpu"))
    except TilewrightError:
        return None
    work = at_samples(estimated_work(realized.body), samples)
    parallel = any(isinstance(s, For) and s.kind == "parallel" for s in walk(realized.body))
    return None if work is None else work / (threads if parallel else 1)


def predicted_gflops(
    instructions: float, operations: float, size: float, roof: Roof, level: RoofLevel
) -> float:
    """Return the predicted operations per nanosecond of a call; 0 for a call that does nothing.

    The call takes as long as the slower one of the instructions, at the peak rate of
    multiply-adds of one thread, and of the bytes of the arguments, at the peak rate of a level.

    Parameters
    ----------
    instructions : float
        The :func:`estimated_instructions`.
    operations, size : float
        The operations on elements, and the bytes of the arguments.
    roof : Roof
        The peak rates of the machine.
    level : RoofLevel
        The level that the arguments come from.

    Examples
    --------
    >>> memory = RoofLevel("memory", 0, 10.0)
    >>> roof = Roof("fma", 2, 64.0, [memory])  # one multiply-add per nanosecond and thread
    >>> predicted_gflops(100.0, 3200.0, 500.0, roof, memory)
    32.0
    >>> predicted_gflops(100.0, 3200.0, 4000.0, roof, memory)
    8.0
    """
    rate = roof.gflops / OPERATIONS / roof.threads
    time = max(instructions / rate, size / level.gbytes)
    return operations / time if time else 0.0
