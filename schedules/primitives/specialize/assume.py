"""The ``assume`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.graph.nodes import CallGraph, CallTIR, GraphFunc, LaunchKernel
from ....ir.graph.visit import all_bindings
from ....ir.loop.nodes import PrimFunc
from ....ir.symbolic import (
    TRUE,
    Bool,
    ContradictoryFactsError,
    Discharge,
    Expr,
    Facts,
    Origin,
    Var,
    all_of,
    eq,
    free_vars,
    is_proved,
    negate,
    simplify,
    substitute,
    to_text,
)
from ...apply import Primitive, Rewrite
from ...handles import FunctionRef, Handle
from ...kernels import call_symbols, symbols_of
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ..graph._functions import prim_problem


@primitive(family="specialize", returns=None)
@dataclass(frozen=True, slots=True)
class Assume(Primitive):
    """Assume a range or a divisor of a symbol, and check it whenever the function is entered.

    Before::

        def matmul(A: Buffer[(m, 512), f32], ...): ...

    After (``symbol="m", multiple_of=16``)::

        def matmul(A: Buffer[(m, 512), f32], ...):
            fact(m % 16 == 0)

    Parameters
    ----------
    function : FunctionRef
        The loop-level function.
    symbol : str
        The name of one of its symbols.
    multiple_of : int
        A divisor of the symbol.
    lower : int or None
        The least value of the symbol; None for no bound.
    upper : int or None
        The greatest value of the symbol; None for no bound.

    Notes
    -----
    Later proofs use the fact: predicates that follow from it are removed, and intrinsics that need
    full tiles match. A call with another value raises an error that quotes the fact; ``specialize``
    adds a version with a fallback instead. Cost: one comparison per call.

    Names elsewhere: TVM: none (``T.assume`` adds a fact without a check); Halide
    ``add_requirement``.

    References
    ----------
    DISC (EuroMLSys '21), §4.2 (shape constraints).

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... n = symbols("n", lower=1)
    ... @graph_func
    ... def main(x: Tensor[(n, 8), f32]):
    ...     y = relu(x)
    ...     return y
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> (relu,) = sch.legalize()
    >>> sch.assume(relu, "n", multiple_of=16)
    >>> print(sch.module.prim("relu").facts)
    n % 16 == 0 (assumed: n % 16 == 0; entry check)
    """

    class Requires(Requirement):
        """The requirements of ``assume``."""

        LOOP_LEVEL = "the function is loop-level"
        SYMBOL_EXISTS = "the function has a symbol of that name"
        NEW_FACT = (
            "the new fact is not implied by the facts of the function, and does not contradict them"
        )
        CHECKABLE = (
            "every caller can check the fact at entry: its calls are in the dataflow stage and "
            "have no versions, no other function calls it, and the value of the symbol is a term "
            "over the symbols of its parameters"
        )

    function: FunctionRef
    symbol: str
    multiple_of: int = 1
    lower: int | None = None
    upper: int | None = None

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the function and the symbol."""
        wrong = list(prim_problem(state, self.function, self.Requires.LOOP_LEVEL))
        yield from wrong
        if wrong:
            return
        symbols = {v.name for v in symbols_of(state.module.prim(self.function.function))}
        if self.symbol not in symbols:
            names = ", ".join(sorted(symbols)) or "none"
            yield Problem(
                self.Requires.SYMBOL_EXISTS,
                f"no symbol {self.symbol!r}; symbols of {self.function.function!r} are {names}",
                (self.function,),
            )
        elif not self._text():
            yield Problem(
                self.Requires.NEW_FACT,
                f"no fact of {self.symbol!r} is given; expected multiple_of, lower or upper",
                (self.function,),
            )
        elif self.multiple_of < 1:
            yield Problem(
                self.Requires.NEW_FACT,
                f"multiple_of must be at least 1, not {self.multiple_of}",
                (self.function,),
            )

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that the fact is new and consistent, and that callers can check it."""
        function = state.module.prim(self.function.function)
        claim = self._claim(self._symbol(function))
        if claim is TRUE or is_proved(claim, function.facts):
            yield Problem(
                self.Requires.NEW_FACT,
                f"{self._text()} already follows from the facts of the function",
                (self.function,),
            )
            return
        if is_proved(negate(claim), function.facts) or _with(function.facts, claim, "") is None:
            message = f"{self._text()} contradicts the facts of the function"
            yield Problem(self.Requires.NEW_FACT, message, (self.function,))
            return
        for graph in state.module.graphs:
            yield from self._caller(state, graph, function, claim)

    def _caller(
        self, state: State, graph: GraphFunc, function: PrimFunc, claim: Bool
    ) -> Iterator[Problem]:
        where = (self.function, FunctionRef(graph.name))
        message = _uncheckable(state, graph, function.name)
        if message is not None:
            yield Problem(self.Requires.CHECKABLE, message, where)
            return
        known = {v for p in graph.params for v in _symbols(p.value.info)}
        for wanted in _claims(graph, function, claim):
            foreign = free_vars(wanted) - known
            if foreign:
                names = ", ".join(sorted(v.name for v in foreign))
                yield Problem(
                    self.Requires.CHECKABLE,
                    f"{graph.name!r} must check {to_text(wanted)} at entry, but {names} is not a "
                    "symbol of its parameters",
                    where,
                )
            elif _with(graph.facts, wanted, "") is None:
                message = f"{to_text(wanted)} contradicts the facts of {graph.name!r}"
                yield Problem(self.Requires.CHECKABLE, message, where)

    def _symbol(self, function: PrimFunc) -> Var:
        return next(v for v in symbols_of(function) if v.name == self.symbol)

    def _claim(self, size: Expr) -> Bool:
        parts: list[Bool] = []
        if self.multiple_of > 1:
            parts.append(eq(size % self.multiple_of, 0))
        if self.lower is not None:
            parts.append(size >= self.lower)
        if self.upper is not None:
            parts.append(size <= self.upper)
        return simplify(all_of(*parts), Facts())

    def _text(self) -> str:
        """Return the new fact before simplification; empty if there is none."""
        parts = [f"{self.symbol} % {self.multiple_of} == 0"] if self.multiple_of != 1 else []
        parts += [f"{self.symbol} >= {self.lower}"] if self.lower is not None else []
        parts += [f"{self.symbol} <= {self.upper}"] if self.upper is not None else []
        return " and ".join(parts)

    def rewrite(self, state: State) -> Rewrite:
        """Add the fact to the function, and the substituted fact of each call to its caller."""
        function = state.module.prim(self.function.function)
        claim = self._claim(self._symbol(function))
        changed: list[PrimFunc | GraphFunc] = [_assumed(function, claim)]
        for graph in state.module.graphs:
            claims = _claims(graph, function, claim)
            new = [c for c in claims if not is_proved(c, graph.facts)]
            if new:
                changed.append(_assumed(graph, all_of(*new)))
        return Rewrite(state.module.with_functions(*changed))

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield each symbol as a multiple of 16, the tile size of most intrinsics."""
        found = state.module.functions.get(selection.function)
        if isinstance(found, PrimFunc) and isinstance(selection, FunctionRef):
            for symbol in sorted(symbols_of(found), key=lambda v: v.serial):
                yield cls(FunctionRef(found.name), symbol.name, 16)


def _with(facts: Facts, claim: Bool, by: str) -> Facts | None:
    """Return facts with a claim added, or None if they contradict it."""
    try:
        return facts.assume(claim, origin=Origin(by), discharge=Discharge.ENTRY_CHECK)
    except ContradictoryFactsError:
        return None


def _assumed(function: PrimFunc | GraphFunc, claim: Bool) -> PrimFunc | GraphFunc:
    facts = _with(function.facts, claim, f"assumed: {to_text(claim)}")
    if facts is None:
        raise TypeError(f"{to_text(claim)} contradicts the facts of {function.name!r}")
    return replace(function, facts=facts)


def _symbols(info: object) -> frozenset[Var]:
    """Return the symbols that a parameter's annotation binds."""
    shape: tuple[Expr, ...] = getattr(info, "shape", None) or ()
    value = getattr(info, "value", None)
    dims = (*shape, *((value,) if isinstance(value, Expr) else ()))
    return frozenset(v for d in dims for v in free_vars(d))


def _uncheckable(state: State, graph: GraphFunc, name: str) -> str | None:
    """Return why a caller cannot check a fact of a kernel at its own entry, else None."""
    called = False
    for binding in all_bindings(graph.bindings):
        match binding.right:
            case LaunchKernel(function=function, versions=versions) if name == function or any(
                v.function == name for v in versions
            ):
                return f"{graph.name!r} launches {name!r} in the memory stage"
            case CallTIR(function=function, versions=versions):
                if versions and name in (function, *(v.function for v in versions)):
                    return f"{binding.value.name!r} in {graph.name!r} calls {name!r} with versions"
                called |= function == name
            case _:
                pass
    others = (b for g in state.module.graphs for b in all_bindings(g.bindings))
    calls = (b.right for b in others if isinstance(b.right, CallGraph))
    if called and any(c.function == graph.name for c in calls):
        return f"{name!r} is called in {graph.name!r}, which another function calls"
    return None


def _claims(graph: GraphFunc, function: PrimFunc, claim: Bool) -> tuple[Bool, ...]:
    """Return the fact in terms of the symbols of the caller, for each call."""
    calls = [
        b.right
        for b in all_bindings(graph.bindings)
        if isinstance(b.right, CallTIR) and b.right.function == function.name
    ]
    found = (substitute(claim, call_symbols(function, c)) for c in calls)
    return tuple(dict.fromkeys(c for c in found if c is not TRUE))
