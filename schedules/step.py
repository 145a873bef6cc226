"""Steps: the base class of primitives and queries, and the parameters of one."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal, cast, get_type_hints

from .handles import HANDLE_TYPES, Handle
from .requirement import Requirement, by_key
from .values import Value, value_text


@dataclass(frozen=True, slots=True)
class Parameter:
    """A field of a step, for forms, completion and documentation."""

    name: str
    type: Any
    required: bool
    default: Value
    doc: str


class Step:
    """A primitive or a query with its parameters, as a trace records it."""

    __slots__ = ()
    family: ClassVar[str] = ""
    isolated: ClassVar[bool] = False
    """Whether the step regards the block around its targets as the whole function."""
    returns: ClassVar[Any] = None
    Requires: ClassVar[type[Requirement]] = Requirement

    @classmethod
    def verb(cls) -> str:
        """Return the name of this step: of its method, in traces and in the workbench."""
        return _verb(cls)

    @classmethod
    def hints(cls) -> Mapping[str, Any]:
        """Return the types of the fields by name."""
        return get_type_hints(cls)

    @classmethod
    def parameters(cls) -> tuple[Parameter, ...]:
        """Return the fields in order, with types, defaults and documentation."""
        return _parameters(cls)

    @classmethod
    def requirements(cls) -> Mapping[str, str]:
        """Return the texts of the requirements by their names in lower case."""
        return by_key(cls.Requires)

    @classmethod
    def accepts(cls, names: Collection[str]) -> bool:
        """Return whether arguments with these names create a step."""
        required, known = _accepted(cls)
        return required <= set(names) <= known

    @classmethod
    def summary(cls) -> str:
        """Return the first sentence of the documentation."""
        return (cls.__doc__ or "").strip().split("\n\n", 1)[0]

    def values(self) -> tuple[tuple[str, Value], ...]:
        """Return the fields with their values, in order."""
        return tuple([(name, getattr(self, name)) for name in _names(type(self))])

    def chosen(self) -> tuple[tuple[str, Value], ...]:
        """Return the fields with their values, except optional fields that are None."""
        unset = _optional(type(self))
        return tuple(
            [item for item in self.values() if item[1] is not None or item[0] not in unset]
        )

    def handles(self) -> Iterator[Handle]:
        """Return an iterator over all handles among the values, those in tuples included."""
        found: list[Handle] = []
        for name in _names(type(self)):
            value = getattr(self, name)
            if isinstance(value, HANDLE_TYPES):
                found.append(value)
            elif isinstance(value, tuple):
                found += handles_in(cast("Value", value))
        return iter(found)

    def title(self) -> str:
        """Return the step as a call: name and values."""
        shown = (f"{name}={value_text(value)}" for name, value in self.chosen())
        return f"{self.verb()}({', '.join(shown)})"

    def __str__(self) -> str:
        """Return the step as a call."""
        return self.title()


def handles_in(value: Value) -> Iterator[Handle]:
    """Yield the handles in a field's value."""
    if isinstance(value, HANDLE_TYPES):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from handles_in(item)


Shape = Literal["none", "one", "many"]


def returned_shape(cls: type[Step]) -> Shape:
    """Return whether a step's method returns nothing, one result or a tuple of results."""
    if cls.returns is None:
        return "none"
    return "many" if getattr(cls.returns, "__origin__", None) is tuple else "one"


@cache
def _verb(cls: type[Step]) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()


@cache
def _accepted(cls: type[Step]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of the required fields, and of all fields."""
    required = frozenset(p.name for p in cls.parameters() if p.required)
    return required, frozenset(p.name for p in cls.parameters())


@cache
def _names(cls: type[Step]) -> tuple[str, ...]:
    """Return the names of the fields."""
    return tuple(f.name for f in dataclasses.fields(cast("Any", cls)))


@cache
def _optional(cls: type[Step]) -> frozenset[str]:
    """Return the names of the fields with the default None."""
    return frozenset(p.name for p in cls.parameters() if not p.required and p.default is None)


@cache
def _parameters(cls: type[Step]) -> tuple[Parameter, ...]:
    hints = cls.hints()
    docs = _documented(cls)
    made: list[Parameter] = []
    for item in dataclasses.fields(cast("Any", cls)):
        required = item.default is dataclasses.MISSING
        default = cast("Value", None if required else item.default)
        doc = docs.get(item.name, "")
        made.append(Parameter(item.name, hints[item.name], required, default, doc))
    return tuple(made)


def _section(cls: type, title: str) -> list[str]:
    doc = (cls.__doc__ or "").expandtabs()
    found = re.search(
        rf"^ *{title}\n *-+\n(.*?)(?=\n *\w+\n *-+\n|\Z)", doc, re.MULTILINE | re.DOTALL
    )
    if found is None:
        return []
    lines = found.group(1).split("\n")
    indent = min((len(x) - len(x.lstrip()) for x in lines if x.strip()), default=0)
    return [x[indent:] for x in lines]


def _documented(cls: type) -> dict[str, str]:
    found: dict[str, str] = {}
    names: list[str] = []
    for line in _section(cls, "Parameters"):
        if start := re.match(r"(\w+(?:, \w+)*) :", line):
            names = start.group(1).split(", ")
            found.update(dict.fromkeys(names, ""))
        elif line.strip():
            found.update({n: f"{found[n]} {line.strip()}".strip() for n in names})
    return found
