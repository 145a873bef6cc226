"""Operations of single machines: none without a handler, each computes what its manual says."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from tilewright.codegen.simt.findings import Findings
from tilewright.codegen.simt.frame import ALL_CHECKS, Frame, Geometry
from tilewright.codegen.simt.memory import Memory
from tilewright.codegen.simt.operations import HANDLERS, Group, fragments
from tilewright.codegen.simt.operations.nvidia import MatrixLoad, MatrixMultiply, multiply
from tilewright.codegen.simt.shadow import Order
from tilewright.codegen.simt.sites import Site
from tilewright.codegen.simt.traffic import Traffic
from tilewright.ir.symbolic import evaluate
from tilewright.ir.thread.operations import OPERATIONS
from tilewright.schedules.intrinsics import cuda_layouts

SITE = Site(0, "operation")
MMA = "nvidia.mma.m16n8k16.f32.f16"


def group(warps: int = 1) -> Group:
    geometry = Geometry((1, 1, 1), (32 * warps, 1, 1))
    memory = Memory(Order(geometry.padded, 1), races=True, definedness=True)
    records = Findings("probe"), Traffic()
    frame = Frame(geometry, np.arange(1), memory, [], records=records, checks=ALL_CHECKS)
    return Group(frame, SITE)


def test_every_operation_has_a_handler():
    assert set(HANDLERS) == set(OPERATIONS)


def test_results_are_as_declared():
    rng = np.random.default_rng(0)
    for operation in OPERATIONS.values():
        if operation.effects or not operation.results:
            continue  # loads of matrices are tested on memory below
        here = group()
        given = [
            rng.integers(0, 3, (t.lanes, 32) if t.lanes > 1 else 32).astype(t.dtype.numpy)
            for t in operation.operands
        ]
        for made, of in zip(HANDLERS[operation.name](here, given), operation.results, strict=True):
            assert made.dtype == of.dtype.numpy, operation.name
            assert made.shape == ((of.lanes, 32) if of.lanes > 1 else (32,)), operation.name


# ---------------------------------------------------------------- processors


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
    (made,) = HANDLERS[name](group(), (c, a, b))
    wide = c.astype(object)
    for k in range(4):
        wide = wide + a[k::4].astype(object) * b[k::4].astype(object)
    assert (made == (wide & 0xFFFFFFFF).astype(np.uint32).view(np.int32)).all()


def test_word_products_wrap():
    extreme = np.full((16, 1), -(1 << 15), np.int16)
    (made,) = HANDLERS["x86.vpmaddwd.256"](group(), (extreme, extreme))
    assert (made == -(1 << 31)).all()


def test_bfloat_dot_products_round_after_each_product_and_flush_subnormals():
    def bf(*values):
        return np.array(values, np.float32).astype(ml_dtypes.bfloat16).reshape(-1, 1)

    handler = HANDLERS["x86.vdpbf16ps.512"]
    zeros = [0.0] * 30
    (made,) = handler(group(), (np.zeros((16, 1), np.float32), bf(3, 5, *zeros), bf(7, 11, *zeros)))
    assert made[0, 0] == 3 * 7 + 5 * 11
    big = np.zeros((16, 1), np.float32)
    big[0] = 2.0**24
    (made,) = handler(group(), (big, bf(1, 1, *zeros), bf(1, 1, *zeros)))
    assert made[0, 0] == 2.0**24  # each 1 alone is half a unit, to the even side
    small = np.zeros((16, 1), np.float32)
    small[0] = 1e-40
    (made,) = handler(group(), (small, bf(0, 0, *zeros), bf(0, 0, *zeros)))
    assert made[0, 0] == 0


# ---------------------------------------------------------------- shuffles


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
    (made,) = HANDLERS[name](group(2), (values, np.int32(operand)))
    assert (made == values[lane // 32 * 32 + source(lane % 32)]).all()


# ---------------------------------------------------------------- two readings of the PTX ISA


def test_both_readings_of_the_matrix_fragments_agree():
    """PTX ISA 9.7.14.5, "Matrix Fragments for mma.m16n8k16 with floating point type".

    `fragments` spells the section's rules from lane and element to row and column; the maps of
    `cuda_layouts` were read from the same section by another hand, from row and column to lane
    and element. Every element of every matrix is compared.
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

    Four matrices loaded in the order of A's quarters are A's registers: the load's table and the
    fragment's were read from two sections, and they have to agree for the pair to be of use.
    """
    loaded = fragments.loaded(transposed=False)
    a = fragments.multiplicand_a()
    for register, (row, column) in enumerate([(0, 0), (8, 0), (0, 8), (8, 8)]):
        assert (a[:, 2 * register : 2 * register + 2] == loaded + np.array([row, column])).all()
    flipped = fragments.loaded(transposed=True)
    b = fragments.multiplicand_b()
    for register, row in enumerate([0, 8]):
        assert (b[:, 2 * register : 2 * register + 2] == flipped + np.array([row, 0])).all()


# ---------------------------------------------------------------- matrices


def _matrices(rng, warps=3):
    a = rng.integers(-8, 9, (warps, 16, 16)).astype(np.float16)
    b = rng.integers(-8, 9, (warps, 16, 8)).astype(np.float16)
    c = rng.integers(-99, 99, (warps, 16, 8))
    return a, b, c


def _registers(matrices, table, width):
    """Give matrices as the registers of their lanes, by the rules of the PTX ISA."""
    elements = matrices[:, table[:, :, 0], table[:, :, 1]]
    lanes = elements.reshape(-1, table.shape[1]).T
    if width == 1:
        return [np.ascontiguousarray(r) for r in lanes]
    return [np.ascontiguousarray(lanes[k : k + 2]) for k in range(0, len(lanes), 2)]


def _product(handler: MatrixMultiply, width, dtype, seed=0):
    """Multiply through registers that were filled by the right tables; give what came out."""
    a, b, c = _matrices(np.random.default_rng(seed))
    right = multiply(np.dtype(dtype))
    given = [
        *_registers(a, right.a, 2),
        *_registers(b, right.b, 2),
        *_registers(c.astype(dtype), right.c, width),
    ]
    made = handler(group(len(a)), given)
    wanted = _registers((a.astype(np.int64) @ b.astype(np.int64) + c).astype(dtype), right.d, width)
    return all((x == y).all() for x, y in zip(made, wanted, strict=True))


@pytest.mark.parametrize(("dtype", "width"), [(np.float32, 1), (np.float16, 2)])
def test_matrix_multiply(dtype, width):
    assert _product(multiply(np.dtype(dtype)), width, dtype)


@pytest.mark.parametrize("field", ["a", "b", "c", "d"])
def test_every_shifted_entry_of_a_fragment_table_is_seen(field):
    """One entry at a time is moved to the next element of its matrix; every product must differ.

    That is 32 x 8 entries of A and 32 x 4 each of B, C and D.
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
def test_a_table_shifted_by_lanes_is_seen(field, shift):
    handler = multiply(np.dtype(np.float32))
    moved = np.roll(getattr(handler, field), shift, axis=0)
    assert not _product(replace(handler, **{field: moved}), 1, np.float32)


def _loaded(handler: MatrixLoad, *, transposed):
    """Load matrices from shared memory, rows 16 bytes apart; give whether lanes got theirs."""
    here, count = group(), handler.count
    frame = here.frame
    rng = np.random.default_rng(3)
    matrices = rng.integers(0, 1 << 12, (count, 8, 8)).astype(np.float16)
    segment = frame.memory.add_copies("tile", "shared", 16 * 8 * count, 1, 2)
    segment.data[: matrices.nbytes] = matrices.view(np.uint8).reshape(-1)
    segment.defined[:] = True
    lanes = np.arange(32) % (8 * count)
    registers = handler(here, [segment.pointer + 16 * lanes])
    assert frame.findings.all() == ()
    right = HANDLERS[
        f"nvidia.ldmatrix.x{count}{'.trans' if handler.table[1, 0, 1] == 0 else ''}.f16"
    ]
    table = right.table
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


def test_a_matrix_row_has_to_be_aligned_and_inside():
    here = group()
    segment = here.frame.memory.add_copies("tile", "shared", 512, 1, 2)
    segment.defined[:] = True
    lanes = np.arange(32)
    HANDLERS["nvidia.ldmatrix.x4.f16"](here, [segment.pointer + 16 * lanes + 2])
    kinds = {f.kind for f in here.frame.findings.all()}
    assert kinds == {"misaligned", "out of bounds"}


def test_a_matrix_load_reads_for_the_lanes_that_receive():
    """What the lane itself wrote to its row goes to other lanes: without a barrier, a race."""
    for passed, kinds in ((False, {"race"}), (True, set())):
        here = group()
        frame = here.frame
        segment = frame.memory.add_copies("tile", "shared", 512, 1, 2)
        segment.defined[:] = True
        cells = np.arange(256)
        segment.shadow.write(cells, (cells // 8).astype(np.int32), frame.order.next(SITE))
        if passed:
            frame.order.pass_warp(np.array([0]))
        HANDLERS["nvidia.ldmatrix.x4.f16"](here, [segment.pointer + 16 * np.arange(32)])
        assert {f.kind for f in frame.findings.all()} == kinds
