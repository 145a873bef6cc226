"""What a tensor instruction is: semantics in loop IR, an expansion, and who has it (TensorIR §4.1).

``tensorize`` puts the semantics' own loops in the place of a part of the program that computes
the same, in a block annotated with the intrinsic's name. So the interpreter, the printer and every
analysis see plain loops; code generation recognises the block and asks for the expansion.
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
    """Where one buffer of the semantics lies in the program that is lowered.

    Parameters
    ----------
    base : Value
        Address of the buffer's first byte (in its memory space).
    offset : Expr
        Bytes from there to the element ``[0, ..., 0]`` of the semantics' buffer.
    strides : tuple of Expr
        Bytes from one element to the next, for each dimension of the semantics' buffer.
    alignment : int
        Bytes that address plus offset is known to be a multiple of.
    private : bool
        Whether it is a register tile of the thread: masked lanes of it may be read, and written
        with what they held.
    """

    base: Value
    offset: Expr
    strides: tuple[Expr, ...]
    alignment: int
    private: bool = False


@dataclass(frozen=True, slots=True)
class Site:
    """One place where an intrinsic is expanded.

    Parameters
    ----------
    operands : tuple of Operand
        One for each buffer parameter of the semantics, in order.
    extents : tuple of int
        The iterations to perform of each loop of the semantics, outermost first: the full ones,
        or fewer where the loop is ``partial`` and this is the copy for a tail.
    masks : tuple of (Var, Bool)
        For a vectorized partial loop whose tail is known only at run time: the loop's variable,
        and for which of its values the iteration is to be performed.
    lane : Expr or None
        On a GPU, the index of the thread in its warp.
    """

    operands: tuple[Operand, ...]
    extents: tuple[int, ...]
    masks: tuple[tuple[Var, Bool], ...] = ()
    lane: Expr | None = None


Expansion: TypeAlias = Callable[[Site], tuple[Stmt, ...]]


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """A tensor instruction, or a tile made of several.

    Parameters
    ----------
    name : str
        Unique, the machine first: ``avx512.fma.f32.14x32``.
    summary : str
        One sentence.
    semantics : PrimFunc
        What it computes: one perfect nest of loops of constant extents around one block of one
        store without init, over buffer parameters of constant shapes. Loop kinds are those that
        the tensorized code gets (unrolled, vectorized), so that a tail that has no expansion runs
        as plain loops. A stride that is a number has to be that one in the program, one that is a
        symbol may be anything; without strides a buffer is compact. The scope ``global`` stands
        for any memory with addresses, every other one for itself.
    needs : tuple of str
        What a target has to have (:func:`tilewright.ir.target.provides`).
    expand : Expansion
        Writes the thread-level statements of one site.
    scope : ExecutionScope
        Whose threads perform it together. An intrinsic of a warp binds ``threadIdx.x`` of
        extent 32 itself: no loop around it may.
    partial : frozenset of int
        The loops (outermost is 0) of which fewer iterations may be asked for.
    layouts : tuple of (IndexMap | None)
        For each buffer parameter: where a fragment keeps its elements. The last two outputs of
        the map are (lane, register), those before number the tiles. Empty: none.
    """

    name: str
    summary: str
    semantics: PrimFunc
    needs: tuple[str, ...]
    expand: Expansion
    scope: ExecutionScope = "thread"
    partial: frozenset[int] = frozenset()
    layouts: tuple[IndexMap | None, ...] = ()
