"""The ``schedule_copy`` composite step."""

from __future__ import annotations

from typing import Final

from ...ir.loop.nodes import Block, Load, Store
from ...ir.symbolic import const_value
from ..composite import composite
from ..handles import BlockRef, LoopRef
from ..machine import Tile, machine_of
from ..primitives.tensorize.tensorize import Tensorize
from ..schedule import Schedule
from .whole_bytes import parallelize

MATRIX: Final = 2
PANELS: Final = 4
"""The number of dimensions of a right operand, plain and packed (panel, group, column, element)."""


@composite
def schedule_copy(sch: Schedule, copy: BlockRef, columns: int, group: int = 1) -> None:
    """Vectorize a block that copies an operand, by the packing instruction of the target if any.

    Before::

        for k in range(d):
            for j in range(m):
                P[j // 32, k, j % 32] = B[k, j]

    After (``columns=32``)::

        for k in parallel(d):
            for j_0 in range(ceildiv(m, 32)):
                for j_1 in vectorized(32):
                    if j_0 * 32 + j_1 < m:
                        P[j_0, k, j_1] = B[k, j_0 * 32 + j_1]

    Parameters
    ----------
    copy : BlockRef
        The block, as returned by ``pack``.
    columns : int
        The number of columns of a panel.
    group : int
        The number of elements of k that are adjacent in a panel.

    Notes
    -----
    One ``vectorize_nest``. A copy in whole groups is divided into panels, and a panel into groups,
    which the packing instruction of the target copies if it fits.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def mm(A: Buffer[(8, 16), f32], B: Buffer[(16, 64), f32], C: Out[(8, 64), f32]):
    ...     for i in range(8):
    ...         for j in range(64):
    ...             for k in range(16):
    ...                 with block("mm"):
    ...                     vi, vj, vk = spatial(i), spatial(j), reduce(k)
    ...                     with init(): C[vi, vj] = 0.0
    ...                     C[vi, vj] += A[vi, vk] * B[vk, vj]
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> copy = sch.pack("mm", columns=32)
    >>> sch.schedule_copy(copy, columns=32)
    >>> [sch.state.loop(loop).kind for loop in sch.get_loops(copy)]
    ['parallel', 'serial', 'vectorized']
    """
    block, loops = sch.state.block(copy), sch.get_loops(copy)
    instruction = _instruction(sch, copy, columns, group)
    if instruction and _whole_groups(sch, block, loops, group):
        _interleave(sch, loops, columns, group, instruction)
    elif loops:  # a dimension of one element has no loop
        sch.vectorize_nest(copy, columns)


def _instruction(sch: Schedule, copy: BlockRef, columns: int, group: int) -> str:
    """Return the packing instruction of the target for a dtype and a tile; empty without one."""
    block, machine = sch.state.block(copy), machine_of(sch.state.target_of(copy.function))
    return machine.packing(block.writes[0].buffer.dtype, Tile(1, columns, group))


def _whole_groups(sch: Schedule, copy: Block, loops: tuple[LoopRef, ...], group: int) -> bool:
    """Return whether a copy rearranges a matrix into complete groups without other computation."""
    if len(loops) != MATRIX or len(copy.writes[0].buffer.shape) != PANELS:
        return False
    depth = const_value(sch.state.loop(loops[0]).extent)
    plain = isinstance(copy.body, Store) and isinstance(copy.body.value, Load)
    return plain and depth is not None and depth % group == 0


def _interleave(
    sch: Schedule, loops: tuple[LoopRef, ...], columns: int, group: int, instruction: str
) -> None:
    """Pack one panel after the other, with one group of rows per instruction."""
    k, j = loops
    panel, column = sch.split(j, factors=(None, columns))
    groups, one = sch.split(k, factors=(None, group))
    sch.reorder((panel, groups, column, one))
    parallelize(sch, panel)
    step = Tensorize(column, instruction)
    if sch.check(step):
        sch.vectorize(column)
        sch.unroll(one)
    else:
        sch.apply(step)
