"""Translation of torch.export symbols: names, ranges, and guards.

PyTorch traces at sizes of 2 or more and adds guards for the resulting specializations. A guard
that follows from all sizes being at least 2 is an artifact of tracing, not a fact: the imported
program must also run at size 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import TilewrightError
from ..identity import fresh_name
from ..naming import to_valid_name
from ..symbolic import (
    Bool,
    Discharge,
    Eq,
    Expr,
    Facts,
    Le,
    Ne,
    Origin,
    SymbolicError,
    Var,
    as_expr,
    const_value,
    free_vars,
    is_proved,
    linear_form,
    maximum,
    minimum,
    parse_expr,
    product,
    substitute,
    total,
    var,
)


class SymbolicDimensionError(TilewrightError):
    """A symbolic size of an exported program that has an unsupported form."""

    title = "Unsupported symbolic size"


_SIZE = re.compile(r"L\[[^()]*?\](?:\.\w+)*\.size\(\)\[\d+\]")


@dataclass(slots=True)
class TorchSymbols:
    """The symbols of one exported program."""

    names: Mapping[str, str]
    """The names of the user's ``Dim`` objects by PyTorch symbol, such as ``s0``."""

    vars: dict[str, Var] = field(default_factory=dict[str, Var])
    solved: dict[Var, Expr] = field(default_factory=dict[Var, Expr])
    _taken: set[str] = field(default_factory=set[str])

    def declare(self, symbol: str, name: str) -> Var:
        """Return the variable of a symbol; the first call creates it with an unused name."""
        if symbol not in self.vars:
            chosen = fresh_name(to_valid_name(name), self._taken)
            self._taken.add(chosen)
            self.vars[symbol] = var(chosen, lower=0)
        return self.vars[symbol]

    def size(self, size: Any) -> Expr:
        """Translate a size, which is an integer or a SymInt."""
        if isinstance(size, int):
            return as_expr(size)
        return substitute(self._term(size.node.expr), self.solved)

    def _term(self, term: Any) -> Expr:
        """Translate a sympy term by the names of its classes, without importing sympy."""
        kind = type(term).__name__
        if term.is_Integer:
            return as_expr(int(term))
        if term.is_Symbol:
            return self.declare(str(term), str(term))
        args = [self._term(a) for a in term.args]
        match kind, args:
            case "Add", _:
                return total(args)
            case "Mul", _:
                return product(args)
            case "Pow", [base, power] if (exponent := const_value(power)) is not None:
                return product([base] * exponent)
            case (("FloorDiv" | "CleanDiv"), [left, right]):
                return left // right
            case "Mod" | "PythonMod", [left, right]:
                return left % right
            case "Max", _:
                return maximum(*args)
            case "Min", _:
                return minimum(*args)
            case _:
                raise SymbolicDimensionError(
                    f"size {term} of the exported program uses {kind}, which is not supported",
                    hint="sizes may use sums, products, integer powers, floor division, modulo, "
                    "min, and max",
                )

    def solve(self, guards: Iterable[Bool]) -> None:
        """Substitute symbols that guards equate to a term by that term."""
        for left, right in _equations(list(guards)):
            self._solve(substitute(left - right, self.solved))

    def _solve(self, difference: Expr) -> None:
        found = list(_solutions(difference))
        if not found:
            return
        # A sum of sizes is easier to read than a difference, and cannot be negative.
        symbol, value = next((s for s in found if s[1].lower is not None), found[0])
        self.solved = {k: substitute(v, {symbol: value}) for k, v in self.solved.items()}
        self.solved[symbol] = value


def _solutions(difference: Expr) -> Iterable[tuple[Var, Expr]]:
    """Yield solutions of ``difference == 0`` for symbols of coefficient 1 or -1, latest first."""
    for symbol in sorted(free_vars(difference), key=lambda v: -v.serial):
        form = linear_form(difference, (symbol,))
        factor = None if form is None else const_value(form.coefficients.get(symbol, as_expr(0)))
        if form is not None and factor in (1, -1):
            yield symbol, (-form.rest if factor == 1 else form.rest)


def _equations(guards: list[Bool]) -> Iterable[tuple[Expr, Expr]]:
    """Yield both sides of the equations, including those written as two inequalities."""
    at_most = {g.left - g.right for g in guards if isinstance(g, Le)}
    for guard in guards:
        if isinstance(guard, Eq):
            yield guard.left, guard.right
        if isinstance(guard, Le) and guard.right - guard.left in at_most:
            yield guard.left, guard.right


def parse_guards(texts: Iterable[str], sizes: Mapping[str, Expr]) -> list[Bool]:
    """Parse guards over source expressions; guards about anything except sizes are ignored."""
    found: list[Bool] = []
    symbols = {f"size{k}": sizes[s] for k, s in enumerate(sizes)}
    numbered = {s: f"size{k}" for k, s in enumerate(sizes)}
    for text in texts:
        replaced = _SIZE.sub(lambda m: numbered.get(m.group(), m.group()), text)
        guard = _parse(replaced, symbols)
        if guard is not None:
            found.append(guard)
    return found


def _parse(text: str, sizes: Mapping[str, Expr]) -> Bool | None:
    names = {name: var(name) for name in sizes}
    try:
        guard = parse_expr(text, names)
    except SymbolicError:
        return None
    if not isinstance(guard, Bool):
        return None
    return substitute(guard, {names[name]: sizes[name] for name in sizes})


def is_artifact(claim: Bool, given: Iterable[Bool] = ()) -> bool:
    """Return whether a guard is always true when sizes are at least 2, as at trace time.

    Parameters
    ----------
    claim : Bool
        The guard.
    given : iterable of Bool
        Other relations between sizes that hold at trace time.

    Examples
    --------
    >>> n = var("n", lower=0)
    >>> is_artifact(n >= 2), is_artifact(n >= 3), is_artifact(n * 8 != 8)
    (True, False, True)
    """
    if isinstance(claim, bool | Ne):
        return True
    relations = [g for g in given if len(free_vars(g)) > 1 and g != claim]
    traced = Facts()
    for symbol in frozenset[Var]().union(*map(free_vars, (claim, *relations))):
        traced = traced.with_range(symbol, lower=2)
    for relation in relations:
        traced = traced.assume(relation, origin="guard")
    return is_proved(claim, traced)


def add_fact(facts: Facts, claim: Bool, text: str, given: Iterable[Bool] = ()) -> Facts:
    """Add a guard as a fact with an entry check, unless it is an artifact of tracing."""
    if is_artifact(claim, given):
        return facts
    return facts.assume(claim, origin=Origin(text), discharge=Discharge.ENTRY_CHECK)
