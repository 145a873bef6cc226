"""What stands above the statements of a function: symbols, facts, target, decorator."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ...symbolic import (
    ContradictoryFactsError,
    Discharge,
    Facts,
    InvalidSymbolError,
    Origin,
    Var,
    var,
)
from ...target import Target, UnknownTargetError
from ..errors import ParseError, ScriptSyntaxError, UnknownNameError
from .arguments import Arguments, called_name, dotted_name
from .scope import Scope, listed
from .source import Source

SYMBOLS_USAGE = 'n, m = symbols("n m", lower=1, upper=512, multiple_of=8)'
_DISCHARGES = {d.name.lower(): d for d in Discharge}


@dataclass(frozen=True, slots=True)
class Declared:
    """A symbol as declared above a function; every function mints its own."""

    name: str
    lower: int | None = None
    upper: int | None = None
    multiple_of: int = 1

    def mint(self) -> Var:
        """Make the symbol."""
        return var(self.name, lower=self.lower, upper=self.upper, multiple_of=self.multiple_of)


Declarations: TypeAlias = Mapping[str, Declared]


def read_symbols(source: Source, node: ast.Assign, call: ast.Call) -> dict[str, Declared]:
    """Read ``n, m = symbols("n m", lower=1)``."""
    scope = Scope(source, {})
    arguments = Arguments(source, call, SYMBOLS_USAGE)
    words = scope.string(arguments.take(1)[0]).replace(",", " ").split()
    if words != _targets(source, node):
        raise arguments.error(f"the names on the left are not those of {' '.join(words)!r}")
    lower, upper = (_limit(scope, arguments, key) for key in ("lower", "upper"))
    multiple = _limit(scope, arguments, "multiple_of")
    arguments.finish()
    made = {w: Declared(w, lower, upper, 1 if multiple is None else multiple) for w in words}
    try:
        for symbol in made.values():
            symbol.mint()
    except InvalidSymbolError as error:
        raise arguments.error(error.message) from None
    return made


def _limit(scope: Scope, arguments: Arguments, key: str) -> int | None:
    node = arguments.keyword(key)
    return None if node is None else scope.optional_integer(node)


def _targets(source: Source, node: ast.Assign) -> list[str]:
    (target,) = node.targets
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    names: list[str] = []
    for part in parts:
        if not isinstance(part, ast.Name):
            raise source.error(part, "the name of a symbol is expected here")
        names.append(part.id)
    return names


def take_facts(scope: Scope, body: list[ast.stmt]) -> tuple[Facts, list[ast.stmt]]:
    """Read the ``fact(...)`` lines at the top of a function; give what stands below them."""
    facts = Facts()
    for position, statement in enumerate(body):
        if not (isinstance(statement, ast.Expr) and called_name(statement.value) == "fact"):
            return facts, body[position:]
        facts = _assumed(facts, scope, statement.value)
    return facts, []


def _assumed(facts: Facts, scope: Scope, node: ast.expr) -> Facts:
    if not isinstance(node, ast.Call):
        raise scope.source.error(node, "a fact is expected here")
    usage = 'fact(n % 8 == 0, "why", at="file:line", by="entry_check")'
    arguments = Arguments(scope.source, node, usage)
    predicate, *texts = arguments.take(1, 2)
    place, by = arguments.keyword("at"), arguments.keyword("by")
    arguments.finish()
    origin = Origin(
        scope.string(texts[0]) if texts else "assumed",
        None if place is None else scope.string(place),
    )
    discharge = Discharge.ENTRY_CHECK if by is None else _discharge(scope, by)
    try:
        return facts.assume(scope.predicate(predicate), origin=origin, discharge=discharge)
    except ContradictoryFactsError as error:
        raise arguments.error(error.message) from None


def _discharge(scope: Scope, node: ast.expr) -> Discharge:
    name = scope.string(node)
    if name not in _DISCHARGES:
        raise UnknownNameError(
            f"nothing discharges a fact by {name!r}; there are {listed(_DISCHARGES)}",
            place=scope.source.place(node),
        )
    return _DISCHARGES[name]


def read_target(scope: Scope, node: ast.expr) -> Target:
    """Read ``Target("cpu", threads=4)``."""
    if not isinstance(node, ast.Call) or dotted_name(node.func) not in ("Target", "tw.Target"):
        raise scope.source.error(node, 'a target is written Target("cpu")')
    usage = 'Target("cpu", arch="...", features=("avx2",), threads=4)'
    arguments = Arguments(scope.source, node, usage)
    kind = [scope.string(n) for n in arguments.take(0, 1)]
    arch, features = arguments.keyword("arch"), arguments.keyword("features")
    threads = arguments.keyword("threads")
    arguments.finish()
    try:
        return Target(
            *kind,
            arch="" if arch is None else scope.string(arch),
            features=() if features is None else scope.strings(features),
            threads=0 if threads is None else scope.integer(threads),
        )
    except UnknownTargetError as error:
        raise _at(scope, node, error) from None


def _at(scope: Scope, node: ast.expr, error: UnknownTargetError) -> ParseError:
    return ScriptSyntaxError(error.message, place=scope.source.place(node), hint=error.hint)


def decorator_of(
    source: Source, node: ast.FunctionDef, known: tuple[str, ...]
) -> tuple[str, ast.expr]:
    """Find which decorator makes a function, ``@tw.script.prim_func`` or ``@prim_func(...)``."""
    for decorator in node.decorator_list:
        func = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = (dotted_name(func) or "").rpartition(".")[2]
        if name in known and len(node.decorator_list) == 1:
            return name, decorator
    wanted = " or ".join(f"@{k}" for k in known)
    raise source.error(node, f"function {node.name!r} needs one decorator: {wanted}")


def signature(source: Source, node: ast.FunctionDef) -> list[ast.arg]:
    """Give the parameters, which are plain ones."""
    args = node.args
    odd = [*args.posonlyargs, *args.kwonlyargs, args.vararg, args.kwarg]
    for arg in odd:
        if arg is not None:
            raise source.error(arg, "parameters are plain names with annotations")
    for default in args.defaults:
        raise source.error(default, "a parameter has no default value")
    return args.args


def statements_of(node: ast.FunctionDef) -> list[ast.stmt]:
    """Give the statements below the docstring, which is a comment."""
    match node.body[0]:
        case ast.Expr(value=ast.Constant(value=str())):
            return node.body[1:]
        case _:
            return node.body
