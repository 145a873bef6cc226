"""Registry of tensor instructions by name; each module of this package registers its own."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from ...ir.loop.nodes import INTRINSIC, Block
from ...nearest import listed
from ...target.target import Target, provides
from ..problem import ScheduleError
from .contract import Intrinsic

_INTRINSICS: dict[str, Intrinsic] = {}


class UnknownIntrinsicError(ScheduleError):
    """The name of a tensor instruction that is not registered; the message lists similar names."""

    title = "Unknown intrinsic"


class DuplicateIntrinsicError(ScheduleError):
    """Two tensor instructions with the same name."""

    title = "Duplicate intrinsic"


def register(intrinsic: Intrinsic) -> Intrinsic:
    """Register an instruction, and return it.

    Raises
    ------
    DuplicateIntrinsicError
        If another instruction has the same name.
    """
    if _INTRINSICS.setdefault(intrinsic.name, intrinsic) is not intrinsic:
        raise DuplicateIntrinsicError(f"intrinsic {intrinsic.name!r} is already registered")
    return intrinsic


@cache
def _load() -> None:
    """Import every module of this package, which registers its instructions."""
    package = __name__.rpartition(".")[0]
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(f"{package}.{module.name}")


def get_intrinsic(name: str) -> Intrinsic:
    """Return an instruction by name.

    Raises
    ------
    UnknownIntrinsicError
        If no instruction has that name.

    Examples
    --------
    >>> get_intrinsic("avx512.fma.f32.14x32").needs
    ('avx512f',)
    """
    _load()
    found = _INTRINSICS.get(name)
    if found is None:
        raise UnknownIntrinsicError(unknown_text(name))
    return found


def intrinsic_of(block: Block) -> Intrinsic | None:
    """Return the instruction that a block was tensorized with, or None."""
    name = dict(block.annotations).get(INTRINSIC)
    return get_intrinsic(name) if isinstance(name, str) else None


def has_intrinsic(name: str) -> bool:
    """Return whether an instruction with a name is registered."""
    _load()
    return name in _INTRINSICS


def unknown_text(name: str) -> str:
    """Return the message for an unknown name; it lists the names, the most similar first."""
    _load()
    return f"no intrinsic {name!r}; intrinsics are {listed(name, sorted(_INTRINSICS), limit=8)}"


def intrinsics_for(target: Target | None) -> tuple[Intrinsic, ...]:
    """Return the instructions that a target has or may have, sorted by name; None returns all.

    Examples
    --------
    >>> all(i.name.startswith("cuda.") for i in intrinsics_for(Target("cuda")))
    True
    """
    _load()
    found = (_INTRINSICS[name] for name in sorted(_INTRINSICS))
    if target is None:
        return tuple(found)
    return tuple(i for i in found if all(provides(target, n) is not False for n in i.needs))
