"""Limits of a variable that follow from linear comparisons."""

from __future__ import annotations

from dataclasses import dataclass

from ....ir.symbolic import Bool, Expr, Le, Lt, Var, as_expr, ceildiv, const_value, linear_form


@dataclass(frozen=True, slots=True)
class Limit:
    """The condition ``var < limit`` if ``above``, else ``limit <= var``."""

    limit: Expr
    above: bool


def solve(guard: Bool, var: Var) -> Limit | None:
    """Solve a comparison for a variable; None unless it is linear with a constant coefficient."""
    if not isinstance(guard, Lt | Le) or var not in guard.free:
        return None
    slack = guard.right - guard.left - (1 if isinstance(guard, Lt) else 0)
    form = linear_form(slack, (var,))
    if form is None:
        return None
    factor = const_value(form.coefficients[var])
    if not factor:
        return None
    if factor < 0:
        return Limit(form.rest // as_expr(-factor) + 1, above=True)
    return Limit(ceildiv(-form.rest, factor), above=False)
