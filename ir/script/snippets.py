"""Text of single elements, stores and buffers, for messages and comparisons."""

from __future__ import annotations

from ..loop.nodes import Buffer, Element, Load, Store
from .printer.elements import Elements
from .printer.terms import TermPrinter


def element_text(element: Element) -> str:
    """Return the text of an element.

    Examples
    --------
    >>> from ..dtype import f32
    >>> from ..loop.nodes import Number
    >>> element_text(Number(2.0, f32))
    'f32(2.0)'
    """
    return Elements(TermPrinter("snippet")).text(element)


def store_text(store: Store) -> str:
    """Return the text of an assignment, as ``C[i] += x`` if possible."""
    return Elements(TermPrinter("snippet")).store(Load(store.buffer, store.indices), store.value)


def buffer_text(buffer: Buffer) -> str:
    """Return the name, dtype, shape, scope and strides of a buffer as text.

    Examples
    --------
    >>> from ..dtype import f32
    >>> from ..symbolic import as_expr
    >>> buffer_text(Buffer(1, "A", (as_expr(8),), f32, "local"))
    'A: f32[8] in local'
    """
    terms = TermPrinter("snippet")
    text = f"{buffer.name}: {buffer.dtype}[{', '.join(terms.texts(buffer.shape))}]"
    text += "" if buffer.scope == "global" else f" in {buffer.scope}"
    return text if buffer.strides is None else f"{text}, strides {terms.tuple(buffer.strides)}"
