"""Mutants of kernels with one defect: a missing barrier, or a bound that is too large."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tilewright.ir.symbolic import (
    And,
    Bool,
    Eq,
    Expr,
    Le,
    Lt,
    Or,
    all_of,
    any_of,
    eq,
    to_text,
)
from tilewright.ir.thread.function import ThreadFunc
from tilewright.ir.thread.nodes import Address, Barrier, Body, If, Loop, Predicate, Stmt, While
from tilewright.ir.thread.visit import statement_values, walk_values


@dataclass(frozen=True)
class Mutant:
    """A changed kernel, with a description of the change that does not depend on its position."""

    change: str
    branch: str
    statement: Stmt
    function: ThreadFunc
    claims: tuple[Bool, Bool] | None = None
    """The condition before and after the change, if a condition was changed."""

    def __str__(self) -> str:
        """Return the change, its block or loop, and its branch as text."""
        return f"{self.change} of {self.name or 'the kernel'} in {self.branch or '/'}"

    @property
    def name(self) -> str:
        """The block or loop that the changed statement was lowered from."""
        return self.statement.source.name


def _replaced(body: Body, old: Stmt, new: tuple[Stmt, ...]) -> Body:
    """Replace one statement by others; statements that do not contain it are shared."""
    result: list[Stmt] = []
    for statement in body:
        if statement is old:
            result.extend(new)
            continue
        match statement:
            case Loop(body=inner) | While(body=inner):
                changed = _replaced(inner, old, new)
                same = changed == inner
                result.append(statement if same else replace(statement, body=changed))
            case If(then=then, otherwise=otherwise):
                sides = _replaced(then, old, new), _replaced(otherwise, old, new)
                same = sides == (then, otherwise)
                result.append(
                    statement if same else replace(statement, then=sides[0], otherwise=sides[1])
                )
            case _:
                result.append(statement)
    return tuple(result)


def _with(function: ThreadFunc, old: Stmt, *new: Stmt) -> ThreadFunc:
    return replace(function, body=_replaced(function.body, old, new))


def _around(body: Body, path: str = "") -> Iterator[tuple[Stmt, str]]:
    """Yield statements with their enclosing branches as text."""
    for statement in body:
        yield statement, path
        match statement:
            case Loop(body=inner) | While(body=inner):
                yield from _around(inner, path)
            case If(condition=condition, then=then, otherwise=otherwise):
                text = to_text(condition.condition) if isinstance(condition, Predicate) else "?"
                yield from _around(then, f"{path}/{text}")
                yield from _around(otherwise, f"{path}/not {text}")
            case _:
                pass


def without_barriers(function: ThreadFunc) -> Iterator[Mutant]:
    """Yield the mutants without one barrier."""
    count = 0
    for statement, path in _around(function.body):
        if isinstance(statement, Barrier):
            yield Mutant(f"barrier {count}", path, statement, _with(function, statement))
            count += 1


def with_wider_bounds(function: ThreadFunc) -> Iterator[Mutant]:
    """Yield the mutants with one more iteration of a loop, or one more value of a comparison."""
    for statement, path in _around(function.body):
        if isinstance(statement, Loop):
            wider = replace(statement, stop=statement.stop + statement.step)
            text = f"loop {statement.var.name} < {to_text(statement.stop)}"
            yield Mutant(text, path, statement, _with(function, statement, wider))
        for predicate in _predicates(statement):
            for old, new in _wider(predicate.condition):
                changed = replace(predicate, condition=new)
                revalued = _revalued(statement, predicate, changed)
                mutant = _with(function, statement, revalued)
                claims = predicate.condition, new
                yield Mutant(f"bound {to_text(old)}", path, statement, mutant, claims)


def without(function: ThreadFunc, statements: Iterable[Stmt]) -> ThreadFunc:
    """Remove several statements."""
    for statement in statements:
        function = _with(function, statement)
    return function


def _predicates(statement: Stmt) -> list[Predicate]:
    values = walk_values(statement_values(statement))
    return [v for v in values if isinstance(v, Predicate)]


def _wider(claim: Bool) -> Iterator[tuple[Bool, Bool]]:
    """Yield every comparison in a claim, and the claim with this comparison wider by one."""
    match claim:
        case Le(left=a, right=b) | Lt(left=a, right=b):
            yield claim, (a <= b + 1 if isinstance(claim, Le) else a < b + 1)
        case Eq(left=a, right=b):
            yield claim, any_of(claim, eq(a, b + 1))
        case And(args=args) | Or(args=args):
            join = all_of if isinstance(claim, And) else any_of
            for k, part in enumerate(args):
                for old, new in _wider(part):
                    yield old, join(*args[:k], new, *args[k + 1 :])
        case _:
            pass


def _revalued(statement: Stmt, old: Any, new: Any) -> Stmt:
    """Replace all occurrences of a value in one statement."""
    replacements: dict[int, Any] = {id(old): new}

    def change(value: Any) -> Any:
        if id(value) in replacements:
            return replacements[id(value)]
        changed = value
        if isinstance(value, tuple):
            parts = tuple(change(v) for v in value)
            same = all(p is v for p, v in zip(parts, value, strict=True))
            changed = value if same else parts
        elif _is_node(value):
            fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
            parts = {name: change(v) for name, v in fields.items()}
            if any(parts[name] is not v for name, v in fields.items()):
                changed = replace(value, **parts)
        replacements[id(value)] = changed
        return changed

    nested = ("body", "then", "otherwise") if isinstance(statement, If | Loop | While) else ()
    fields = [f.name for f in dataclasses.fields(statement) if f.name not in nested]
    return replace(statement, **{name: change(getattr(statement, name)) for name in fields})


def _is_node(value: Any) -> bool:
    module = type(value).__module__
    return isinstance(value, Address) or (
        module.endswith("thread.nodes")
        and dataclasses.is_dataclass(value)
        and not isinstance(value, Expr)
        and type(value).__name__ not in ("Reg", "Const", "Source")
    )
