"""The primitive ``scan_blocks``."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.ir.interpreter.loops import call_prim
from tilewright.ir.script import parse
from tilewright.ir.verify import violations
from tilewright.schedules import Schedule
from tilewright.schedules.primitives.reduction.scan_blocks import ScanBlocks
from tilewright.target.target import Target

from tests.codegen.kernels import LEVELS
from tests.ir.loop.test_scans import LINEAR, OWN, SUMS, arguments
from tests.schedules.helpers import MATMUL, rejected, schedule

SIZES = ((0, 3), (2, 0), (1, 1), (3, 4), (2, 7), (1, 33))


def scheduled(text: str, kind: str, size: int = 4) -> Schedule:
    """Return the schedule of a scan in parts, whose loops run in some way."""
    sch = Schedule(parse(text), Target("simt") if kind == "threads" else None)
    (block,) = sch.get_blocks("f")
    total, before = sch.scan_blocks(block, size)
    rows = len(sch.get_loops(before)) - 1
    if kind == "parallel":
        for part in (total, block):
            sch.parallel(sch.get_loops(part)[rows])
    if kind == "lanes":
        sch.vectorize(sch.get_loops(block)[-1])
        sch.parallel(sch.get_loops(block)[rows])
    if kind == "threads":
        for part in (total, block):
            _, inner = sch.split(sch.get_loops(part)[rows], factors=(None, 4))
            sch.bind(inner, "threadIdx.x")
    return sch


@pytest.mark.parametrize("kind", ["serial", "parallel", "lanes", "threads"])
@pytest.mark.parametrize("text", [SUMS, LINEAR, OWN], ids=["sums", "linear", "own"])
def test_parts_compute_the_same_scan(text, kind):
    program = text.replace("lower=1", "lower=0")
    sch = scheduled(program, kind)
    assert str(parse(str(sch.module))) == str(sch.module)
    cpus = [Target("cpu", features=(level,)) for level in LEVELS]
    executables = [compile(sch, t) for t in ([Target("simt")] if kind == "threads" else cpus)]
    for n, m in SIZES:
        args = arguments(text, *((m, 1) if text is OWN else (n, m)))
        want = call_prim(parse(program).prims[0], args)
        for exe in executables:
            found = exe(*args)
            results = found if isinstance(found, tuple | list) else (found,)
            for got, expected in zip(results, want, strict=True):
                np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-30)
    if kind != "threads":
        for got, expected in zip(call_prim(sch.module.prims[0], args), want, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-30)


def test_requirements():
    sums = SUMS.replace("lower=0", "lower=1")

    def made(text: str) -> tuple[Schedule, ScanBlocks]:
        sch = schedule(text)
        (block,) = sch.get_blocks("f")
        return sch, ScanBlocks(block, 4)

    sch = schedule(MATMUL)
    product = ScanBlocks(sch.get_block("mm"), 4)
    rejected(sch, product, ScanBlocks.Requires.SCAN, "not a scan by a declared reducer")
    plain = sums.replace("scan(add, x[vi, vj])", "where(vj >= 1, y[vi, vj - 1], 0.0) + x[vi, vj]")
    rejected(*made(plain), ScanBlocks.Requires.SCAN, "not a scan by a declared reducer")
    sch, step = made(sums)
    rejected(sch, ScanBlocks(step.block, 0), ScanBlocks.Requires.POSITIVE_SIZE, "the size is 0")
    sch, step = made(sums)
    sch.reorder("j", "i")
    rejected(sch, step, ScanBlocks.Requires.SCAN_LOOP, "does not bind 'vj'")
    sch, step = made(sums)
    sch.annotate("j", "pragma", 1)
    rejected(sch, step, ScanBlocks.Requires.SCAN_LOOP, "has annotations")
    sch, step = made(sums)
    sch.split("j", factors=(None, 8))
    rejected(sch, step, ScanBlocks.Requires.SCAN_LOOP, "does not bind 'vj'")
    ragged = sums.replace("range(m)", "range(min(i, m))").replace("ordered(j)", "ordered(m, j)")
    sch, step = made(ragged.replace("y: Out", "y: InOut"))
    rejected(sch, step, ScanBlocks.Requires.INDEPENDENT_EXTENT, "depends on another loop")
    for guard in ("j >= i", "j % 2 == 0", "i - j < 3"):
        guarded = sums.replace("y[vi, vj] =", f"guard({guard})\n                y[vi, vj] =")
        message = "of block 'sums' depends on loop 'j', other than as an upper limit"
        sch, step = made(guarded.replace("y: Out", "y: InOut"))
        rejected(sch, step, ScanBlocks.Requires.SCAN_LOOP, message)


def test_undo_and_replay():
    sch = Schedule(parse(SUMS))
    before = str(sch)
    total, carried = sch.scan_blocks("sums", 8)
    assert [sch.state.block(ref).name for ref in (total, carried)] == ["sums_total", "sums_before"]
    after = str(sch)
    trace = sch.trace
    sch.undo()
    assert str(sch) == before
    sch.replay(trace)
    assert str(sch) == after


def test_a_selected_scan_suggests_the_step():
    sch = Schedule(parse(SUMS))
    (block,) = sch.get_blocks("f")
    assert [step.size for step in ScanBlocks.suggest(sch.state, block)] == [1024]


@pytest.mark.parametrize("kind", ["serial", "parallel", "threads"])
def test_a_part_is_divided_again(kind):
    """The predicate of a partial last part is an upper limit, so runs after it have no steps."""
    sch = scheduled(SUMS.replace("lower=0", "lower=1"), "serial", 8)
    (block,) = (b for b in sch.get_blocks("f") if sch.state.block(b).name == "sums")
    runs, before = sch.scan_blocks(block, 3)
    groups, _ = sch.scan_blocks(before, 2)
    for part in (runs, groups, before, block) if kind != "serial" else ():
        loop = sch.get_loops(part)[2]
        if kind == "threads":
            _, loop = sch.split(loop, factors=(None, 4))
            sch.bind(loop, "threadIdx.x")
        else:
            sch.parallel(loop)
    exe = compile(sch, "simt" if kind == "threads" else "cpu")
    for n, m in ((1, 1), (2, 8), (1, 17), (3, 29)):
        args = arguments(SUMS, n, m)
        want = call_prim(parse(SUMS).prims[0], args)
        np.testing.assert_allclose(exe(*args), want[0], rtol=1e-5)
        np.testing.assert_allclose(call_prim(sch.module.prims[0], args)[0], want[0], rtol=1e-5)


@pytest.mark.parametrize("length", ["m", "33"])
def test_rows_of_thread_blocks(length):
    """The totals of a row are in global memory if their number is not a constant."""
    text = SUMS.replace("lower=0", "lower=1").replace("m)", f"{length})")
    sch = Schedule(parse(text), Target("simt"))
    total, _ = sch.scan_blocks(sch.get_blocks("f")[0], 4)
    sch.bind(sch.get_loops(total)[0], "blockIdx.x")
    for part in (total, sch.get_block("sums")):
        _, thread = sch.split(sch.get_loops(part)[1], factors=(None, 8))
        sch.bind(thread, "threadIdx.x")
    exe = compile(sch, "simt")
    for n, m in ((1, 1), (3, 7), (2, 70)) if length == "m" else ((1, 33), (3, 33)):
        args = arguments(SUMS, n, m)
        want = call_prim(parse(text).prims[0], args)
        np.testing.assert_allclose(exe(*args), want[0], rtol=1e-5)


STARTS = """
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(n + 1,), f32], e: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("y"):
            vi = ordered(i)
            u = {value}
            w = u * 2.0
            t = x[vi + 1] - 1.0
            y[vi] = scan(add, t * t, start=w + u)
"""


@pytest.mark.parametrize("target", ["cpu", "simt"])
@pytest.mark.parametrize("value", ["x[0] + 3.0", "x[vi] * x[vi + 1]"])
def test_a_start_that_uses_bound_values_is_that_of_the_first_iteration(value, target):
    module = parse(STARTS.format(value=value))
    sch = Schedule(module)
    sch.scan_blocks("y", 4)
    assert not list(violations(sch.module))
    results, unscheduled = sch.module.prim("f"), compile(module, target)
    for n in (0, 1, 4, 9):
        x = np.random.default_rng(n).integers(-4, 5, n + 1).astype(np.float32)
        args = [x, np.zeros(n, np.float32)]
        (want,) = call_prim(module.prim("f"), args)
        np.testing.assert_array_equal(call_prim(results, args)[0], want)
        np.testing.assert_array_equal(unscheduled(*args), want)
