"""Running kernels for GPUs on the emulator, beside the interpreter."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from tilewright.codegen.lower import lower_kernel
from tilewright.codegen.simt import run_kernel
from tilewright.ir.interpreter.loops import run_prim
from tilewright.ir.loop.nodes import BufferParam
from tilewright.ir.script import parse
from tilewright.ir.symbolic import evaluate
from tilewright.ir.target import Target
from tilewright.ir.thread.text import to_text

if TYPE_CHECKING:
    from tilewright.codegen.lower import KernelArtifact
    from tilewright.codegen.simt import Report
    from tilewright.ir.loop.nodes import PrimFunc

SIMT = Target("simt")


def program(text: str) -> PrimFunc:
    """Parse a program of one function."""
    return parse(text).prims[0]


def lowered(func: PrimFunc | str, target: Target = SIMT) -> str:
    """Give the thread-level text of a function."""
    func = program(func) if isinstance(func, str) else func
    return to_text(lower_kernel(func, target).function)


def launch(artifact: KernelArtifact, arrays: list[np.ndarray], sizes: dict[str, int]) -> Report:
    """Run a kernel for the grid that its launch wants; all checks are on."""
    function = artifact.function
    known = {v: sizes[v.name] for v in artifact.symbols}
    extents = {"blockIdx": [1, 1, 1], "threadIdx": [1, 1, 1]}
    for axis in function.launch.axes:
        kind, _, along = axis.tag.partition(".")
        extents[kind]["xyz".index(along)] = int(evaluate(axis.extent, known))
    scratch = []
    if artifact.scratch is not None:
        scratch = [np.zeros(int(evaluate(artifact.scratch, known)), np.uint8)]
    grid, block = (tuple(extents[k]) for k in ("blockIdx", "threadIdx"))
    arguments = [*arrays, *(known[v] for v in artifact.symbols), *scratch]
    return run_kernel(function, grid, block, arguments)


def data(func: PrimFunc, sizes: dict[str, int], seed: int = 0) -> list[np.ndarray]:
    """Make arrays for a function's parameters: small integers, which sum up exactly."""
    rng = np.random.default_rng(seed)
    made = []
    for param in func.params:
        if isinstance(param, BufferParam):
            buffer = param.buffer
            free = {v for d in buffer.shape for v in d.free}
            known = {v: sizes[v.name] for v in free}
            shape = tuple(int(evaluate(d, known)) for d in buffer.shape)
            made.append(rng.integers(-4, 5, shape).astype(buffer.dtype.numpy))
    return made


def outputs(func: PrimFunc, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Give the arrays that a function writes."""
    params = [p for p in func.params if isinstance(p, BufferParam)]
    return [a for a, p in zip(arrays, params, strict=True) if p.access != "in"]


@cache
def artifact_of(func: PrimFunc) -> KernelArtifact:
    """Lower a function once."""
    return lower_kernel(func, SIMT)


def agrees(
    scheduled: PrimFunc, naive: PrimFunc, sizes: dict[str, int], *, tolerance: float = 0.0
) -> Report:
    """Check that a kernel computes what the program says, and that the checks find nothing."""
    artifact = artifact_of(scheduled)
    given = data(naive, sizes)
    wanted = [a.copy() for a in given]
    run_prim(naive, wanted)
    report = launch(artifact, given, sizes)
    assert report.findings == (), str(report)
    for mine, theirs in zip(outputs(naive, given), outputs(naive, wanted), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)
    return report
