"""Functions of thread-level IR and the grids that GPU kernels are launched with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from ..symbolic import Expr, Var
from .index_width import SUFFIX, IndexWidth
from .nodes import Body, Reg
from .types import Type


@dataclass(frozen=True, slots=True)
class ThreadAxis:
    """One axis of a launch.

    Parameters
    ----------
    tag : str
        The hardware index, such as ``blockIdx.x``.
    var : Var
        The variable of the index in the body.
    extent : Expr
        The number of indices: a term over the kernel's integer parameters, and a constant for
        ``threadIdx`` axes.
    """

    tag: str
    var: Var
    extent: Expr


@dataclass(frozen=True, slots=True)
class LaunchGrid:
    """The launch grid of a GPU kernel; the extent of an absent axis is 1."""

    axes: tuple[ThreadAxis, ...]


LONG: Final = IndexWidth()
"""All terms of a function are computed with 64-bit integers."""


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class ThreadFunc:
    """A function executed by one thread.

    Parameters
    ----------
    name : str
        The symbol name.
    params : tuple of Var or Reg
        The parameters; a ``Var`` is a 64-bit integer.
    body : Body
        The statements.
    result : Type, optional
        The type of the returned value.
    exported : bool
        Whether the symbol is visible outside of the module.
    distinct : tuple of Reg
        Pointer parameters that do not alias other pointers of the function.
    launch : LaunchGrid, optional
        The grid of a GPU kernel. Every thread of the grid executes the body, and the function
        returns no value.
    width : IndexWidth
        The terms that are computed with 32-bit integers.
    """

    name: str
    params: tuple[Var | Reg, ...]
    body: Body
    result: Type | None = None
    exported: bool = True
    distinct: tuple[Reg, ...] = ()
    launch: LaunchGrid | None = None
    width: IndexWidth = LONG

    @property
    def versions(self) -> tuple[ThreadFunc, ...]:
        """The function, and its version with 32-bit indices if that has conditions."""
        if not self.width.limits:
            return (self,)
        width = IndexWidth(self.width.proved | self.width.guarded)
        return self, replace(self, name=self.name + SUFFIX, width=width)

    def __str__(self) -> str:
        """Return the function as text."""
        from .text import to_text  # the printer imports the nodes

        return to_text(self)

    def __repr__(self) -> str:
        """Return the name and the number of parameters."""
        count = len(self.params)
        return f"<ThreadFunc {self.name}: {count} parameter{'' if count == 1 else 's'}>"
