"""Parts of programs as text, on their own: for messages and comparisons."""

from __future__ import annotations

from ..loop.nodes import Buffer, Element, Load, Store
from .printing.elements import Elements
from .printing.terms import Terms


def element_text(element: Element) -> str:
    """Write an element the way it stands in a program.

    Examples
    --------
    >>> from ..dtype import f32
    >>> from ..loop.nodes import Number
    >>> element_text(Number(2.0, f32))
    'f32(2.0)'
    """
    return Elements(Terms("snippet")).text(element)


def store_text(store: Store) -> str:
    """Write an assignment, ``C[i] += x`` where it is one."""
    return Elements(Terms("snippet")).store(Load(store.buffer, store.indices), store.value)


def buffer_text(buffer: Buffer) -> str:
    """Write a buffer with its shape, dtype, scope and strides.

    Examples
    --------
    >>> from ..dtype import f32
    >>> from ..symbolic import as_expr
    >>> buffer_text(Buffer(1, "A", (as_expr(8),), f32, "local"))
    'A: f32[8] in local'
    """
    terms = Terms("snippet")
    text = f"{buffer.name}: {buffer.dtype}[{', '.join(terms.texts(buffer.shape))}]"
    text += "" if buffer.scope == "global" else f" in {buffer.scope}"
    return text if buffer.strides is None else f"{text}, strides {terms.tuple(buffer.strides)}"
