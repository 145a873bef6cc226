"""All tensor instructions by name; each file of this package registers its own."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from functools import cache

from ...ir.target import Target, provides
from ..problem import ScheduleError
from .contract import Intrinsic

_KNOWN: dict[str, Intrinsic] = {}


class UnknownIntrinsicError(ScheduleError):
    """A tensor instruction that nobody registered; the message lists those that are near."""

    title = "Unknown intrinsic"


class DuplicateIntrinsicError(ScheduleError):
    """Two tensor instructions of one name."""

    title = "Duplicate intrinsic"


def register(intrinsic: Intrinsic) -> Intrinsic:
    """Make an instruction known, and give it back.

    Raises
    ------
    DuplicateIntrinsicError
        If another one has its name.
    """
    if _KNOWN.setdefault(intrinsic.name, intrinsic) is not intrinsic:
        raise DuplicateIntrinsicError(f"there is an intrinsic {intrinsic.name!r} already")
    return intrinsic


@cache
def _load() -> None:
    """Import every module beside this one: each registers what it defines."""
    package = __name__.rpartition(".")[0]
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(f"{package}.{module.name}")


def get_intrinsic(name: str) -> Intrinsic:
    """Find an instruction by its name.

    Raises
    ------
    UnknownIntrinsicError
        If there is none.

    Examples
    --------
    >>> get_intrinsic("avx512.fma.f32.14x32").needs
    ('avx512f',)
    """
    _load()
    found = _KNOWN.get(name)
    if found is None:
        raise UnknownIntrinsicError(unknown_text(name))
    return found


def has_intrinsic(name: str) -> bool:
    """Whether there is an instruction of that name."""
    _load()
    return name in _KNOWN


def unknown_text(name: str) -> str:
    """Say that there is no such instruction, and which there are, the nearest first."""
    _load()
    names = sorted(_KNOWN)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.3)
    ordered = near + [n for n in names if n not in near]
    shown = ", ".join(ordered[:8]) + (", ..." if len(ordered) > 8 else "")
    return f"no intrinsic {name!r}; intrinsics are {shown}"


def intrinsics_for(target: Target | None) -> tuple[Intrinsic, ...]:
    """Give the instructions that a target has, or may have, by name; None: all.

    Examples
    --------
    >>> all(i.name.startswith("cuda.") for i in intrinsics_for(Target("cuda")))
    True
    """
    _load()
    found = (_KNOWN[name] for name in sorted(_KNOWN))
    if target is None:
        return tuple(found)
    return tuple(i for i in found if all(provides(target, n) is not False for n in i.needs))
