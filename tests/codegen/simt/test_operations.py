"""Machine operations: each has a handler, which computes the result defined by the manual."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from tilewright.codegen.simt.findings import Findings
from tilewright.codegen.simt.frame import ALL_CHECKS, Frame, Geometry
from tilewright.codegen.simt.memory_model import SimtMemory
from tilewright.codegen.simt.operations import HANDLERS, Group, fragments
from tilewright.codegen.simt.operations.nvidia import MatrixLoad, MatrixMultiply, multiply
from tilewright.codegen.simt.provenance import StatementSite
from tilewright.codegen.simt.race_detector import BarrierOrder
from tilewright.codegen.simt.traffic import Traffic
from tilewright.ir.symbolic import evaluate
from tilewright.ir.thread.operations import OPERATIONS
from tilewright.schedules.intrinsics import cuda_layouts

SITE = StatementSite(0, "operation")
MMA = "nvidia.mma.m16n8k16.f32.f16"


def group(warps: int = 1) -> Group:
    geometry = Geometry((1, 1, 1), (32 * warps, 1, 1))
    memory = SimtMemory(BarrierOrder(geometry.padded, 1), races=True, definedness=True)
    records = Findings("probe"), Traffic()
    frame = Frame(geometry, np.arange(1), memory, [], records=records, checks=ALL_CHECKS)
    return Group(frame, SITE)


def test_every_operation_has_a_handler():
    assert set(HANDLERS) == set(OPERATIONS)


def test_results_are_as_declared():
    rng = np.random.default_rng(0)
    for operation in OPERATIONS.values():
        if operation.effects or not operation.results:
            continue  # matrix loads are tested on memory below
        operands = [
            rng.integers(0, 3, (t.lanes, 32) if t.lanes > 1 else 32).astype(t.dtype.numpy)
            for t in operation.operands
        ]
        results = HANDLERS[operation.name](group(), operands)
        for result, of in zip(results, operation.results, strict=True):
            assert result.dtype == of.dtype.numpy, operation.name
            assert result.shape == ((of.lanes, 32) if of.lanes > 1 else (32,)), operation.name


def _integers(rng, dtype, lanes, count=50):
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, (lanes, count), dtype, endpoint=True)


@pytest.mark.parametrize(
    ("name", "lanes", "left"),
    [("x86.vpdpbusd.512", 16, np.uint8), ("x86.vpdpbusd.256", 8, np.uint8),
     ("aarch64.sdot.128", 4, np.int8)],
)  # fmt: skip
def test_byte_dot_products(name, lanes, left):
    rng = np.random.default_rng(1)
    c = _integers(rng, np.int32, lanes)
    a, b = _integers(rng, left, 4 * lanes), _integers(rng, np.int8, 4 * lanes)
    (result,) = HANDLERS[name](group(), (c, a, b))
    wide = c.astype(object)
    for k in range(4):
        wide = wide + a[k::4].astype(object) * b[k::4].astype(object)
    assert (result == (wide & 0xFFFFFFFF).astype(np.uint32).view(np.int32)).all()


def test_word_products_wrap():
    extreme = np.full((16, 1), -(1 << 15), np.int16)
    (result,) = HANDLERS["x86.vpmaddwd.256"](group(), (extreme, extreme))
    assert (result == -(1 << 31)).all()


def test_bfloat_dot_products_round_after_each_product_and_flush_subnormals():
    def bf(*values):
        return np.array(values, np.float32).astype(ml_dtypes.bfloat16).reshape(-1, 1)

    handler = HANDLERS["x86.vdpbf16ps.512"]
    zeros = [0.0] * 30
    start = np.zeros((16, 1), np.float32)
    (result,) = handler(group(), (start, bf(3, 5, *zeros), bf(7, 11, *zeros)))
    assert result[0, 0] == 3 * 7 + 5 * 11
    big = np.zeros((16, 1), np.float32)
    big[0] = 2.0**24
    (result,) = handler(group(), (big, bf(1, 1, *zeros), bf(1, 1, *zeros)))
    assert result[0, 0] == 2.0**24  # adding each 1 is a tie, which rounds to even
    small = np.zeros((16, 1), np.float32)
    small[0] = 1e-40
    (result,) = handler(group(), (small, bf(0, 0, *zeros), bf(0, 0, *zeros)))
    assert result[0, 0] == 0


@pytest.mark.parametrize(
    ("mode", "operand", "source"),
    [
        ("bfly", 1, lambda lane: lane ^ 1),
        ("bfly", 16, lambda lane: lane ^ 16),
        ("down", 3, lambda lane: np.where(lane + 3 < 32, lane + 3, lane)),
        ("idx", 5, lambda lane: 0 * lane + 5),
        ("idx", 33, lambda lane: 0 * lane + 1),
    ],
)
def test_shuffles(mode, operand, source):
    lane = np.arange(64)
    values = (lane * 10).astype(np.float32)
    name = f"nvidia.shfl.{mode}.f32"
    (result,) = HANDLERS[name](group(2), (values, np.int32(operand)))
    assert (result == values[lane // 32 * 32 + source(lane % 32)]).all()


def test_both_implementations_of_the_matrix_fragments_agree():
    """PTX ISA 9.7.14.5, "Matrix Fragments for mma.m16n8k16 with floating point type".

    `fragments` implements the rules of the section from lane and element to row and column. The
    maps of `cuda_layouts` were derived independently from the same section, from row and column to
    lane and element. Every element of every matrix is compared.
    """
    pairs = (
        (fragments.multiplicand_a(), cuda_layouts.layout_a(), (16, 16)),
        (fragments.multiplicand_b(), cuda_layouts.layout_b(), (16, 8)),
        (fragments.accumulator(), cuda_layouts.layout_c(), (16, 8)),
    )
    for table, layout, shape in pairs:
        for row, column in np.ndindex(shape):
            at = dict(zip(layout.inputs, (row, column), strict=True))
            *tile, lane, element = (int(evaluate(o, at)) for o in layout.outputs)
            assert tile == [0, 0]
            assert table[lane, element].tolist() == [row, column]
        assert len({tuple(cell) for cell in table.reshape(-1, 2)}) == np.prod(shape)


def test_a_loaded_matrix_is_a_quarter_of_a_fragment():
    """PTX ISA 9.7.14.5, "Warp-level matrix load instruction: ldmatrix".

    Four matrices loaded in the order of A's quarters are the registers of A: the tables of the load
    and of the fragment, which come from two sections, must agree.
    """
    loaded = fragments.loaded(transposed=False)
    a = fragments.multiplicand_a()
    for register, (row, column) in enumerate([(0, 0), (8, 0), (0, 8), (8, 8)]):
        assert (a[:, 2 * register : 2 * register + 2] == loaded + np.array([row, column])).all()
    flipped = fragments.loaded(transposed=True)
    b = fragments.multiplicand_b()
    for register, row in enumerate([0, 8]):
        assert (b[:, 2 * register : 2 * register + 2] == flipped + np.array([row, 0])).all()


def _matrices(rng, warps=3):
    a = rng.integers(-8, 9, (warps, 16, 16)).astype(np.float16)
    b = rng.integers(-8, 9, (warps, 16, 8)).astype(np.float16)
    c = rng.integers(-99, 99, (warps, 16, 8))
    return a, b, c


def _registers(matrices, table, width):
    """Return matrices as the registers of their lanes, by the rules of the PTX ISA."""
    elements = matrices[:, table[:, :, 0], table[:, :, 1]]
    lanes = elements.reshape(-1, table.shape[1]).T
    if width == 1:
        return [np.ascontiguousarray(r) for r in lanes]
    return [np.ascontiguousarray(lanes[k : k + 2]) for k in range(0, len(lanes), 2)]


def _product(handler: MatrixMultiply, width, dtype, seed=0):
    """Return whether a product of registers filled by the correct tables is correct."""
    a, b, c = _matrices(np.random.default_rng(seed))
    correct = multiply(np.dtype(dtype))
    operands = [
        *_registers(a, correct.a, 2),
        *_registers(b, correct.b, 2),
        *_registers(c.astype(dtype), correct.c, width),
    ]
    results = handler(group(len(a)), operands)
    product = (a.astype(np.int64) @ b.astype(np.int64) + c).astype(dtype)
    expected = _registers(product, correct.d, width)
    return all((x == y).all() for x, y in zip(results, expected, strict=True))


@pytest.mark.parametrize(("dtype", "width"), [(np.float32, 1), (np.float16, 2)])
def test_matrix_multiply(dtype, width):
    assert _product(multiply(np.dtype(dtype)), width, dtype)


@pytest.mark.parametrize("field", ["a", "b", "c", "d"])
def test_every_shifted_entry_of_a_fragment_table_is_detected(field):
    """Moving any entry to the next element of its matrix changes the product.

    These are 32 x 8 entries of A, and 32 x 4 entries of each of B, C and D.
    """
    handler = multiply(np.dtype(np.float32))
    table = getattr(handler, field)
    shape = (16, 16) if field == "a" else (16, 8)
    survivors = []
    for lane, element in np.ndindex(table.shape[:2]):
        moved = table.copy()
        row, column = moved[lane, element]
        following = (row * shape[1] + column + 1) % (shape[0] * shape[1])
        moved[lane, element] = divmod(following, shape[1])
        if _product(replace(handler, **{field: moved}), 1, np.float32):
            survivors.append((lane, element))
    assert survivors == []


@pytest.mark.parametrize("field", ["a", "b", "c", "d"])
@pytest.mark.parametrize("shift", [1, 4, 16])
def test_a_table_shifted_by_lanes_is_detected(field, shift):
    handler = multiply(np.dtype(np.float32))
    moved = np.roll(getattr(handler, field), shift, axis=0)
    assert not _product(replace(handler, **{field: moved}), 1, np.float32)


def _loaded(handler: MatrixLoad, *, transposed):
    """Return whether matrices with rows of 16 bytes in shared memory are loaded correctly."""
    warp, count = group(), handler.count
    frame = warp.frame
    rng = np.random.default_rng(3)
    matrices = rng.integers(0, 1 << 12, (count, 8, 8)).astype(np.float16)
    segment = frame.memory.add_copies("tile", "shared", 16 * 8 * count, 1, 2)
    segment.data[: matrices.nbytes] = matrices.view(np.uint8).reshape(-1)
    segment.defined[:] = True
    lanes = np.arange(32) % (8 * count)
    registers = handler(warp, [segment.pointer + 16 * lanes])
    assert frame.findings.all() == ()
    correct = HANDLERS[
        f"nvidia.ldmatrix.x{count}{'.trans' if handler.table[1, 0, 1] == 0 else ''}.f16"
    ]
    table = correct.table
    return all(
        (got == matrix[table[:, :, 0], table[:, :, 1]].T).all()
        for got, matrix in zip(registers, matrices, strict=True)
    )


@pytest.mark.parametrize("name", [n for n in HANDLERS if "ldmatrix" in n])
def test_matrix_loads_and_every_shifted_entry_of_their_tables(name):
    handler, order = HANDLERS[name], {"transposed": ".trans" in name}
    assert _loaded(handler, **order)
    assert not _loaded(replace(handler, table=np.roll(handler.table, 1, axis=0)), **order)
    for lane, element in np.ndindex(32, 2):
        moved = handler.table.copy()
        row, column = moved[lane, element]
        moved[lane, element] = divmod((row * 8 + column + 1) % 64, 8)
        assert not _loaded(replace(handler, table=moved), **order), (lane, element)


def test_a_matrix_row_must_be_aligned_and_in_bounds():
    warp = group()
    segment = warp.frame.memory.add_copies("tile", "shared", 512, 1, 2)
    segment.defined[:] = True
    lanes = np.arange(32)
    HANDLERS["nvidia.ldmatrix.x4.f16"](warp, [segment.pointer + 16 * lanes + 2])
    kinds = {f.kind for f in warp.frame.findings.all()}
    assert kinds == {"misaligned", "out of bounds"}


def test_a_matrix_load_is_a_read_by_the_receiving_lanes():
    """Other lanes receive the elements that a lane wrote to its row: without a barrier, a race."""
    for passed, kinds in ((False, {"race"}), (True, set())):
        warp = group()
        frame = warp.frame
        segment = frame.memory.add_copies("tile", "shared", 512, 1, 2)
        segment.defined[:] = True
        cells = np.arange(256)
        segment.shadow.write(cells, (cells // 8).astype(np.int32), frame.order.next(SITE))
        if passed:
            frame.order.pass_warp(np.array([0]))
        HANDLERS["nvidia.ldmatrix.x4.f16"](warp, [segment.pointer + 16 * np.arange(32)])
        assert {f.kind for f in frame.findings.all()} == kinds
