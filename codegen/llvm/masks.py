"""Masks of vector accesses: constant ones, parts of them, and masks that LLVM cannot analyze.

LLVM 22 miscompiles masked accesses on x86-64 where it derives that some lanes of a mask are
constant:

- A masked store of truncated integers becomes a store of one integer before truncation, if
  exactly one lane is set (AVX-512).
- A masked load of lanes that are never set, and whose values are not used, becomes a load without
  a mask (AVX2).

Both access memory beyond the end of a buffer. So a mask that is not a literal, and the elements of
a masked store, pass through an empty inline assembly. It takes no instruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...ir.thread.types import VectorType
from .emitter import Emitter
from .types import memory_element, vector

XMM_BITS: Final = 128
"""The width in bits of the smallest vector register of x86-64."""

ZMM_BITS: Final = 512
"""The width in bits of the vector registers of CPUs with registers for masks."""

MASK_LANES: Final = 8
"""The number of lanes of the smallest mask register that inline assembly accepts."""


def constant_mask(lanes: Sequence[bool]) -> str:
    """Return a literal mask.

    Examples
    --------
    >>> constant_mask([True, False])
    '<i1 true, i1 false>'
    """
    return "<" + ", ".join(f"i1 {'true' if bit else 'false'}" for bit in lanes) + ">"


def is_literal(mask: str) -> bool:
    """Return whether a mask is a constant in the text of the program."""
    return not mask.startswith("%")


def part_of_mask(em: Emitter, mask: str, lanes: int, start: int, count: int) -> str:
    """Return some adjacent lanes of a mask; those of a literal are a literal."""
    if mask.startswith("splat"):
        return mask
    if is_literal(mask):
        bits = mask.strip("<>").split(", ")
        return f"<{', '.join(bits[start : start + count])}>"
    return _picked(em, "i1", mask, lanes, range(start, start + count))


def opaque_mask(em: Emitter, mask: str, of: VectorType) -> str:
    """Return a mask of a contiguous access of which LLVM derives nothing, unless it is a literal.

    A CPU without registers for masks has masks as wide as the elements.
    """
    if is_literal(mask) or not _affected(em):
        return mask
    lanes = of.lanes
    padded = max(_power_of_two(lanes), MASK_LANES)
    if em.module.vector_bits == ZMM_BITS:
        wide = _picked(em, "i1", mask, lanes, range(padded))
        hidden = _hidden(em, vector("i1", padded), "k", wide)
        return _picked(em, "i1", hidden, padded, range(lanes))
    bits = max(of.dtype.bits, 8, XMM_BITS // _power_of_two(lanes))
    element = f"i{bits}"
    wide = em.op(f"sext {vector('i1', lanes)} {mask} to {vector(element, lanes)}")
    found = _through_register(em, element, wide, lanes)
    return em.op(f"icmp slt {vector(element, lanes)} {found}, zeroinitializer")


def merging_mask(em: Emitter, mask: str, of: VectorType) -> str:
    """Return a mask by which LLVM merges a select into the instruction of one side.

    It turns a select by a literal into a shuffle, which needs a unit of the multiply-adds.
    """
    literal = is_literal(mask) and not mask.startswith("splat")
    if not literal or not _affected(em) or em.module.vector_bits != ZMM_BITS:
        return mask
    lanes = of.lanes
    padded = max(_power_of_two(lanes), MASK_LANES)
    hidden = _hidden(em, vector("i1", padded), "k", _picked(em, "i1", mask, lanes, range(padded)))
    return _picked(em, "i1", hidden, padded, range(lanes))


def opaque_elements(em: Emitter, raw: str, of: VectorType) -> str:
    """Return the elements of a masked store such that LLVM does not see how they are computed."""
    element = memory_element(of.dtype)
    if not _affected(em) or element not in ("i8", "i16", "i32"):
        return raw
    return _through_register(em, element, raw, of.lanes)


def _affected(em: Emitter) -> bool:
    return em.module.arch == "x86_64" and em.module.vector_bits > 0


def _power_of_two(lanes: int) -> int:
    """Return the smallest power of two that is at least a number."""
    return 1 << (lanes - 1).bit_length()


def _through_register(em: Emitter, element: str, operand: str, lanes: int) -> str:
    """Return a vector of integers that passes through a vector register."""
    padded = max(_power_of_two(lanes), XMM_BITS // int(element[1:]))
    wide = _picked(em, element, operand, lanes, range(padded))
    hidden = _hidden(em, vector(element, padded), "v", wide)
    return _picked(em, element, hidden, padded, range(lanes))


def _hidden(em: Emitter, of: str, register: str, operand: str) -> str:
    """Return an operand after an assembly without instructions, in a kind of register."""
    return em.op(f'call {of} asm "", "={register},0"({of} {operand}) nounwind memory(none)')


def _picked(em: Emitter, element: str, operand: str, lanes: int, wanted: range) -> str:
    """Return adjacent lanes of a vector; those behind the last are unspecified."""
    if wanted == range(lanes):
        return operand
    of, count = vector(element, lanes), len(wanted)
    picked = ", ".join(f"i32 {k if k < lanes else 'poison'}" for k in wanted)
    return em.op(f"shufflevector {of} {operand}, {of} poison, <{count} x i32> <{picked}>")
