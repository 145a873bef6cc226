"""Parsing of function headers: symbols, facts, target, decorator, parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ....target.target import Target, UnknownTargetError
from ...symbolic import (
    ContradictoryFactsError,
    Discharge,
    Fact,
    Facts,
    InvalidSymbolError,
    Origin,
    Proved,
    Refuted,
    Var,
    conjuncts,
    prove,
    to_text,
    var,
)
from ..errors import ParseError, ScriptSyntaxError
from .arguments import Arguments, called_name, dotted_name
from .scope import Scope, listed
from .source import Source, describe
from .unknown import unknown_name

SYMBOLS_USAGE = 'n, m = symbols("n m", lower=1, upper=512, multiple_of=8)'
_DISCHARGES = {d.name.lower(): d for d in Discharge}


@dataclass(frozen=True, slots=True)
class Declared:
    """A symbol declaration; every function creates its own symbol from it."""

    name: str
    lower: int | None = None
    upper: int | None = None
    multiple_of: int = 1

    def mint(self) -> Var:
        """Create the symbol."""
        return var(self.name, lower=self.lower, upper=self.upper, multiple_of=self.multiple_of)


Declarations: TypeAlias = Mapping[str, Declared]


def read_symbols(source: Source, node: ast.Assign, call: ast.Call) -> dict[str, Declared]:
    """Parse ``n, m = symbols("n m", lower=1)``."""
    scope = Scope(source, {})
    arguments = Arguments(source, call, SYMBOLS_USAGE)
    words = scope.string(arguments.take(1)[0]).replace(",", " ").split()
    targets = _targets(source, node)
    if words != targets:
        raise arguments.error(
            f"expected the names on the left to be '{listed(words)}', got '{listed(targets)}'"
        )
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


def names_of_its_own(node: ast.FunctionDef) -> set[str]:
    """Return the names that a loop-level function binds and that its signature does not use.

    A symbol of the same name belongs to other functions.
    """
    header = (node.args, *node.decorator_list)
    used = {n.id for part in header for n in ast.walk(part) if isinstance(n, ast.Name)}
    used |= {arg.arg for arg in node.args.args}
    bound: set[str] = set()
    for part in ast.walk(node):
        match part:
            case ast.For(target=target):
                targets = [target]
            case ast.Assign(targets=targets):
                pass
            case ast.withitem(optional_vars=ast.expr() as target):
                targets = [target]
            case _:
                continue
        parts = (e for t in targets for e in (t.elts if isinstance(t, ast.Tuple) else [t]))
        bound |= {e.id for e in parts if isinstance(e, ast.Name)}
    return bound - used


def _limit(scope: Scope, arguments: Arguments, key: str) -> int | None:
    node = arguments.keyword(key)
    return None if node is None else scope.optional_integer(node)


def _targets(source: Source, node: ast.Assign) -> list[str]:
    (target,) = node.targets
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    names: list[str] = []
    for part in parts:
        if not isinstance(part, ast.Name):
            hint = f"usage: {SYMBOLS_USAGE}"
            raise source.error(part, f"expected a symbol name, got {describe(part)}", hint)
        names.append(part.id)
    return names


def take_facts(scope: Scope, body: list[ast.stmt]) -> tuple[Facts, list[ast.stmt]]:
    """Parse leading ``fact(...)`` lines of a function; return the remaining statements too.

    A fact that the text declares as proved is an obligation: it is proved from the other facts,
    or it becomes an entry check.
    """
    stated = list[tuple[Arguments, Fact]]()
    first = 0
    for first, statement in enumerate([*body, None]):  # noqa: B007 - the position after the facts
        if not (isinstance(statement, ast.Expr) and called_name(statement.value) == "fact"):
            break
        stated += _stated(scope, statement.value)
    facts = Facts(fact for _, fact in stated)
    if not facts.consistent:
        _check_each(stated)
    claims = {f: a.node for a, f in reversed(stated) if f.discharge is Discharge.PROOF}
    claimed: list[tuple[ast.expr, Fact]] = [(claims[f], f) for f in facts if f in claims]
    return _discharged(scope, facts, claimed), body[first:]


def _check_each(stated: Iterable[tuple[Arguments, Fact]]) -> None:
    """Report the first fact that contradicts those before it."""
    facts = Facts()
    for arguments, fact in stated:
        try:
            facts = facts.assume(fact.predicate, origin=fact.origin, discharge=fact.discharge)
        except ContradictoryFactsError as error:
            raise arguments.error(error.message) from None


def _discharged(scope: Scope, facts: Facts, claimed: list[tuple[ast.expr, Fact]]) -> Facts:
    """Return the facts, in which each claim without a proof is an entry check."""
    if not claimed:
        return facts
    open_claims = {fact for _, fact in claimed}
    checked = dict[Fact, Fact]()
    for node, fact in claimed:
        others = Facts(f for f in facts if f not in open_claims)
        answer = prove(fact.predicate, others)
        if isinstance(answer, Refuted):
            raise scope.source.error(
                node,
                f"the claimed proof of '{to_text(fact.predicate)}' does not hold: it is false for "
                f"{answer}",
                'write by="entry_check" for a check at every call, or declare the range or '
                "divisibility of the symbols: symbols(..., lower=1, multiple_of=8)",
            )
        if isinstance(answer, Proved):
            open_claims.discard(fact)
        else:
            checked[fact] = Fact(fact.predicate, fact.origin, Discharge.ENTRY_CHECK)
    return Facts((checked.get(f, f) for f in facts), facts.hints)


def _stated(scope: Scope, node: ast.expr) -> list[tuple[Arguments, Fact]]:
    """Parse a ``fact(...)``, whose condition may be a conjunction of several facts."""
    if not isinstance(node, ast.Call):
        raise scope.source.error(
            node, f"expected fact(...), got {describe(node)}", "write fact(n % 8 == 0)"
        )
    usage = 'fact(n % 8 == 0, "origin", at="file:line", by="entry_check")'
    arguments = Arguments(scope.source, node, usage)
    predicate, *texts = arguments.take(1, 2)
    location, by = arguments.keyword("at"), arguments.keyword("by")
    arguments.finish()
    origin = Origin(
        scope.string(texts[0]) if texts else "assumed",
        None if location is None else scope.string(location),
    )
    discharge = Discharge.ENTRY_CHECK if by is None else _discharge(scope, by)
    parts = conjuncts(scope.predicate(predicate))
    return [(arguments, Fact(part, origin, discharge)) for part in parts]


def _discharge(scope: Scope, node: ast.expr) -> Discharge:
    name = scope.string(node)
    if name not in _DISCHARGES:
        raise unknown_name(scope.source, node, "discharge", name, _DISCHARGES)
    return _DISCHARGES[name]


def read_target(scope: Scope, node: ast.expr) -> Target:
    """Parse ``Target("cpu", threads=4)``."""
    if not isinstance(node, ast.Call) or dotted_name(node.func) not in ("Target", "tw.Target"):
        raise scope.source.error(
            node, f"expected a target, got {describe(node)}", 'write Target("cpu")'
        )
    usage = 'Target("cpu", arch="...", features=("avx2",), threads=4)'
    arguments = Arguments(scope.source, node, usage)
    kind = [scope.string(n) for n in arguments.take(0, 1)]
    arch, features = arguments.keyword("arch"), arguments.keyword("features")
    threads, where = arguments.keyword("threads"), arguments.keyword("where")
    arguments.finish()
    try:
        return Target(
            *kind,
            arch="" if arch is None else scope.string(arch),
            features=() if features is None else scope.strings(features),
            threads=0 if threads is None else scope.integer(threads),
            where="" if where is None else scope.string(where),
        )
    except UnknownTargetError as error:
        raise _at(scope, node, error) from None


def _at(scope: Scope, node: ast.expr, error: UnknownTargetError) -> ParseError:
    return ScriptSyntaxError(error.message, location=scope.source.location(node), hint=error.hint)


def decorator_of(
    source: Source, node: ast.FunctionDef, known: tuple[str, ...]
) -> tuple[str, ast.expr]:
    """Return the name and node of the decorator, such as ``@tw.script.prim_func``."""
    for decorator in node.decorator_list:
        func = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = (dotted_name(func) or "").rpartition(".")[2]
        if name in known and len(node.decorator_list) == 1:
            return name, decorator
    expected = " or ".join(f"@{k}" for k in known)
    raise source.error(
        node,
        f"function {node.name!r} needs exactly one decorator: {expected}",
        "write @prim_func above a function of loops, @graph_func above one of operators",
    )


def signature(source: Source, node: ast.FunctionDef) -> list[ast.arg]:
    """Return the parameters after checking that they are positional and have no defaults."""
    args = node.args
    odd = [*args.posonlyargs, *args.kwonlyargs, args.vararg, args.kwarg]
    for arg in odd:
        if arg is not None:
            raise source.error(
                arg,
                "positional-only, keyword-only and variadic parameters are not supported",
                "write plain parameters: x: Buffer[(n,), f32]",
            )
    for default in args.defaults:
        raise source.error(
            default,
            "default values of parameters are not supported",
            "pass every argument at the call, or write the value into the body",
        )
    return args.args


def statements_of(node: ast.FunctionDef) -> list[ast.stmt]:
    """Return the statements of a function without its docstring."""
    match node.body[0]:
        case ast.Expr(value=ast.Constant(value=str())):
            return node.body[1:]
        case _:
            return node.body
