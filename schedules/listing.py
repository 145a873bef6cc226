"""Listings: the text of a program with highlighted parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from ..display import FOLD_AFTER, code_html
from ..errors import Excerpt, Mark
from ..ir.module import Function
from ..ir.script.node_text import program_text
from ..ir.script.spans import Rendered
from ..ir.script.text import render
from .handles import HANDLE_TYPES, FunctionRef, Handle, kind_of, label
from .problem import ParameterError
from .state import State
from .suggest_names import NotFoundError, unknown

Part: TypeAlias = "Handle | str"
Parts: TypeAlias = "Part | Iterable[Part]"

MAX_EXCERPTS: Final = 20
"""The number of highlighted lines that HTML shows above a program that is folded."""


@dataclass(frozen=True, slots=True, repr=False)
class Listing:
    """The text of a program with highlighted parts.

    ``print`` shows the text; if parts are highlighted, with line numbers, and carets under them. A
    notebook cell shows highlighted HTML.

    Parameters
    ----------
    text : str
        The text.
    marks : tuple of Mark
        The highlighted parts.
    title : str
        A line above the program, for HTML.
    note : str
        A line below the program, such as the functions that are not shown.
    """

    text: str
    marks: tuple[Mark, ...] = ()
    title: str = ""
    note: str = ""

    def __str__(self) -> str:
        """Return the text; with carets under highlighted parts."""
        body = self.text
        if self.marks:
            lines = tuple(enumerate(self.text.split("\n"), 1))
            body = str(Excerpt("", lines, self.marks))
        return f"{body}\n{self.note}" if self.note else body

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return static HTML."""
        title = " · ".join(part for part in (self.title, self.note) if part)
        return self._folded_marks() + code_html(self.text, highlight=self.marks, title=title)

    def _folded_marks(self) -> str:
        """Return the lines around highlighted parts as HTML if the folded text contains some."""
        if all(mark.line <= FOLD_AFTER for mark in self.marks):
            return ""
        marked = sorted({mark.line for mark in self.marks})[:MAX_EXCERPTS]
        lines = self.text.split("\n")
        near = sorted({k for m in marked for k in range(max(m - 2, 1), min(m + 2, len(lines)) + 1)})
        marks = tuple(mark for mark in self.marks if mark.line in marked)
        return Excerpt("", tuple((k, lines[k - 1]) for k in near), marks).to_html()


def listing(state: State, function: str | None = None, highlight: Parts = ()) -> Listing:
    """Return the listing of a program or of one function.

    Parameters
    ----------
    state : State
        The version to list.
    function : str, optional
        The function to list; by default all functions, or those with highlighted parts.
    highlight : Handle or str, or an iterable of them, optional
        The parts to highlight: handles, and names of loops, blocks, buffers and bindings. Handles
        are followed to their replacements.

    Raises
    ------
    NotFoundError
        If a name matches no part of the program, or a handle has no replacement.
    ParameterError
        If a part to highlight is neither a handle nor a name.
    """
    module = state.module
    if function is not None and function not in module.functions:
        raise NotFoundError(unknown("function", function, list(module.functions), "the module"))
    parts = _parts(highlight)
    if not parts:
        chosen = module if function is None else module.functions[function]
        return Listing(program_text(chosen), title=repr(chosen)[1:-1])
    names = list(module.functions) if function is None else [function]
    return _highlighted(state, names, parts)


def _parts(highlight: Parts) -> tuple[Part, ...]:
    given = cast("object", highlight)
    if isinstance(given, (str, *HANDLE_TYPES)) or not isinstance(given, Iterable):
        given = (given,)
    parts = tuple(cast("Iterable[object]", given))
    for part in parts:
        if not isinstance(part, (str, *HANDLE_TYPES)):
            raise ParameterError(
                f"expected a handle or a name, got {type(part).__name__}",
                where="argument 'highlight'",
                hint="pass handles, or names of loops, blocks, buffers or bindings",
            )
    return cast("tuple[Part, ...]", parts)


def _highlighted(state: State, names: Sequence[str], parts: tuple[Part, ...]) -> Listing:
    texts: list[str] = []
    marks: list[Mark] = []
    found: set[Part] = set()
    shown: list[str] = []
    line = 0
    for name in names:
        function = state.module.functions[name]
        rendered = render(function, module=state.module)
        here = [(part, list(_marks(state, function, rendered, part))) for part in parts]
        if not any(spans for _, spans in here):
            continue
        found.update(part for part, spans in here if spans)
        marks += {m._replace(line=m.line + line) for _, spans in here for m in spans}
        texts.append(rendered.text)
        shown.append(name)
        line += rendered.text.count("\n") + 3
    for part in parts:
        if part not in found:
            raise _missing(state, names, part)
    hidden = len(names) - len(shown)
    plural = "s are" if hidden > 1 else " is"
    note = f"# {hidden} function{plural} not shown, without highlighted parts" if hidden else ""
    return Listing("\n\n\n".join(texts), tuple(sorted(marks)), ", ".join(shown), note)


def _marks(state: State, function: Function, rendered: Rendered, part: Part) -> Iterator[Mark]:
    """Yield the marks of a part in the text of one function."""
    if isinstance(part, str):
        spans = [s for s in rendered.spans if s.name == part]
        if part == function.name:
            yield _header(rendered.text, part)
    else:
        current = [ref for ref in state.follow(part) if ref.function == function.name]
        if FunctionRef(function.name) in current:
            yield _header(rendered.text, function.name)
        uids = [ref.uid for ref in current if not isinstance(ref, FunctionRef)]
        spans = [s for s in rendered.spans if s.uid in uids]
    for span in spans:
        yield Mark(span.line, span.column, span.end)


def _header(text: str, name: str) -> Mark:
    lines = text.split("\n")
    number = next((k for k, line in enumerate(lines, 1) if line.startswith(f"def {name}(")), 1)
    return Mark(number, 5, 5 + len(name))


def _missing(state: State, names: Sequence[str], part: Part) -> NotFoundError:
    if not isinstance(part, str):
        return NotFoundError(
            f"{kind_of(part)} {label(part)!r} is not a part of the shown program",
            where=f"function {part.function!r}",
            hint="a later step removed it, or it belongs to another function",
        )
    functions = [state.module.functions[name] for name in names]
    known = {s.name for f in functions for s in render(f, module=state.module).spans}
    return NotFoundError(unknown("name", part, sorted(known), "the shown program"))
