"""Execution of GPU kernels on the SIMT emulator and in the interpreter."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from tilewright.codegen.lower import lower_kernel
from tilewright.codegen.simt import run_kernel
from tilewright.ir.dtype import from_numpy
from tilewright.ir.interpreter.loops import run_prim
from tilewright.ir.packing import storage_of, unpack
from tilewright.ir.script import parse
from tilewright.ir.symbolic import evaluate
from tilewright.ir.thread.text import to_text
from tilewright.target.target import Target

from tests.codegen.arrays import data, outputs

if TYPE_CHECKING:
    from tilewright.codegen.lower import LoweredKernel
    from tilewright.codegen.simt import Report
    from tilewright.ir.loop.nodes import PrimFunc

SIMT = Target("simt")


def program(text: str) -> PrimFunc:
    """Parse a program of one function."""
    return parse(text).prims[0]


def lowered(func: PrimFunc | str, target: Target = SIMT) -> str:
    """Return the thread-level text of a function."""
    func = program(func) if isinstance(func, str) else func
    return to_text(lower_kernel(func, target).function)


def launch(artifact: LoweredKernel, arrays: list[np.ndarray], sizes: dict[str, int]) -> Report:
    """Run a kernel with the grid of its launch and all checks."""
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
    rows = [from_numpy(a.dtype) for a in arrays]
    memory = [
        storage_of(a, row) if row.is_packed else a for a, row in zip(arrays, rows, strict=True)
    ]
    arguments = [*memory, *(known[v] for v in artifact.symbols), *scratch]
    report = run_kernel(function, grid, block, arguments)
    for array, stored, row in zip(arrays, memory, rows, strict=True):
        if row.is_packed:
            array[...] = unpack(stored, array.shape, row)
    return report


@cache
def artifact_of(func: PrimFunc) -> LoweredKernel:
    """Lower a function once."""
    return lower_kernel(func, SIMT)


def agrees(
    scheduled: PrimFunc, naive: PrimFunc, sizes: dict[str, int], *, tolerance: float = 0.0
) -> Report:
    """Check a kernel against the interpreter, and that the emulator reports no findings."""
    artifact = artifact_of(scheduled)
    given = data(naive, sizes)
    wanted = [a.copy() for a in given]
    run_prim(naive, wanted)
    report = launch(artifact, given, sizes)
    assert report.findings == (), str(report)
    for mine, theirs in zip(outputs(naive, given), outputs(naive, wanted), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)
    return report
