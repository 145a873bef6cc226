"""Reference of all primitives and composite steps in Markdown, generated from the registry.

``python -m tilewright.schedules.reference > docs/primitives.md`` writes the committed page.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from itertools import groupby
from typing import Any, cast

from .registry import composites, primitives
from .requirement import CommonRequirement, Requirement
from .step import Step, returned_shape
from .stub import returned_text
from .values import value_text

_HEAD = """# Primitives

The steps that transform a program. Each is a method of `tilewright.Schedule` and an entry of the
workbench's menu, and is recorded in the trace. An illegal step is rejected with the violated
requirement, its location, the offending values or a counter-example, and suggested fixes.

The requirements of a step have names. All steps have these two:

{common}

A parameter of a handle type (`LoopRef`, `BlockRef`, `BufferRef`, `FunctionRef`, `BindingRef`) also
accepts a name. A `SymInt` is an integer, a symbolic term, or, next to a handle, the text of a term.

Generated from the registry by `python -m tilewright.schedules.reference`: do not edit.
"""


_COMPOSITES = """
## Composite steps

Functions of primitives. A composite step is recorded as one group of the steps that it applies, is
one version of the history, and applies completely or not at all. Its requirements are those of its
steps. The default schedule of `tilewright.compile` consists of these steps. [Traces](traces.md)
explains groups, and how to define a composite step by the decorator `tilewright.composite`.
"""


def reference() -> str:
    """Return the page: one section per family, and one entry per primitive and composite step.

    Examples
    --------
    >>> "### split" in reference()
    True
    """
    families = [(f, list(steps)) for f, steps in groupby(primitives(), lambda s: s.family)]
    common = "\n".join(_requirements(CommonRequirement))
    lines = [_HEAD.replace("{common}", common)]
    lines += [f"- **{family}**: {', '.join(map(_link, steps))}" for family, steps in families]
    library = [step for step in composites() if step.family == "library"]
    lines += [f"- **composite steps**: {', '.join(map(_link, library))}"]
    for family, steps in families:
        lines += ["", f"## Family {family}"]
        for step in steps:
            lines += ["", *_entry(step)]
    lines += ["", _COMPOSITES.strip()]
    for step in library:
        lines += ["", *_entry(step)]
    return "\n".join(lines) + "\n"


def _link(step: type[Step]) -> str:
    return f"[{step.verb()}](#{step.verb()})"


def _entry(step: type[Step]) -> Iterator[str]:
    """Yield the lines of one step: signature, prose and all sections except examples."""
    sections = _sections(inspect.cleandoc(step.__doc__ or ""))
    yield f"### {step.verb()}"
    yield ""
    yield f"`{_signature(step)}`"
    yield ""
    yield _prose(sections[""])
    yield ""
    yield from _parameters(step)
    if step.requirements():
        yield from ("", "Requires:", "")
        yield from _requirements(step.Requires)
    if "Notes" in sections:
        yield from ("", _prose(sections["Notes"]))
    if "References" in sections:
        yield from ("", f"References: {_prose(sections['References'])}")


def _requirements(requires: type[Requirement]) -> Iterator[str]:
    return (f"- `{member.key}`: {_text(member.markup)}" for member in requires)


def _signature(step: type[Step]) -> str:
    shown = ", ".join(
        p.name if p.required else f"{p.name}={value_text(p.default)}" for p in step.parameters()
    )
    arrow = "" if returned_shape(step) == "none" else f" -> {returned_text(step)}"
    return f"{step.verb()}({shown}){arrow}"


def _parameters(step: type[Step]) -> Iterator[str]:
    types = {f.name: str(f.type) for f in dataclasses.fields(cast("Any", step))}
    return (f"- `{p.name}` (`{types[p.name]}`): {_text(p.doc)}" for p in step.parameters())


def _sections(doc: str) -> dict[str, str]:
    """Return the sections of a docstring by title; the text before the first has title ``""``."""
    parts = re.split(r"^(\w+)\n-+\n", doc, flags=re.MULTILINE)
    return dict(zip(["", *parts[1::2]], parts[::2], strict=True))


def _prose(text: str) -> str:
    """Return Markdown in which indented text after ``::`` is a fenced block."""
    return re.sub(r"^(\S.*:):\n((?:\n| .*\n?)+)", _fenced, _text(text), flags=re.MULTILINE).strip()


def _fenced(found: re.Match[str]) -> str:
    program = textwrap.dedent(found[2]).strip("\n")
    return f"{found[1]}\n\n```python\n{program}\n```\n\n"


def _text(text: str) -> str:
    return text.replace("``", "`")


if __name__ == "__main__":
    sys.stdout.write(reference())
