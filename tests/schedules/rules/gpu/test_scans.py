"""The GPU rule for one long scan: a thread block per part, totals by kernels of their own."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.codegen.llvm import assembly, emit_module
from tilewright.codegen.lower import lower_kernel
from tilewright.codegen.nvidia.ptxas import assemble
from tilewright.ir.script import parse
from tilewright.ir.thread.nodes import Barrier
from tilewright.ir.thread.visit import walk
from tilewright.schedules import Schedule
from tilewright.schedules.problem import StepError
from tilewright.target.target import Target

pytestmark = pytest.mark.slow

SCANS = """
n, m = symbols("n m", lower=0)

@graph_func
def main(x: Tensor[{shape}, {dtype}]):
    y = {op}(x, axis={axis})
    return y
"""
SIMT, CUDA = Target("simt"), Target("cuda", arch="sm_90a")
NAMES = {"f16": np.float16, "f32": np.float32, "i32": np.int32}
REFERENCES = {"cumsum": np.cumsum, "cummax": np.maximum.accumulate}


def default(shape="(n,)", axis=0, dtype="f32", op="cumsum", target=SIMT) -> Schedule:
    sch = Schedule(parse(SCANS.format(shape=shape, axis=axis, dtype=dtype, op=op)), target)
    sch.default_schedule()
    return sch


def rules(sch: Schedule) -> list[str]:
    """Return the rules for kernels that were applied."""
    return [g.op for g in sch.trace.groups if g.op.startswith("schedule_gpu")]


@pytest.mark.parametrize(
    ("dtype", "op", "sizes"),
    [
        ("f32", "cumsum", (0, 1, 7, 2047, 2048, 2049, 6007)),
        ("f16", "cumsum", (0, 1, 67, 2049)),
        ("i32", "cumsum", (1, 2049)),
        ("f32", "cummax", (1, 131, 2049)),
    ],
)
def test_a_long_scan_runs_in_thread_blocks(dtype, op, sizes):
    """The emulator reports no races, and sums of integers are exact."""
    sch = default(dtype=dtype, op=op)
    assert rules(sch) == ["schedule_gpu_scans", "schedule_gpu_scan_runs"]
    assert len(sch.module.prims) == 3
    exe = compile(sch.module, SIMT)
    for n in sizes:
        x = np.random.default_rng(n).integers(-3, 4, n).astype(NAMES[dtype])
        np.testing.assert_array_equal(exe(x), REFERENCES[op](x.astype(np.float64)))


@pytest.mark.parametrize(
    ("shape", "axis", "rule", "sizes"),
    [
        ("(1, n)", 1, "schedule_gpu_scan_runs", [(1, 0), (1, 1), (1, 1031)]),
        ("(3, n)", 1, "schedule_gpu_scan_runs", [(3, 0), (3, 1), (3, 101)]),
        ("(n, m)", 1, "schedule_gpu_loops", [(0, 3), (3, 0), (1, 1), (300, 5)]),
        ("(n, m)", 0, "schedule_gpu_loops", [(0, 3), (3, 0), (1, 1), (5, 300)]),
        ("(4, n, m)", 1, "schedule_gpu_loops", [(4, 0, 3), (4, 3, 0), (4, 5, 37)]),
        ("(50,)", 0, "schedule_gpu_serial", [(50,)]),
    ],
)
def test_other_scans_run_in_parallel(shape, axis, rule, sizes):
    """Several rows run in threads; only a short single scan is serial."""
    sch = default(shape, axis)
    assert rules(sch) == [rule]
    exe = compile(sch.module, SIMT)
    for size in sizes:
        x = np.random.default_rng(1).integers(-3, 4, size).astype(np.float32)
        np.testing.assert_array_equal(exe(x), np.cumsum(x, axis))


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_kernels_are_assembled_with_few_spills(dtype):
    """There is no barrier in the loops of the scan of a part."""
    for kernel in default(dtype=dtype, target=CUDA).module.prims:
        function = lower_kernel(kernel, CUDA).function
        done = assemble(assembly(emit_module([function], CUDA), CUDA), "sm_90a")
        assert done.resources.spill_stores <= 16
        if kernel.name == "cumsum":
            barriers = [s for s in function.body if isinstance(s, Barrier)]
            assert len(barriers) == sum(isinstance(s, Barrier) for s in walk(function.body))
            assert len(barriers) == 4 + (dtype == "f16")


def test_a_kernel_that_no_graph_calls_remains_one_kernel():
    kernel = default(dtype="f32").module.prims[0]
    text = """
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("sums"):
            vi = ordered(i)
            y[vi] = scan(add, x[vi])
"""
    sch = Schedule(parse(text), SIMT)
    with pytest.raises(StepError, match="no graph calls 'f'"):
        sch.schedule_gpu_scans("f")
    sch.default_schedule()
    assert rules(sch) == ["schedule_gpu_scan_runs"]
    assert kernel.name.startswith("cumsum")


def test_functions_without_one_long_scan_are_refused():
    sch = Schedule(parse(SCANS.format(shape="(n, m)", axis=1, dtype="f32", op="cumsum")), SIMT)
    sch.lower_graph("main")
    with pytest.raises(StepError, match="has 0 long scans, not one"):
        sch.schedule_gpu_scans("cumsum")


ALONE = """
n = symbols("n", lower=0)

@prim_func
def sums(x: Buffer[(n,), i32], y: Out[(n,), i32], z: Out[(n,), f32]):
    for j in range(n):
        with block("y"):
            vj = ordered(j)
            y[vj] = scan(add, x[vj])
    for k in range(n):
        with block("z"):
            vk = spatial(k)
            z[vk] = f32(y[vk]) * 0.5
"""


def test_a_kernel_that_no_graph_calls_is_divided_and_takes_its_results_as_arguments():
    exe = compile(parse(ALONE), SIMT)
    assert len(exe.kernels) > 1
    for n in (0, 1, 2049):
        x = np.random.default_rng(n).integers(-9, 9, n).astype(np.int32)
        y, z = np.empty(n, np.int32), np.empty(n, np.float32)
        exe["sums"].into(x, y, z)
        for sums, halves in ((y, z), exe(x)):
            np.testing.assert_array_equal(sums, np.cumsum(x))
            np.testing.assert_array_equal(halves, np.cumsum(x) * 0.5)
