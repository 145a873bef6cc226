"""Translation of torch.export symbols: names, ranges, and guards.

PyTorch traces at sizes of 2 or more and adds guards for the resulting specializations. A guard
that follows from all sizes being at least 2 is an artifact of tracing, not a fact: the imported
program must also run at size 1.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

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


_LARGEST_DENOMINATOR: Final = 2**20
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
    """Parse guards over source expressions.

    Guards about constant inputs and strides are ignored: constant inputs are not parameters, and
    the tensors of parameters are compact.

    Raises
    ------
    SymbolicDimensionError
        If a guard about a size is not a relation between terms.
    """
    found: list[Bool] = []
    symbols = {f"size{k}": sizes[s] for k, s in enumerate(sizes)}
    numbered = {s: f"size{k}" for k, s in enumerate(sizes)}
    for text in texts:
        replaced = _SIZE.sub(lambda m: numbered.get(m.group(), m.group()), text)
        guard = _parse(replaced, symbols)
        if guard is None:
            guard = _parse(integral(replaced), symbols)
        if guard is not None:
            found.append(guard)
        elif replaced != text or _SIZE.search(text):
            raise SymbolicDimensionError(
                f"the exported program requires {text}, which is not supported",
                where="guards of the exported program",
                hint="compare sizes by sums, products, floor division, modulo, min, and max of "
                "integers, or make the dimension static",
            )
    return found


def integral(text: str) -> str:
    """Return a guard with exact fractions of sizes as a guard over integers.

    A float factor is converted if its denominator is a power of 2 of at most 2**20, so that
    products with sizes below 2**33 are exact.

    Examples
    --------
    >>> integral("size0 / 2 > 2.0"), integral("1.5 * torch.sym_float(size0) <= size1")
    ('size0 > 4', '3 * size0 <= size1 * 2')
    >>> integral("size1 == math.trunc(1.5 * torch.sym_float(size0))")
    'size1 == 3 * size0 // 2'
    >>> integral("size0 * 0.1 > 2.0")
    'size0 * 0.1 > 2.0'
    """
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        return text
    return ast.unparse(_Integral().visit(tree))


class _Integral(ast.NodeTransformer):
    """Multiplies both sides of comparisons by their common denominator."""

    def visit_Compare(self, node: ast.Compare) -> ast.expr:  # the name of ast
        sides = [_fraction(side) for side in (node.left, *node.comparators)]
        known = [side for side in sides if side is not None]
        if len(known) != len(sides):
            return node
        common = math.lcm(*(denominator for _, denominator in known))
        left, *others = [_times(term, common // below) for term, below in known]
        return ast.Compare(left, node.ops, others)


def _fraction(node: ast.expr) -> tuple[ast.expr, int] | None:
    """Return a numerator and a positive denominator that are exactly a term; None if unknown."""
    match node:
        case ast.Name() | ast.Constant(value=int()):
            return node, 1
        case ast.Constant(value=float() as value) if math.isfinite(value):
            above, below = value.as_integer_ratio()
            return (ast.Constant(above), below) if below <= _LARGEST_DENOMINATOR else None
        case ast.Call(func=ast.Attribute(attr="sym_float"), args=[inner]):
            return _fraction(inner)
        case ast.Call(func=ast.Attribute(attr="trunc" | "floor" as name), args=[inner]):
            return _rounded(name, _fraction(inner))
        case ast.BinOp(left=left, op=op, right=right):
            return _operation(_fraction(left), op, _fraction(right))
        case _:
            return None


def _rounded(name: str, value: tuple[ast.expr, int] | None) -> tuple[ast.expr, int] | None:
    """Return a fraction that is rounded down, or toward zero if it cannot be negative."""
    if value is None or value[1] == 1:
        return value
    term, below = value
    if name == "trunc" and any(isinstance(n, ast.Sub | ast.USub) for n in ast.walk(term)):
        return None
    return ast.BinOp(term, ast.FloorDiv(), ast.Constant(below)), 1


def _operation(
    left: tuple[ast.expr, int] | None, op: ast.operator, right: tuple[ast.expr, int] | None
) -> tuple[ast.expr, int] | None:
    if left is None or right is None:
        return None
    (a, under_a), (b, under_b) = left, right
    match op, b:
        case ast.Add() | ast.Sub(), _:
            common = math.lcm(under_a, under_b)
            scaled = (_times(a, common // under_a), _times(b, common // under_b))
            return ast.BinOp(scaled[0], op, scaled[1]), common
        case ast.Mult(), _:
            return ast.BinOp(a, op, b), under_a * under_b
        case ast.Div(), ast.Constant(value=int() as divisor) if divisor > 0:
            return _times(a, under_b), under_a * divisor
        case ast.FloorDiv() | ast.Mod(), _ if under_a == under_b == 1:
            return ast.BinOp(a, op, b), 1
        case _:
            return None


def _times(term: ast.expr, factor: int) -> ast.expr:
    return term if factor == 1 else _product(term, factor)


def _product(term: ast.expr, factor: int) -> ast.expr:
    if isinstance(term, ast.Constant) and isinstance(term.value, int):
        return ast.Constant(term.value * factor)
    return ast.BinOp(term, ast.Mult(), ast.Constant(factor))


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
    >>> from ..symbolic import ne
    >>> n = var("n", lower=0)
    >>> is_artifact(n >= 2), is_artifact(n >= 3), is_artifact(ne(n * 8, 8))
    (True, False, True)
    >>> is_artifact(ne(n // 2, 1)), is_artifact(ne(n, 7))
    (True, False)
    """
    if isinstance(claim, Ne) and _is_specialization(claim):
        return True
    relations = [g for g in given if len(free_vars(g)) > 1 and g != claim]
    traced = Facts()
    for symbol in frozenset[Var]().union(*map(free_vars, (claim, *relations))):
        traced = traced.with_range(symbol, lower=2)
    for relation in relations:
        traced = traced.assume(relation, origin="guard")
    return is_proved(claim, traced)


def _is_specialization(claim: Ne) -> bool:
    """Return whether a relation excludes a size of 0 or 1, or compares two sizes."""
    return const_value(claim.right) in (None, 0, 1)


def add_fact(facts: Facts, claim: Bool, text: str, given: Iterable[Bool] = ()) -> Facts:
    """Add a guard as a fact with an entry check, unless it is an artifact of tracing."""
    if is_artifact(claim, given):
        return facts
    return facts.assume(claim, origin=Origin(text), discharge=Discharge.ENTRY_CHECK)
