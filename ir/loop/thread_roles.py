"""The roles of threads in the execution of a block. Launch passes set them; no step does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Partial:
    """Each thread accumulates into its own partial results."""


@dataclass(frozen=True, slots=True)
class Combined:
    """The threads along some axes combine their partial results, then execute the body.

    Parameters
    ----------
    op : str
        The name of the combiner; empty if the block declares a reducer.
    parts : tuple of str
        The names of the buffers of the partial results.
    axes : tuple of str
        The thread axes.
    """

    op: str
    parts: tuple[str, ...]
    axes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OneThread:
    """One thread along each of some axes executes the body.

    Parameters
    ----------
    axes : tuple of str
        The thread axes.
    """

    axes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Atomic:
    """Several threads update the same elements, each update at once.

    Parameters
    ----------
    buffers : tuple of str
        The names of the updated buffers.
    """

    buffers: tuple[str, ...]


ThreadRole: TypeAlias = Partial | Combined | OneThread | Atomic

ACROSS_THREADS = (Partial, Combined)
"""The roles of blocks whose threads exchange elements."""


def role_text(role: ThreadRole) -> str:
    """Return a role as the argument of a block in text.

    Examples
    --------
    >>> role_text(Combined("add", ("y_part",), ("threadIdx.x",)))
    'threads=combined("add", "y_part", "threadIdx.x")'
    """
    match role:
        case Partial():
            return "threads=partial()"
        case Combined(op=op, parts=parts, axes=axes):
            names = (op, *parts, *axes)
            return f"threads=combined({_quoted(names)})"
        case OneThread(axes=axes):
            return f"threads=one({_quoted(axes)})"
        case Atomic(buffers=buffers):
            return f"threads=atomic({_quoted(buffers)})"


def _quoted(names: tuple[str, ...]) -> str:
    return ", ".join(f'"{name}"' for name in names)
