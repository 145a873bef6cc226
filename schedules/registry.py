"""Registration of steps, and their lookup by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from ..nearest import did_you_mean
from .apply import Composite, Primitive
from .methods import install
from .problem import UnknownStepError
from .requirement import documented
from .step import Step

_S = TypeVar("_S", bound=type[Step])
_STEPS: dict[str, type[Step]] = {}
STEPS: Mapping[str, type[Step]] = MappingProxyType(_STEPS)
"""All primitives, queries and composite steps by name."""


def primitive(*, family: str, returns: Any = None, isolated: bool = False) -> Callable[[_S], _S]:
    """Return a decorator that registers a primitive.

    Parameters
    ----------
    family : str
        The folder of the primitive, and its heading in the reference.
    returns : type
        The return type of its ``Schedule`` method: a handle type, a ``tuple[...]`` of handle types,
        or None.
    isolated : bool
        Whether the step regards the block around its targets as the whole function: it neither
        uses nor changes the statements outside of that block.
    """
    return lambda cls: register(cls, family, returns, isolated=isolated)


def register(cls: _S, family: str, returns: Any, *, isolated: bool = False) -> _S:
    """Register a step, and add its method to schedules; parameters as in :func:`primitive`."""
    cls.family, cls.returns, cls.isolated = family, returns, isolated
    cls.__doc__ = documented(cls.__doc__ or "", cls.Requires)
    _STEPS[cls.verb()] = cls
    install(cls)
    return cls


def query(*, returns: Any) -> Callable[[_S], _S]:
    """Return a decorator that registers a query; ``returns`` as in :func:`primitive`."""
    return primitive(family="queries", returns=returns)


def step_type(verb: str) -> type[Step]:
    """Return the class of a step by the step's name.

    Raises
    ------
    UnknownStepError
        If no such step is registered; the hint lists all names.
    """
    found = _STEPS.get(verb)
    if found is None:
        question = did_you_mean(verb, _STEPS)
        raise UnknownStepError(
            f"no step {verb!r}" + (f"; {question}" if question else ""),
            hint=f"steps are {', '.join(sorted(_STEPS))}",
        )
    return found


def primitives() -> tuple[type[Primitive], ...]:
    """Return all registered primitives, sorted by family and name."""
    found = [s for s in _STEPS.values() if issubclass(s, Primitive)]
    return tuple(sorted(found, key=lambda s: (s.family, s.verb())))


def composites() -> tuple[type[Composite], ...]:
    """Return all registered composite steps, those of the library first, sorted by name."""
    found = [s for s in _STEPS.values() if issubclass(s, Composite)]
    return tuple(sorted(found, key=lambda s: (s.family, s.verb())))
