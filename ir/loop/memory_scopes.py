"""The memory scopes of buffers: the threads that share elements, and their addresses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

SharingDomain: TypeAlias = Literal["thread", "warp", "block", "kernel"]
"""The largest group of threads of which each thread accesses the same elements."""


@dataclass(frozen=True, slots=True)
class MemoryScope:
    """A kind of memory.

    Parameters
    ----------
    name : str
        The name in programs.
    domain : str
        The threads that share one allocation: a thread, a warp, a thread block, or all of a
        kernel. On a CPU, a worker of a parallel loop is a thread, and there are no thread blocks.
    addressable : bool
        Whether each element has an address. An element of other memory is in a register of one of
        the threads of a warp, and only tensor instructions know which.
    condition : str
        The requirement on the target; empty if all targets have the memory.
    """

    name: str
    domain: SharingDomain
    addressable: bool = True
    condition: str = ""

    @property
    def private(self) -> bool:
        """Whether a thread, or the threads of a warp together, have their own elements."""
        return self.domain in ("thread", "warp")


MEMORY_SCOPES: Final = {
    scope.name: scope
    for scope in (
        MemoryScope("global", "kernel"),
        MemoryScope("local", "thread"),
        MemoryScope("shared", "block", condition="thread blocks; other targets use global memory"),
        MemoryScope("fragment", "warp", addressable=False, condition="tensor instructions"),
    )
}
"""The memory scopes by name."""

SCOPES: Final = tuple(MEMORY_SCOPES)
"""The names of the memory scopes."""

PRIVATE: Final = frozenset(s.name for s in MEMORY_SCOPES.values() if s.private)
"""The memory scopes of which each thread, or each warp, has its own elements."""

COMMON: Final = frozenset(s.name for s in MEMORY_SCOPES.values() if not s.private)
"""The memory scopes whose elements several threads access."""

OF_BLOCK: Final = frozenset(s.name for s in MEMORY_SCOPES.values() if s.domain == "block")
"""The memory scopes of which each thread block has its own elements."""


def scope_named(name: str) -> MemoryScope:
    """Return a memory scope by its name.

    Examples
    --------
    >>> scope_named("shared").domain
    'block'
    """
    return MEMORY_SCOPES[name]
