"""Static HTML of programs for notebook cells."""

from __future__ import annotations

from collections.abc import Sequence

from ...display import code_html
from ...errors import Mark
from ..graph.nodes import GraphFunc
from ..loop.nodes import PrimFunc
from ..module import Module
from .node_text import program_text


def program_html(
    program: Module | PrimFunc | GraphFunc, *, highlight: Sequence[Mark] = (), title: str = ""
) -> str:
    r"""Return the text of a program as HTML, with line numbers and highlighted tokens.

    Parameters
    ----------
    program : Module, PrimFunc or GraphFunc
        The program. Names in it may contain any characters.
    highlight : Sequence of Mark
        Parts of the text to mark.
    title : str
        A line above the program.

    Returns
    -------
    str
        HTML without scripts, which a saved notebook shows; long programs are folded.

    Examples
    --------
    >>> from .text import parse
    >>> html = program_html(parse("@prim_func\ndef zero(y: Out[(), f32]):\n    y[()] = 0.0"))
    >>> html.count("<pre"), "<script" in html
    (1, False)
    """
    return code_html(program_text(program), highlight=highlight, title=title)
