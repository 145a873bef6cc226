"""The statement before which each register of a kernel is declared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...ir.thread.nodes import Assign, Body, If, Loop, Reg, Stmt, While
from ...ir.thread.types import PointerType
from ...ir.thread.visit import assigned, bodies, statement_values, uses, walk_values

Site = tuple[int, int]
"""The identity of a statement list, and the position in it."""


@dataclass(slots=True)
class Declarations:
    """The registers to declare before a statement, and those that it declares itself."""

    before: dict[Site, list[Reg]] = field(default_factory=dict[Site, list[Reg]])
    at: set[tuple[Site, Reg]] = field(default_factory=set[tuple[Site, Reg]])


def declarations(body: Body) -> Declarations:
    """Return the declarations of the registers of a kernel, in the innermost scope of each.

    A register of a loop is declared in its body only if each iteration assigns it before a read.
    """
    found = Declarations()
    everything = _registers(body)
    _declare(body, everything, found)
    return found


def _registers(body: Body) -> list[Reg]:
    named = assigned(body) | uses(body)
    return sorted((r for r in named if not isinstance(r.type, PointerType)), key=lambda r: r.name)


def _declare(body: Body, regs: list[Reg], found: Declarations) -> None:
    if not regs:
        return
    wanted = set(regs)
    where: dict[Reg, list[int]] = {}
    for k, statement in enumerate(body):
        for reg in _mentioned(statement) & wanted:
            where.setdefault(reg, []).append(k)
    inner: dict[tuple[int, int], list[Reg]] = {}
    for reg in regs:
        mentions = where.get(reg, [])
        if not mentions:
            continue
        first = mentions[0]
        nested = _only_inside(body[first], reg) if len(mentions) == 1 else None
        if nested is not None:
            inner.setdefault((first, nested), []).append(reg)
            continue
        site = id(body), first
        if _assigns(body[first], reg):
            found.at.add((site, reg))
        else:
            found.before.setdefault(site, []).append(reg)
    for (k, part), moved in inner.items():
        statement = body[k]
        _declare(bodies(statement)[part], moved, found)


def _mentioned(statement: Stmt) -> frozenset[Reg]:
    return assigned((statement,)) | uses((statement,))


def _own(statement: Stmt) -> frozenset[Reg]:
    """Return the registers that a statement reads itself."""
    return frozenset(v for v in walk_values(statement_values(statement)) if isinstance(v, Reg))


def _assigns(statement: Stmt, reg: Reg) -> bool:
    return isinstance(statement, Assign) and statement.reg is reg and reg not in _own(statement)


def _only_inside(statement: Stmt, reg: Reg) -> int | None:
    """Return the part of a statement that can declare a register, if all its mentions are there."""
    if reg in _own(statement):
        return None
    parts = [k for k, part in enumerate(bodies(statement)) if any(_in(part, reg))]
    if len(parts) != 1:
        return None
    if isinstance(statement, Loop | While) and not _begins(bodies(statement)[parts[0]], reg):
        return None
    return parts[0]


def _in(body: Body, reg: Reg) -> Iterator[bool]:
    return (True for s in body if reg in _mentioned(s))


def _begins(body: Body, reg: Reg) -> bool:
    """Return whether statements assign a register before they read it."""
    first = next((s for s in body if reg in _mentioned(s)), None)
    if first is None:
        return True
    if reg in _own(first):
        return False
    match first:
        case If():
            if len(body) > body.index(first) + 1 and any(_in(body[body.index(first) + 1 :], reg)):
                return False
            return all(_begins(part, reg) for part in bodies(first))
        case Loop() | While():
            rest = body[body.index(first) + 1 :]
            return not any(_in(rest, reg)) and _begins(first.body, reg)
        case _:
            return True
