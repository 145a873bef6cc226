"""Tensor instructions: semantics in loop IR, an expansion, and required features.

``tensorize`` replaces a part of the program by the loops of the semantics, in a block annotated
with the intrinsic's name. The interpreter, the printer and all analyses see ordinary loops. Code
generation recognizes the block and emits the expansion (TensorIR, section 4.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from ...ir.loop.nodes import INTRINSIC, IndexMap, PrimFunc
from ...ir.symbolic import Bool, Expr, Var
from ...ir.thread.nodes import Stmt, Value
from ...ir.thread.types import ExecutionScope

ANNOTATION: Final = INTRINSIC
"""The annotation of a tensorized block; its value is the intrinsic's name."""


@dataclass(frozen=True, slots=True)
class Operand:
    """The location of a buffer of the semantics in the lowered program.

    Parameters
    ----------
    base : Value
        The address of the buffer's first byte, in its memory space.
    offset : Expr
        The distance to element ``[0, ..., 0]`` of the buffer of the semantics, in bytes.
    strides : tuple of Expr
        The distance between elements along each dimension of the buffer, in bytes.
    alignment : int
        The alignment of base plus offset, in bytes.
    private : bool
        True for a register tile of the thread. Its masked lanes may be read, and written back
        unchanged.
    """

    base: Value
    offset: Expr
    strides: tuple[Expr, ...]
    alignment: int
    private: bool = False


@dataclass(frozen=True, slots=True)
class ExpansionSite:
    """One expansion of an intrinsic.

    Parameters
    ----------
    operands : tuple of Operand
        One operand per buffer parameter of the semantics, in order.
    extents : tuple of int
        The number of iterations of each loop of the semantics, outermost first. Loops that are
        ``partial`` have fewer iterations in the expansion for a tail.
    masks : tuple of (Var, Bool)
        For each vectorized partial loop whose tail is known only at run time: the loop variable,
        and the condition under which an iteration runs.
    lane : Expr or None
        The index of the thread in its warp on a GPU; None on a CPU.
    """

    operands: tuple[Operand, ...]
    extents: tuple[int, ...]
    masks: tuple[tuple[Var, Bool], ...] = ()
    lane: Expr | None = None


Expansion: TypeAlias = Callable[[ExpansionSite], tuple[Stmt, ...]]


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """A tensor instruction, or a tile of several instructions.

    Parameters
    ----------
    name : str
        The unique name; it starts with the machine: ``avx512.fma.f32.14x32``.
    summary : str
        A description in one sentence.
    semantics : PrimFunc
        The computation: a perfect nest of loops with constant extents around one block with one
        store and no init, over buffer parameters of constant shapes. The loops have the kinds of
        the tensorized code (unrolled, vectorized), so that a tail without an expansion runs as
        ordinary loops. A constant stride must be equal in the program; a symbolic stride may be
        any. A buffer without strides is compact. The memory scope ``global`` matches any
        addressable memory; any other scope matches only itself.
    needs : tuple of str
        The required features of the target (:func:`tilewright.target.target.provides`).
    expand : Expansion
        Returns the thread-IR statements of one site.
    scope : ExecutionScope
        The threads that execute the intrinsic together. An intrinsic of scope ``warp`` binds
        ``threadIdx.x`` of extent 32 itself; no loop around it may bind it.
    partial : frozenset of int
        The loops that may run fewer iterations, by position; the outermost is 0.
    layouts : tuple of (IndexMap | None)
        The layout of each buffer parameter that is a fragment. The last two outputs of the map are
        (lane, register), the others are the index of the tile. Empty if there are no fragments.
    """

    name: str
    summary: str
    semantics: PrimFunc
    needs: tuple[str, ...]
    expand: Expansion
    scope: ExecutionScope = "thread"
    partial: frozenset[int] = frozenset()
    layouts: tuple[IndexMap | None, ...] = ()
