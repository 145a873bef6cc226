"""What a primitive is, and the registry that knows them all.

A primitive is one frozen slotted dataclass in one file. Its fields are its parameters; its
registration derives the :class:`~.schedule.Schedule` method and its typed stub, the record in a
trace, the entry in ``docs/primitives.md`` and the form in the workbench. The command line performs
steps through traces: ``tilewright replay``.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, cast, get_type_hints

from ..ir.errors import Json
from ..ir.module import Module
from .methods import install
from .problem import Problem, UnknownStepError
from .refs import REF_TYPES, Gone, Ref
from .values import Value, value_text

if TYPE_CHECKING:
    from .state import State

_NOT_MOVED: Mapping[Ref, tuple[Ref, ...] | Gone] = MappingProxyType({})
_NO_DECISIONS: Mapping[str, Json] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The outcome of a primitive.

    Parameters
    ----------
    module : Module
        The new program; it shares all that did not change.
    results : tuple of Ref
        Handles that later steps may refer to.
    moved : Mapping[Ref, tuple[Ref, ...] | Gone]
        What became of the parts that do not persist. What is not listed persists.
    decisions : Mapping[str, Json]
        Choices that depended on proofs, and sampled values; a replay that decides otherwise
        says so.
    """

    module: Module
    results: tuple[Ref, ...] = ()
    moved: Mapping[Ref, tuple[Ref, ...] | Gone] = field(default_factory=lambda: _NOT_MOVED)
    decisions: Mapping[str, Json] = field(default_factory=lambda: _NO_DECISIONS)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One field of a step, for forms, completion and documentation."""

    name: str
    type: Any
    required: bool
    default: Value
    doc: str


class Step:
    """A primitive or a query: something a trace records."""

    __slots__ = ()
    family: ClassVar[str] = ""
    returns: ClassVar[Any] = None

    @classmethod
    def verb(cls) -> str:
        """The name of this step: of the method, in traces and in the workbench."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()

    @classmethod
    def parameters(cls) -> tuple[Parameter, ...]:
        """The fields, in order, with types, defaults and their documentation."""
        return _parameters(cls)

    @classmethod
    def requirements(cls) -> Mapping[int, str]:
        """The numbered requirements of the documentation."""
        return _numbered(cls, "Requires")

    @classmethod
    def summary(cls) -> str:
        """The first sentence of the documentation."""
        return (cls.__doc__ or "").strip().split("\n\n", 1)[0]

    def values(self) -> tuple[tuple[str, Value], ...]:
        """The fields with their values, in order."""
        names = (f.name for f in dataclasses.fields(cast("Any", self)))
        return tuple((name, getattr(self, name)) for name in names)

    def chosen(self) -> tuple[tuple[str, Value], ...]:
        """The fields with their values, without those that are None because nobody chose."""
        unset = {p.name for p in self.parameters() if not p.required and p.default is None}
        return tuple(
            (name, value) for name, value in self.values() if value is not None or name not in unset
        )

    def refs(self) -> Iterator[Ref]:
        """All handles among the values, tuples included."""
        return (ref for _, value in self.values() for ref in refs_in(value))

    def title(self) -> str:
        """The step as one would write it: verb and values."""
        shown = (f"{name}={value_text(value)}" for name, value in self.chosen())
        return f"{self.verb()}({', '.join(shown)})"


class Primitive(Step):
    """A transformation of a program that keeps what the program computes."""

    __slots__ = ()

    def structural(self, state: State) -> Iterator[Problem]:
        """Check what needs no prover: kinds, nesting, arity."""
        del state
        return iter(())

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check what needs the prover; called only where the structure is sound."""
        del state
        return iter(())

    def rewrite(self, state: State) -> Rewrite:
        """Make the new program; called only where no check found a problem."""
        raise TypeError(f"{type(self).__name__} defines no rewrite for {state!r}")

    @classmethod
    def suggest(cls, state: State, selection: Ref) -> Iterator[Primitive]:
        """Fill in candidates for what a person selected."""
        del state, selection
        return iter(())

    def check(self, state: State) -> Iterator[Problem]:
        """Check everything: existence, reach, structure, then proofs. No problem means legal."""
        found = False
        phases = (
            state.missing(self),
            state.enclosed(self),
            self.structural(state),
            self.proofs(state),
        )
        for phase in phases:
            for problem in phase:
                found = True
                yield problem
            if found:
                return


class Query(Step):
    """A question whose answer later steps refer to; recorded, so that a replay asks again."""

    __slots__ = ()

    def run(self, state: State) -> tuple[Ref, ...]:
        """Answer with handles."""
        raise TypeError(f"{type(self).__name__} defines no answer for {state!r}")


_S = TypeVar("_S", bound=type[Step])
_STEPS: dict[str, type[Step]] = {}
STEPS: Mapping[str, type[Step]] = MappingProxyType(_STEPS)
"""All primitives and queries by verb."""


def primitive(*, family: str, returns: Any = None) -> Callable[[_S], _S]:
    """Register a primitive.

    Parameters
    ----------
    family : str
        The folder it lives in, and the heading it is listed under.
    returns : type
        What its ``Schedule`` method gives: a handle type, a ``tuple[...]`` of them, or None.
    """

    def register(cls: _S) -> _S:
        cls.family, cls.returns = family, returns
        _STEPS[cls.verb()] = cls
        install(cls)
        return cls

    return register


def query(*, returns: Any) -> Callable[[_S], _S]:
    """Register a query; ``returns`` as in :func:`primitive`."""
    return primitive(family="queries", returns=returns)


def step_type(verb: str) -> type[Step]:
    """Find a step's class by its verb.

    Raises
    ------
    UnknownStepError
        If there is none; the hint lists those that are near, or all.
    """
    found = _STEPS.get(verb)
    if found is None:
        raise UnknownStepError(f"no step {verb!r}", hint=f"steps are {', '.join(sorted(_STEPS))}")
    return found


def primitives() -> tuple[type[Primitive], ...]:
    """All registered primitives, by family and verb."""
    found = [s for s in _STEPS.values() if issubclass(s, Primitive)]
    return tuple(sorted(found, key=lambda s: (s.family, s.verb())))


def refs_in(value: Value) -> Iterator[Ref]:
    """Iterate the handles in a field's value."""
    if isinstance(value, REF_TYPES):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from refs_in(item)


Shape = Literal["none", "one", "many"]


def returned_shape(cls: type[Step]) -> Shape:
    """Whether a step's method gives nothing, one handle or a tuple of them."""
    if cls.returns is None:
        return "none"
    return "many" if getattr(cls.returns, "__origin__", None) is tuple else "one"


def _parameters(cls: type[Step]) -> tuple[Parameter, ...]:
    hints = get_type_hints(cls)
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


def _numbered(cls: type, title: str) -> Mapping[int, str]:
    found: dict[int, str] = {}
    last = 0
    for line in _section(cls, title):
        if start := re.match(r"(\d+)\. (.*)", line):
            last = int(start.group(1))
            found[last] = start.group(2)
        elif line.strip() and last:
            found[last] += " " + line.strip()
    return found


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
