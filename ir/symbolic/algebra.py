"""Conversion to sympy, for LaTeX output and for solving equations; slow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .base import Bool, Expr, Term, Var
from .errors import UnsolvableEquationError
from .predicates import And, BoolConst, Cmp, Eq, Or
from .terms import Add, Const, FloorDiv, Max, Min, Mod, Mul, Select, factors_of, linear_terms
from .traverse import postorder


def to_sympy(e: Expr | Bool) -> tuple[Any, Mapping[Var, Any]]:
    """Convert a term to a sympy expression; return it with the sympy symbol of each symbol.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> n = var("n")
    >>> formula, symbols = to_sympy(n // 4 + 2 * n)
    >>> formula.subs(symbols[n], 9)
    20
    """
    import sympy

    symbols = {
        v: sympy.Dummy(
            v.name, integer=True, nonnegative=True if v.lower is not None and v.lower >= 0 else None
        )
        for v in sorted(e.free, key=lambda v: v.serial)
    }
    done: dict[Term, Any] = {**symbols}
    for term in postorder(e):
        if term not in done:
            done[term] = _formula(term, done)
    return done[e], symbols


def _formula(term: Term, done: Mapping[Term, Any]) -> Any:
    import sympy

    match term:
        case Const(value):
            return sympy.Integer(value)
        case Add(terms, constant):
            return sympy.Add(*[c * done[t] for t, c in terms], constant)
        case Mul(factors):
            return sympy.Mul(*[done[f] for f in factors])
        case FloorDiv(a, d):
            return sympy.floor(done[a] / done[d])
        case Mod(a, d):
            return sympy.Mod(done[a], done[d])
        case Min(args):
            return sympy.Min(*[done[arg] for arg in args])
        case Max(args):
            return sympy.Max(*[done[arg] for arg in args])
        case Select(p, a, b):
            return sympy.Piecewise((done[a], done[p]), (done[b], True))
        case _:
            return _condition(term, done)


def _condition(term: Term, done: Mapping[Term, Any]) -> Any:
    import sympy

    match term:
        case BoolConst(value):
            return sympy.true if value else sympy.false
        case Cmp():
            kind: Callable[[Any, Any], Any] = getattr(sympy, type(term).__name__)
            return kind(_side(term.left, done), _side(term.right, done))
        case And(args):
            return sympy.And(*[done[arg] for arg in args])
        case Or(args):
            return sympy.Or(*[done[arg] for arg in args])
        case _:
            raise TypeError(f"unknown kind of term: {type(term).__name__}")


def _side(e: Expr, done: Mapping[Term, Any]) -> Any:
    """Return a side of a comparison as a sympy expression."""
    import sympy

    terms, constant = linear_terms(e)
    return sympy.Add(*[c * done[t] for t, c in terms], constant)


def latex(e: Expr | Bool) -> str:
    r"""Return a term as LaTeX, for the user interface.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> latex(var("n") // 4)
    '\\left\\lfloor{\\frac{n}{4}}\\right\\rfloor'
    """
    import sympy

    formula, _ = to_sympy(e)
    return str(sympy.latex(formula))


def solve_for(equation: Bool, symbol: Var) -> Expr:
    """Solve an equation between sums of products for one symbol.

    Parameters
    ----------
    equation : Bool
        An `Eq`.
    symbol : Var
        The symbol to solve for.

    Raises
    ------
    UnsolvableEquationError
        If the condition is not an equation, or has no unique solution as an integer term.

    Examples
    --------
    >>> from tilewright.ir.symbolic import eq, var
    >>> n, m = var("n"), var("m")
    >>> solve_for(eq(2 * m, 2 * n + 6), m)
    n + 3
    """
    import sympy

    if not isinstance(equation, Eq):
        raise _unsolvable(equation, symbol, "it is not an equation")
    atoms = _atoms(equation.delta)
    nested = next((a for a in atoms if symbol in a.free and a is not symbol), None)
    if symbol not in atoms or nested is not None:
        reason = "the symbol does not occur" if nested is None else f"it occurs inside '{nested}'"
        raise _unsolvable(equation, symbol, reason)
    unknowns = {atom: sympy.Dummy(f"a{i}", integer=True) for i, atom in enumerate(atoms)}
    polynomial = _polynomial(equation.delta, unknowns)
    solutions: list[Any] = sympy.solve(polynomial, unknowns[symbol])
    if len(solutions) != 1 or not solutions[0].is_rational_function(*unknowns.values()):
        count = len(solutions)
        several = f"it has {count} solutions, expected 1"
        irrational = "its solution is not a quotient of polynomials"
        raise _unsolvable(equation, symbol, irrational if count == 1 else several)
    numerator, denominator = sympy.fraction(sympy.together(solutions[0]))
    return _term(numerator, unknowns) // _term(denominator, unknowns)


def _unsolvable(equation: Bool, symbol: Var, reason: str) -> UnsolvableEquationError:
    return UnsolvableEquationError(
        f"cannot solve '{equation}' for '{symbol.name}': {reason}",
        hint="pass an equation between sums of products that has one solution",
    )


def _atoms(e: Expr) -> list[Expr]:
    """Return the distinct factors of all terms, in order."""
    factors = [f for term, _ in linear_terms(e)[0] for f in factors_of(term)]
    return sorted(set(factors), key=lambda f: f.order)


def _polynomial(e: Expr, unknowns: Mapping[Expr, Any]) -> Any:
    import sympy

    terms, constant = linear_terms(e)
    products = [c * sympy.Mul(*[unknowns[f] for f in factors_of(t)]) for t, c in terms]
    return sympy.Add(*products, constant)


def _term(polynomial: Any, unknowns: Mapping[Expr, Any]) -> Expr:
    """Convert a sympy polynomial with integer coefficients to a term."""
    import sympy

    atoms = list(unknowns)
    result: Expr = Const(0)
    for powers, coefficient in sympy.Poly(polynomial, *unknowns.values()).terms():
        part: Expr = Const(int(coefficient))
        for atom, power in zip(atoms, powers, strict=True):
            for _ in range(power):
                part = part * atom
        result = result + part
    return result
