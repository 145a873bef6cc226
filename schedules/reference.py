"""The reference of all primitives as Markdown, generated from the registry.

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

from .primitive import Primitive, Step, primitives, returned_shape
from .stub import returned_text
from .values import value_text

_HEAD = """# Primitives

Every step that changes a program. All are methods of `tilewright.Schedule`, entries of the
workbench's menu and records of a trace. A step whose requirements do not hold is refused with the
number of the requirement, the place, the numbers or a counter-example, and the steps that mend it.

Requirement 0 holds for all: what a step points at exists, and it is not inside of a tensorized
block, nor, for steps of the families caching, placement and reduction, inside of another block.

Generated from the registry by `python -m tilewright.schedules.reference`: not edited by hand.
"""


def reference() -> str:
    """Give the page, with one section a family and one entry a primitive.

    Examples
    --------
    >>> "### split" in reference()
    True
    """
    families = [(f, list(steps)) for f, steps in groupby(primitives(), lambda s: s.family)]
    lines = [_HEAD]
    lines += [f"- **{family}**: {', '.join(map(_link, steps))}" for family, steps in families]
    for family, steps in families:
        lines += ["", f"## Family {family}"]
        for step in steps:
            lines += ["", *_entry(step)]
    return "\n".join(lines) + "\n"


def _link(step: type[Step]) -> str:
    return f"[{step.verb()}](#{step.verb()})"


def _entry(step: type[Primitive]) -> Iterator[str]:
    """Render one primitive: signature, prose with its programs, parameters, requirements, notes."""
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
        yield from (f"{k}. {_text(r)}" for k, r in step.requirements().items())
    if "Notes" in sections:
        yield from ("", _prose(sections["Notes"]))


def _signature(step: type[Step]) -> str:
    shown = ", ".join(
        p.name if p.required else f"{p.name}={value_text(p.default)}" for p in step.parameters()
    )
    gives = "" if returned_shape(step) == "none" else f" -> {returned_text(step)}"
    return f"{step.verb()}({shown}){gives}"


def _parameters(step: type[Step]) -> Iterator[str]:
    types = {f.name: str(f.type) for f in dataclasses.fields(cast("Any", step))}
    return (f"- `{p.name}` (`{types[p.name]}`): {_text(p.doc)}" for p in step.parameters())


def _sections(doc: str) -> dict[str, str]:
    """Cut a docstring at its underlined titles; what is before the first is under ``""``."""
    parts = re.split(r"^(\w+)\n-+\n", doc, flags=re.MULTILINE)
    return dict(zip(["", *parts[1::2]], parts[::2], strict=True))


def _prose(text: str) -> str:
    """Put what is indented after ``::`` into a fenced block; all else stays prose."""
    return re.sub(r"^(\S.*:):\n((?:\n| .*\n?)+)", _fenced, _text(text), flags=re.MULTILINE).strip()


def _fenced(found: re.Match[str]) -> str:
    program = textwrap.dedent(found[2]).strip("\n")
    return f"{found[1]}\n\n```python\n{program}\n```\n\n"


def _text(text: str) -> str:
    return text.replace("``", "`")


if __name__ == "__main__":
    sys.stdout.write(reference())
