"""Base classes of nodes that print as program text."""

from __future__ import annotations

from typing import Any, cast


class Printable:
    """A node of a program: ``print`` shows program text, the prompt one short line.

    Examples
    --------
    >>> from .dtype import f32
    >>> from .loop.nodes import Buffer
    >>> from .symbolic import as_expr, var
    >>> x = Buffer(1, "x", (var("n"), as_expr(8)), f32)
    >>> print(x)
    x: f32[n, 8]
    >>> x
    <Buffer x: f32[n, 8]>
    """

    __slots__ = ()

    def __str__(self) -> str:
        """Return program text."""
        from .script.node_text import node_text  # the printer imports the nodes

        return node_text(self)

    def __repr__(self) -> str:
        """Return one short line."""
        from .script.node_text import node_label

        return node_label(self)


class PrintableFunction(Printable):
    """A function: a notebook cell shows its program text with highlighted tokens."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Return the program as static HTML."""
        from .script.html import program_html

        return program_html(cast("Any", self), title=repr(self)[1:-1])
