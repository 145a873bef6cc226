"""The public functions of the text format: ``parse``, ``to_text`` and ``render``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, cast

from ...calls import checked_call
from ...errors import MalformedProgramError
from ..analysis.store_blocks import with_store_blocks
from ..graph.nodes import GraphFunc
from ..loop.nodes import PrimFunc
from ..module import Array, Constant, Function, Module
from .parser.module import ModuleReader
from .parser.source import Source
from .printer.lines import Lines, Span
from .printer.module import NO_CONSTANTS, print_function, print_preamble
from .spans import Rendered, shifted, spans_of

_FILE_NAME: Final = re.compile(r"[\w~./\\:-]{1,200}\.(?:onnx|pt2?|py|tw|txt)")
"""The name of a file that may be passed in place of its content."""

__all__ = ["Rendered", "Span", "parse", "render", "to_text"]


@checked_call
def parse(
    text: str,
    *,
    constants: Mapping[str, Constant | Array] | None = None,
    check: bool = True,
) -> Module:
    """Parse a module of graph-level and loop-level functions.

    The conditions at entry that keep the accesses of a loop-level function inside of its buffers
    become facts of the function. A store outside of blocks gets a block with inferred iteration
    variables.

    Parameters
    ----------
    text : str
        The program in Python syntax. It is never executed, so any string is safe.
    constants : Mapping[str, Constant or array], optional
        Values of the constants that the text declares; arrays are not copied. Loading a constant
        without values raises :class:`MissingConstantError`.
    check : bool
        Whether to check the well-formedness rules and to add facts and blocks. Without, the
        result is exactly the program of the text, which may be ill-formed.

    Raises
    ------
    ParseError
        If the text is not a valid program; the error has line, column and the underlined text.
    ConstantMismatchError
        If a supplied constant is not an array or does not match its declaration.
    IllFormedProgramError
        If the program violates a well-formedness rule, such as an index outside of its buffer.
    UnprovedAccessError
        If the declared range of a variable is neither proved nor implied by a condition at entry.

    Examples
    --------
    >>> parse("x = 1")
    Traceback (most recent call last):
        ...
    tilewright.ir.script.errors.ScriptSyntaxError: unsupported statement in a module
      at line 1, column 1
        1 | x = 1
          | ^^^^^
      statements are symbols, constant, module, and functions under @prim_func or @graph_func
    """
    if not isinstance(cast("object", text), str):
        raise MalformedProgramError(
            f"expected the text of a program as str, got {type(text).__name__}",
            where="argument 'text' of parse",
            hint="read a file with parse(Path(name).read_text())",
        )
    if _FILE_NAME.fullmatch(text.strip()):
        raise MalformedProgramError(
            f"expected the text of a program, got the file name {text.strip()!r}",
            where="argument 'text' of parse",
            hint="read a program with parse(Path(name).read_text()), a model with from_onnx(name)",
        )
    module = ModuleReader(Source(text), constants or NO_CONSTANTS).read()
    if not check:
        return module
    from ..verify import accepted, check_declared  # imports this module to print excerpts

    checked = accepted(module.with_functions(*map(with_store_blocks, module.prims)))
    check_declared(checked)
    return checked


def _sections(
    program: Module | Function,
    module: Module | None,
    *,
    provenance: bool = False,
    lowered: bool = False,
) -> list[tuple[str, Lines]]:
    """Return the sections of a text in order, each with the name of its function."""
    match program:
        case Module():
            preamble = print_preamble(program)
            preamble_sections = [("", preamble)] if preamble.lines else []
            functions = [
                (
                    f.name,
                    print_function(f, program.constants, provenance=provenance, lowered=lowered),
                )
                for f in program
            ]
            return preamble_sections + functions
        case PrimFunc() | GraphFunc():
            constants = NO_CONSTANTS if module is None else module.constants
            lines = print_function(program, constants, provenance=provenance, lowered=lowered)
            return [(program.name, lines)]


def to_text(
    program: Module | Function,
    *,
    module: Module | None = None,
    provenance: bool = False,
    lowered: bool = False,
) -> str:
    r"""Return the text of a module or of one function.

    Parameters
    ----------
    program : Module, PrimFunc or GraphFunc
        The program to print.
    module : Module, optional
        The module of a single function. References to constants of this module are printed
        without annotations.
    provenance : bool
        Whether to print origins, as ``origins=`` and ``with origin(...)``.
    lowered : bool
        Whether loop-level functions may be intermediate results of lowering. Variables of equal
        name then get a numeric suffix, and a block without iteration variables is printed without
        its regions.

    Returns
    -------
    str
        The text; :func:`parse` returns the same program for it, except with ``lowered``.

    Raises
    ------
    UnprintableProgramError
        If a name is not a valid identifier, or, without ``lowered``, two variables of equal name
        are in scope.

    Examples
    --------
    >>> text = "@prim_func\ndef none(y: InOut[(), f32]):\n    pass"
    >>> to_text(parse(text)) == text
    True
    """
    sections = _sections(program, module, provenance=provenance, lowered=lowered)
    return "\n\n\n".join("\n".join(lines.lines) for _, lines in sections)


def render(program: Module | Function, *, module: Module | None = None) -> Rendered:
    """Return the text of a program with the spans of loops, blocks, buffers and bindings.

    Examples
    --------
    >>> text = '''
    ... @prim_func
    ... def zero(y: Out[(8,), f32]):
    ...     for i in range(8):
    ...         with block("zero"):
    ...             vi = spatial(i)
    ...             y[vi] = 0.0
    ... '''
    >>> for span in render(parse(text).prim("zero")).spans:
    ...     print(span)
    buffer y defined at 2:10
    loop i defined at 3:9 to line 6
    block zero defined at 4:21 to line 6
    loop i used at 5:26
    buffer y used at 6:13
    """
    texts: list[str] = []
    spans: list[Span] = []
    line_offset = 0
    for name, lines in _sections(program, module):
        own = spans_of(name, lines)
        spans.extend(shifted(own, line_offset) if line_offset else own)
        texts.append("\n".join(lines.lines))
        line_offset += len(lines.lines) + 2
    return Rendered("\n\n\n".join(texts), tuple(spans))
