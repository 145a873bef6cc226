"""The public face of the format: ``parse``, ``to_text`` and ``render``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from ..errors import MalformedProgramError
from ..graph.nodes import GraphFunc
from ..loop.nodes import PrimFunc
from ..module import Array, Constant, Function, Module
from .printing.lines import Lines, Span
from .printing.module import NO_CONSTANTS, print_function, print_preamble
from .reading.module import ModuleReader
from .reading.source import Source
from .spans import Rendered, shifted, spans_of

__all__ = ["Rendered", "Span", "parse", "render", "to_text"]


def parse(text: str, *, constants: Mapping[str, Constant | Array] | None = None) -> Module:
    """Read a module of functions of both levels.

    Parameters
    ----------
    text : str
        Python syntax; it is never executed, so any string is safe.
    constants : Mapping[str, Constant or array], optional
        Values for the constants that the text describes; arrays are not copied. Those that are
        missing raise :class:`MissingConstantError` when they are loaded.

    Raises
    ------
    ParseError
        What is wrong, with line, column and a caret under it.
    ConstantMismatchError
        If a constant supplied is not the one described, or no array.

    Examples
    --------
    >>> parse("x = 1")
    Traceback (most recent call last):
        ...
    tilewright.ir.script.errors.ScriptSyntaxError: no such statement in a module
      at line 1, column 1
        x = 1
        ^^^^^
      a module has symbols, constants and functions under @prim_func, @graph_func
    """
    if not isinstance(cast("object", text), str):
        raise MalformedProgramError(
            f"the text of a program is a str, not {type(text).__name__}",
            hint="of a file, parse(Path(name).read_text())",
        )
    return ModuleReader(Source(text), constants or NO_CONSTANTS).read()


def _sections(
    program: Module | Function, module: Module | None, *, provenance: bool
) -> list[tuple[str, Lines]]:
    """Give the parts of a text in order, each with the name of its function."""
    match program:
        case Module():
            preamble = print_preamble(program)
            above = [("", preamble)] if preamble.lines else []
            functions = [
                (f.name, print_function(f, program.constants, provenance=provenance))
                for f in program
            ]
            return above + functions
        case PrimFunc() | GraphFunc():
            constants = NO_CONSTANTS if module is None else module.constants
            lines = print_function(program, constants, provenance=provenance)
            return [(program.name, lines)]


def to_text(
    program: Module | Function, *, module: Module | None = None, provenance: bool = False
) -> str:
    r"""Write a module or one function.

    Parameters
    ----------
    program : Module, PrimFunc or GraphFunc
        What to write.
    module : Module, optional
        Where a single function is from: references to its constants are then written without
        their annotations.
    provenance : bool
        Write origins too, as ``origins=`` and ``with origin(...)``; without, they are left out.

    Raises
    ------
    UnprintableProgramError
        If a name cannot be written, or two variables of one name are in scope at once.

    Examples
    --------
    >>> text = "@prim_func\ndef zero(y: Out[(), f32]):\n    y[()] = 0.0"
    >>> to_text(parse(text)) == text
    True
    """
    sections = _sections(program, module, provenance=provenance)
    return "\n\n\n".join("\n".join(lines.lines) for _, lines in sections)


def render(program: Module | Function, *, module: Module | None = None) -> Rendered:
    """Write a module or one function, with the places of loops, blocks, buffers and bindings.

    Examples
    --------
    >>> text = '''
    ... @prim_func
    ... def zero(y: Out[(8,), f32]):
    ...     for i in range(8):
    ...         y[i] = 0.0
    ... '''
    >>> for span in render(parse(text).prim("zero")).spans:
    ...     print(span)
    buffer y defined at 2:10
    loop i defined at 3:9 to line 4
    buffer y used at 4:9
    loop i used at 4:11
    """
    texts: list[str] = []
    spans: list[Span] = []
    above = 0
    for name, lines in _sections(program, module, provenance=False):
        own = spans_of(name, lines)
        spans.extend(shifted(own, above) if above else own)
        texts.append("\n".join(lines.lines))
        above += len(lines.lines) + 2
    return Rendered("\n\n\n".join(texts), tuple(spans))
