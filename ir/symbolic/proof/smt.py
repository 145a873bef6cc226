"""The z3 prover, for claims with products and symbolic divisors, with a resource limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base import Expr, Term, Var
from ..predicates import And, BoolConst, Cmp, Eq, Ne, Or
from ..terms import Add, Const, FloorDiv, Max, Min, Mod, Mul, Select
from ..traverse import postorder
from .answer import Proof, Proved, Refuted
from .goal import Goal

if TYPE_CHECKING:
    import z3

_RESOURCES_PER_MS = 2_000
_SIZE_LIMIT = 1_000


def decide(goal: Goal, budget_ms: int) -> Proof | None:
    """Prove or refute a goal; None if z3 cannot decide it within its resource limit."""
    import z3

    roots = [goal.reduced, *goal.remaining]
    if sum(len(postorder(root)) for root in roots) > _SIZE_LIMIT:
        return None
    context = z3.Context()  # a context in use has other heuristics after other goals
    solver = z3.Solver(ctx=context)
    solver.set("rlimit", budget_ms * _RESOURCES_PER_MS)
    translation = _Translation(context)
    claim, *facts = [translation.condition(root) for root in roots]
    solver.add(z3.Not(claim), *facts, *translation.side)
    outcome = solver.check()
    if outcome == z3.unsat:
        return Proved("z3")
    if outcome != z3.sat:
        return None
    model = solver.model()
    values = {
        v: model.eval(translation.symbol(v), model_completion=True).as_long() for v in goal.unknowns
    }
    found = goal.counterexample(values)
    return None if found is None else Refuted(found)


class _Translation:
    """Terms as z3 formulas; ``side`` collects constraints of symbols and divisors.

    Symbols are numbered by first occurrence, because z3's search depends on the names of constants:
    the answer must not depend on how many other symbols were created, or on how they are called.
    """

    def __init__(self, context: z3.Context) -> None:
        self.context = context
        self.done: dict[Term, z3.ExprRef] = {}
        self.symbols = 0
        self.side: list[z3.BoolRef] = []

    def condition(self, root: Term) -> z3.BoolRef:
        for term in postorder(root, self.done.__contains__):
            if term not in self.done:
                self.done[term] = self.formula(term)
        return self.truth(root)

    def truth(self, term: Term) -> z3.BoolRef:
        import z3

        found = self.done[term]
        assert isinstance(found, z3.BoolRef)  # noqa: S101 - conditions give formulas
        return found

    def integer(self, term: Term) -> z3.ArithRef:
        import z3

        found = self.done[term]
        assert isinstance(found, z3.ArithRef)  # noqa: S101 - integers give arithmetic
        return found

    def symbol(self, v: Var) -> z3.ArithRef:
        """Return the z3 constant of a symbol; its declared range is added to ``side``."""
        import z3

        if v not in self.done:
            unknown = z3.Int(f"x{self.symbols}", self.context)
            self.symbols += 1
            self.done[v] = unknown
            if v.lower is not None:
                self.side.append(unknown >= v.lower)
            if v.upper is not None:
                self.side.append(unknown <= v.upper)
            if v.multiple_of > 1:
                self.side.append(unknown % v.multiple_of == 0)
        return self.integer(v)

    def formula(self, term: Term) -> z3.ExprRef:
        import z3

        match term:
            case Var():
                return self.symbol(term)
            case Const(value):
                return z3.IntVal(value, self.context)
            case BoolConst(value):
                return z3.BoolVal(value, self.context)
            case Add(terms, constant):
                zero = z3.IntVal(constant, self.context)
                return sum([c * self.integer(t) for t, c in terms], zero)
            case Mul(factors):
                result = self.integer(factors[0])
                for factor in factors[1:]:
                    result = result * self.integer(factor)
                return result
            case FloorDiv() | Mod():
                return self.division(term)
            case _:
                return self.choice(term)

    def division(self, term: FloorDiv | Mod) -> z3.ArithRef:
        """Express floor division by z3's division, whose remainder is never negative."""
        import z3

        a, d = self.integer(term.numerator), self.integer(term.divisor)
        self.side.append(d != 0)
        if _positive(term.divisor):
            return a / d if isinstance(term, FloorDiv) else a % d
        if isinstance(term, FloorDiv):
            return z3.If(d > 0, a / d, (-a) / (-d))
        return z3.If(d > 0, a % d, -((-a) % (-d)))

    def choice(self, term: Term) -> z3.ExprRef:
        import z3

        match term:
            case Min(args) | Max(args):
                result = self.integer(args[0])
                for arg in map(self.integer, args[1:]):
                    smaller = result <= arg
                    first = smaller if isinstance(term, Min) else z3.Not(smaller)
                    result = z3.If(first, result, arg)
                return result
            case Select(p, a, b):
                return z3.If(self.truth(p), self.integer(a), self.integer(b))
            case Cmp():
                delta = self.integer(term.delta)
                if isinstance(term, (Eq, Ne)):
                    return delta == 0 if isinstance(term, Eq) else delta != 0
                return delta <= 0
            case And(args):
                return z3.And(*map(self.truth, args))
            case Or(args):
                return z3.Or(*map(self.truth, args))
            case _:
                raise TypeError(f"unknown kind of term: {type(term).__name__}")


def _positive(e: Expr) -> bool:
    return e.lower is not None and e.lower >= 0
