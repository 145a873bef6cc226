"""From the symbols of torch.export to ours: names, ranges, and which guards are facts.

PyTorch traces at sizes of 2 and more and guards what it thereby took for granted. A guard that
follows from all sizes being at least 2 is such an artefact and no fact: sizes of 1 have to run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import TilewrightError
from ..identity import fresh_name
from ..naming import writable
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
    """A size of an exported program is of a form that has no counterpart."""

    title = "Size cannot be imported"


_SIZE = re.compile(r"L\[[^()]*?\](?:\.\w+)*\.size\(\)\[\d+\]")


@dataclass(slots=True)
class TorchSymbols:
    """The symbols of one exported program."""

    names: Mapping[str, str]
    """Source expressions such as ``L['ids'].size()[0]``, with the names of the user's Dims."""

    vars: dict[str, Var] = field(default_factory=dict[str, Var])
    solved: dict[Var, Expr] = field(default_factory=dict[Var, Expr])
    _taken: set[str] = field(default_factory=set[str])

    def declare(self, symbol: str, name: str) -> Var:
        """Make the variable of a symbol, under a name that is free."""
        if symbol not in self.vars:
            chosen = fresh_name(writable(name), self._taken)
            self._taken.add(chosen)
            self.vars[symbol] = var(chosen, lower=0)
        return self.vars[symbol]

    def size(self, size: Any) -> Expr:
        """Translate a size: an integer or a SymInt."""
        if isinstance(size, int):
            return as_expr(size)
        return substitute(self._term(size.node.expr), self.solved)

    def _term(self, term: Any) -> Expr:
        """Translate a sympy term by the names of its classes, so that sympy need not be here."""
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
                    f"a size is {term}, where {kind} has no counterpart",
                    hint="sizes may be sums, products, quotients, minima and maxima",
                )

    # ---------------------------------------------------------------- guards

    def solve(self, guards: Iterable[Bool]) -> None:
        """Write symbols that guards equate to a term as that term."""
        for left, right in _equations(list(guards)):
            self._solve(substitute(left - right, self.solved))

    def _solve(self, difference: Expr) -> None:
        found = list(_solutions(difference))
        if not found:
            return
        # A sum of sizes reads better than a difference, and cannot be negative.
        symbol, value = next((s for s in found if s[1].lower is not None), found[0])
        self.solved = {k: substitute(v, {symbol: value}) for k, v in self.solved.items()}
        self.solved[symbol] = value


def _solutions(difference: Expr) -> Iterable[tuple[Var, Expr]]:
    """Solve ``difference == 0`` for each symbol that it has once, the latest first."""
    for symbol in sorted(free_vars(difference), key=lambda v: -v.serial):
        form = linear_form(difference, (symbol,))
        factor = None if form is None else const_value(form.coefficients.get(symbol, as_expr(0)))
        if form is not None and factor in (1, -1):
            yield symbol, (-form.rest if factor == 1 else form.rest)


def _equations(guards: list[Bool]) -> Iterable[tuple[Expr, Expr]]:
    """Find equations, those stated as two inequalities included."""
    at_most = {g.left - g.right for g in guards if isinstance(g, Le)}
    for guard in guards:
        if isinstance(guard, Eq):
            yield guard.left, guard.right
        if isinstance(guard, Le) and guard.right - guard.left in at_most:
            yield guard.left, guard.right


def parse_guards(texts: Iterable[str], sizes: Mapping[str, Expr]) -> list[Bool]:
    """Read guards, written over source expressions; those about anything but sizes are left out."""
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


def is_artefact(claim: Bool, given: Iterable[Bool] = ()) -> bool:
    """Whether a guard holds by itself, or because sizes at trace time are at least 2.

    ``given`` are relations between sizes that hold at trace time as well.

    Examples
    --------
    >>> n = var("n", lower=0)
    >>> is_artefact(n >= 2), is_artefact(n >= 3), is_artefact(n * 8 != 8)
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
    """State a guard that is checked when the program is entered, unless it is an artefact."""
    if is_artefact(claim, given):
        return facts
    return facts.assume(claim, origin=Origin(text), discharge=Discharge.ENTRY_CHECK)
