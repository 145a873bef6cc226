"""Shuffles of contiguous vectors: the selected elements, for all steps and residues."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.lower.lane_shuffles import (
    Periods,
    deinterleaved,
    interleaved,
    piece_mask,
    reversed_lanes,
)
from tilewright.ir.dtype import bool_, f32
from tilewright.ir.symbolic import substitute, var
from tilewright.ir.thread.nodes import Binary, Const, Predicate, Reg, Shuffle
from tilewright.ir.thread.types import VectorType

SHAPES = [(8, 8), (2, 8), (16, 4), (64, 16)]


def evaluated(value, registers):
    """Return the lanes of a value as an array."""
    match value:
        case Reg():
            return registers[value]
        case Const(value=number, type=of):
            return np.full(of.lanes, number)
        case Predicate(condition=claim, lane=lane, lanes=lanes):
            bits = [substitute(claim, {lane: k}) for k in range(lanes)]
            return np.array([str(bit) == "True" for bit in bits])
        case Shuffle(left=left, right=right, lanes=lanes):
            both = np.concatenate([evaluated(left, registers), evaluated(right, registers)])
            return both[list(lanes)]
        case Binary(op="and", left=left, right=right):
            return evaluated(left, registers) & evaluated(right, registers)


@pytest.mark.parametrize("step", [1, 2, 3, 4])
@pytest.mark.parametrize(("lanes", "register"), SHAPES)
def test_loads_end_at_the_last_element_of_the_span(lanes, register, step):
    for span in range(1, step + 1):
        periods = Periods(lanes, step, span, register)
        memory = np.arange(lanes * step)
        for residue in range(span):
            registers, ends = {}, []

            def load(piece, registers=registers, ends=ends, memory=memory):
                made = Reg("piece", VectorType(f32, piece.lanes))
                registers[made] = memory[piece.start : piece.start + piece.lanes]
                ends.append(piece.start + piece.lanes)
                return made

            found = deinterleaved(periods, residue, load, masked=False)
            np.testing.assert_array_equal(evaluated(found, registers), memory[residue::step])
            assert max(ends) <= (lanes - 1) * step + span


@pytest.mark.parametrize("step", [2, 3, 4])
@pytest.mark.parametrize(("lanes", "register"), SHAPES)
def test_each_value_is_stored_at_its_residue(lanes, register, step):
    periods = Periods(lanes, step, step, register)
    registers = {
        Reg(f"v{r}", VectorType(f32, lanes)): np.arange(lanes) * step + r for r in range(step)
    }
    memory = np.zeros(lanes * step, int)
    for piece, value in interleaved(periods, dict(enumerate(registers))):
        memory[piece.start : piece.start + piece.lanes] = evaluated(value, registers)
    np.testing.assert_array_equal(memory, np.arange(lanes * step))


@pytest.mark.parametrize("residue", range(4))
@pytest.mark.parametrize("lanes", [2, 4])
def test_a_vector_without_a_stored_element_is_left_out(lanes, residue):
    """A period of 4 elements is longer than a register of 2 of them."""
    value = Reg("v", VectorType(f32, lanes))
    memory = np.full(lanes * 4, -1)
    pieces = 0
    for piece, found in interleaved(Periods(lanes, 4, 4, 2), {residue: value}):
        part = evaluated(found, {value: np.arange(lanes)})
        at = np.arange(piece.start, piece.start + piece.lanes)
        memory[at[at % 4 == residue]] = part[at % 4 == residue]
        pieces += 1
    np.testing.assert_array_equal(memory[residue::4], np.arange(lanes))
    assert pieces == lanes


@pytest.mark.parametrize("residues", [(0,), (1,), (0, 1), (0, 1, 2), (0, 2)])
def test_masks_include_the_residues_of_the_lanes_that_run(residues):
    lane, count = var("lane", lower=0, upper=7), 5
    periods = Periods(8, 3, 3, 8)
    prefix = Predicate(lane < count, lane, 8)
    other = Reg("bits", VectorType(bool_, 8))
    registers = {other: np.arange(8) % 2 == 0}
    for mask in (prefix, other, Binary("and", prefix, other)):
        runs = evaluated(mask, registers)
        for piece in periods.pieces(0, masked=True):
            found = evaluated(piece_mask(mask, periods, piece, frozenset(residues)), registers)
            elements = np.arange(piece.start, piece.start + piece.lanes)
            np.testing.assert_array_equal(
                found, runs[elements // 3] & np.isin(elements % 3, residues)
            )


def test_the_mask_of_leading_lanes_ends_with_the_span_of_the_last():
    lane = var("lane", lower=0, upper=7)
    periods = Periods(8, 3, 2, 8)
    found = [
        evaluated(piece_mask(Predicate(lane < 4, lane, 8), periods, piece, frozenset({0, 1})), {})
        for piece in periods.pieces(0, masked=True)
    ]
    np.testing.assert_array_equal(np.concatenate(found), np.arange(24) < 11)


def test_lanes_are_reversed():
    value = Reg("v", VectorType(f32, 4))
    reverse = reversed_lanes(value, 4)
    np.testing.assert_array_equal(evaluated(reverse, {value: np.arange(4)}), [3, 2, 1, 0])
