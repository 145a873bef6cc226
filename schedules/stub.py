"""The typed stub of a schedule's methods, generated from the registry.

``python -m tilewright.schedules.stub`` writes ``methods.pyi``. With ``--check`` it compares the
file with the registry, and writes nothing.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import sys
from pathlib import Path
from typing import Any, cast, get_args

from . import primitives as _all_primitives
from .methods import variadic
from .registry import STEPS
from .step import Step, returned_shape

PATH = Path(__file__).with_name("methods.pyi")

# Lines are as long as the longest signature. Docstrings are included because editors show them.
_HEAD = '''# ruff: noqa: E501, PYI021, PYI041, Q000
# fmt: off
"""Generated from the registry by `python -m tilewright.schedules.stub`: do not edit."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

from ..ir.loop.nodes import IndexMap
from ..ir.symbolic import Expr, SymInt
from .handles import BindingRef, BlockRef, BufferRef, FunctionRef, Handle, LoopRef
from .step import Step

def install(cls: type[Step]) -> None: ...
def variadic(cls: type[Step]) -> str: ...

class ScheduleMethods:
    def perform(self, step: Step) -> Any: ...
'''

_WIDER = (
    (r"\btuple\[(\w*Ref(?: \| \w*Ref)*), \.\.\.\]", r"Sequence[\1 | str]"),
    (r"\btuple\[(.*), \.\.\.\]", r"Sequence[\1]"),
    (r"\bIndexMap\b", "IndexMap | str | Callable[..., object]"),
    (r"\b(SymInt|Expr)\b", r"\1 | str"),
)
"""Types that methods accept in addition to those of the fields, converted by `coerce`."""


def stub() -> str:
    """Return the text of the stub.

    Examples
    --------
    >>> "def split(" in stub()
    True
    """
    known = (step for step in STEPS.values() if step.family != "user")
    steps = sorted(known, key=lambda s: (s.family != "queries", s.family, s.verb()))
    used = _HEAD + "".join(_method(step) for step in steps)
    return _only_used(used)


def _method(step: type[Step]) -> str:
    """Return the signature of a step's method; two overloads if handles may be separate."""
    fields = dataclasses.fields(cast("Any", step))
    indexed = any(f.name == "block" for f in fields)
    parameters = [_parameter(f, indexed=indexed) for f in fields]
    keyword = next((k for k, f in enumerate(fields) if f.kw_only), None)
    if keyword is not None:
        parameters.insert(keyword, "*")
    summary = f'        """{step.summary()}"""'
    items = variadic(step)
    if not items:
        return f"{_wrapped(_signature(step, parameters))}\n{summary}\n"
    item = re.sub(r"^\w+: Sequence\[(.*)\]$", rf"*{items}: \1", parameters[0])
    forms = [_wrapped(_signature(step, each)) for each in (parameters, [item, *parameters[1:]])]
    return f"    @overload\n{forms[0]} ...\n    @overload\n{forms[1]}\n{summary}\n"


def _signature(step: type[Step], parameters: list[str]) -> str:
    shown = ", ".join(["self", *parameters])
    return f"    def {step.verb()}({shown}) -> {returned_text(step)}:"


def _wrapped(line: str) -> str:
    """Return a signature with line breaks as the formatter sets them."""
    if len(line) <= 100:
        return line
    name, _, rest = line.partition("(")
    inside, _, result = rest.rpartition(") -> ")
    one = f"        {inside}"
    if len(one) <= 100:
        return f"{name}(\n{one}\n    ) -> {result}"
    parts = re.split(r", (?=\w+:|\*,)", inside)
    return f"{name}(\n" + "".join(f"        {p},\n" for p in parts) + f"    ) -> {result}"


def _parameter(field: dataclasses.Field[Any], *, indexed: bool) -> str:
    """Return a parameter; ``indexed`` buffers are also accepted as indices of accesses."""
    text = str(field.type)
    for pattern, wider in _WIDER:
        text = re.sub(pattern, wider, text)
    if re.search(r"^(Loop|Block|Buffer|Binding|Function)Ref( \| \w+Ref)*( \| None)?$", text):
        text = f"{text.removesuffix(' | None')} | str" + " | None" * text.endswith(" | None")
    if str(field.type) == "BufferRef" and indexed:
        text += " | int"
    return f"{field.name}: {text}{_default(field.default)}"


def _default(value: object) -> str:
    if value is dataclasses.MISSING:
        return ""
    simple = value is None or isinstance(value, bool | int | str)
    return f" = {value!r}" if simple else " = ..."


def returned_text(step: type[Step]) -> str:
    """Return the return type of a step's method as text."""
    if returned_shape(step) == "none":
        return "None"
    if returned_shape(step) == "one":
        return getattr(step.returns, "__name__", "SymInt")
    items = ("..." if a is Ellipsis else a.__name__ for a in get_args(step.returns))
    return f"tuple[{', '.join(items)}]"


def _only_used(text: str) -> str:
    """Return the stub without imports that no signature uses."""
    head, _, body = text.partition("\ndef install")

    def kept(line: str) -> str:
        if not line.startswith("from "):
            return line
        origin, _, names = line.partition(" import ")
        wanted = [n for n in names.split(", ") if n == "Step" or re.search(rf"\b{n}\b", body)]
        return f"{origin} import {', '.join(wanted)}" if wanted else ""

    lines = [kept(line) if line else line for line in head.split("\n")]
    shown = [line for line, old in zip(lines, head.split("\n"), strict=True) if line or not old]
    return "\n".join(shown) + "\ndef install" + body


def main(arguments: list[str]) -> int:
    """Write the stub or compare it with the file, and return the exit status."""
    new = stub()
    if "--check" not in arguments:
        PATH.write_text(new)
        return 0
    old = PATH.read_text() if PATH.exists() else ""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), "committed", "registry")
    sys.stderr.write("\n".join(lines))
    return int(old != new)


_all_primitives.load()

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
