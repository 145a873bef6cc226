"""The ``specialize`` primitive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import lcm

from ....ir.graph.nodes import Binding, CallTIR, KernelVersion
from ....ir.graph.regions import replace_bindings
from ....ir.identity import fresh_name
from ....ir.loop.nodes import PrimFunc
from ....ir.symbolic import (
    FALSE,
    TRUE,
    Bool,
    ContradictoryFactsError,
    Facts,
    SymInt,
    Var,
    all_of,
    as_expr,
    eq,
    substitute,
    var,
)
from ...apply import Primitive, Rewrite
from ...handles import FunctionRef, Handle
from ...kernels import call_symbols, symbols_of
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ...substitution import specialization_problems, with_symbols
from ..graph._functions import choosing_calls_problem, prim_problem


@primitive(family="specialize", returns=FunctionRef)
@dataclass(frozen=True, slots=True)
class Specialize(Primitive):
    """Specialize a kernel for a range of one symbol, as a version that calls choose by a guard.

    Before::

        y = call_tir(matmul, x, w)

    After (``symbol="m", lower=1, upper=1``)::

        y = call_tir(matmul, x, w, versions=(when(b * s == 1, matmul_m1),))

    Parameters
    ----------
    function : FunctionRef
        The loop-level function, which remains the fallback.
    symbol : str
        The name of one of its symbols.
    lower : int or None
        The least value of the symbol in the version; None for no bound.
    upper : int or None
        The greatest value of the symbol in the version; None for no bound.
    multiple_of : int
        A divisor of the symbol in the version.

    Notes
    -----
    In the version, the symbol is a constant if the range is a single value; otherwise it has the
    range and the divisor, which proofs use. The result is the handle of the version. Cost: one more
    kernel to compile, and one comparison per call.

    Names elsewhere: TVM: none (``PrimFunc.specialize`` substitutes parameters without a guard);
    Halide ``specialize``.

    References
    ----------
    DISC (EuroMLSys '21), §4.3 (guarded versions).

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
    >>> sch.specialize(relu, "n", lower=1, upper=1).function
    'relu_n1'
    """

    class Requires(Requirement):
        """The requirements of ``specialize``."""

        LOOP_LEVEL = "the function is loop-level"
        SYMBOL_EXISTS = "the function has a symbol of that name"
        PROPER_RANGE = (
            "the range contains a value that the symbol can have, and excludes another one"
        )
        CHOOSING_CALLS = (
            "the calls of the function can choose a version: none is in the memory stage or in a "
            "group of ``fuse_ops``, and the function is not itself a version of another kernel; "
            "calls in branches and loops may choose"
        )

    function: FunctionRef
    symbol: str
    lower: int | None = None
    upper: int | None = None
    multiple_of: int = 1

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the function, the symbol and the range."""
        wrong = list(prim_problem(state, self.function, self.Requires.LOOP_LEVEL))
        yield from wrong
        if wrong:
            return
        symbols = {v.name: v for v in symbols_of(state.module.prim(self.function.function))}
        if self.symbol not in symbols:
            names = ", ".join(sorted(symbols)) or "none"
            yield Problem(
                self.Requires.SYMBOL_EXISTS,
                f"no symbol {self.symbol!r}; symbols of {self.function.function!r} are {names}",
                (self.function,),
            )
            return
        wrong = [*self._range(symbols[self.symbol])]
        yield from wrong or self._contradicted(state, symbols[self.symbol])
        yield from choosing_calls_problem(state, self.function, self.Requires.CHOOSING_CALLS)

    def _range(self, symbol: Var) -> Iterator[Problem]:
        lows = [x for x in (self.lower, symbol.lower) if x is not None]
        highs = [x for x in (self.upper, symbol.upper) if x is not None]
        step = lcm(max(self.multiple_of, 1), symbol.multiple_of)
        first = -(-max(lows) // step) * step if lows else None
        empty = first is not None and bool(highs) and first > min(highs)
        if self.multiple_of < 1 or empty:
            yield Problem(
                self.Requires.PROPER_RANGE,
                f"no value of {symbol.name!r} (lower={symbol.lower}, upper={symbol.upper}) "
                f"satisfies lower={self.lower}, upper={self.upper}, multiple_of={self.multiple_of}",
                (self.function,),
            )
        elif not self._excludes(symbol):
            message = (
                f"the range includes every value of {symbol.name!r}; expected it to exclude one"
            )
            yield Problem(self.Requires.PROPER_RANGE, message, (self.function,))

    def _contradicted(self, state: State, symbol: Var) -> Iterator[Problem]:
        """Yield a problem for each fact that no value in the range satisfies, and for the code."""
        function = state.module.prim(self.function.function)
        new = {symbol: self._replacement(symbol)}
        message = _contradiction(function.facts, new)
        if message is not None:
            yield Problem(self.Requires.PROPER_RANGE, message, (self.function,))
        for reason in specialization_problems(function, new):
            yield Problem(self.Requires.PROPER_RANGE, f"in the version, {reason}", (self.function,))

    def _excludes(self, symbol: Var) -> bool:
        """Return whether some value of the symbol is outside of the range of the version."""
        below = self.lower is not None and (symbol.lower is None or symbol.lower < self.lower)
        above = self.upper is not None and (symbol.upper is None or symbol.upper > self.upper)
        return below or above or symbol.multiple_of % self.multiple_of != 0

    def rewrite(self, state: State) -> Rewrite:
        """Add the version to the module and to every call."""
        old = state.module.prim(self.function.function)
        symbol = next(v for v in symbols_of(old) if v.name == self.symbol)
        name = fresh_name(f"{old.name}_{self._suffix()}", set(state.module.functions))
        version = with_symbols(old, name, {symbol: self._replacement(symbol)})
        module = state.module.with_functions(version)
        for graph in state.module.graphs:
            bindings = replace_bindings(
                graph.bindings, lambda b: (self._updated(b, old, name, symbol),)
            )
            module = module.with_functions(replace(graph, bindings=bindings))
        return Rewrite(module, (FunctionRef(name),))

    def _suffix(self) -> str:
        if self.lower is not None and self.lower == self.upper:
            return f"{self.symbol}{self.lower}"
        parts = [self.symbol]
        parts += [f"ge{self.lower}"] if self.lower is not None else []
        parts += [f"le{self.upper}"] if self.upper is not None else []
        parts += [f"x{self.multiple_of}"] if self.multiple_of != 1 else []
        return "_".join(parts)

    def _replacement(self, symbol: Var) -> SymInt:
        if self.lower is not None and self.lower == self.upper:
            return self.lower
        lows = [x for x in (self.lower, symbol.lower) if x is not None]
        highs = [x for x in (self.upper, symbol.upper) if x is not None]
        new = var(
            symbol.name,
            lower=max(lows) if lows else None,
            upper=min(highs) if highs else None,
            multiple_of=lcm(self.multiple_of, symbol.multiple_of),
        )
        return new.lower if new.lower is not None and new.lower == new.upper else new

    def _guard(self, symbol: Var, size: SymInt) -> Bool:
        term, new = as_expr(size), self._replacement(symbol)
        if not isinstance(new, Var):
            return eq(term, new)
        parts: list[Bool] = []
        if self.lower is not None:
            parts.append(term >= self.lower)
        if self.upper is not None:
            parts.append(term <= self.upper)
        if self.multiple_of != 1:
            parts.append(eq(term % self.multiple_of, 0))
        return all_of(*parts)

    def _updated(self, binding: Binding, old: PrimFunc, name: str, symbol: Var) -> Binding:
        """Return a binding with the version added to its call."""
        right = binding.right
        if isinstance(right, CallTIR) and right.function == old.name:
            return self._with_version(binding, right, old, name, symbol)
        return binding

    def _with_version(
        self, binding: Binding, call: CallTIR, old: PrimFunc, name: str, symbol: Var
    ) -> Binding:
        terms = call_symbols(old, call)
        guard = self._guard(symbol, substitute(symbol, terms))
        if guard is FALSE:
            return binding
        kept = [(v, s) for v, s in zip(old.scalar_params, call.scalars, strict=True)]
        fixed = not isinstance(self._replacement(symbol), Var)
        scalars = tuple(s for v, s in kept if v is not symbol or not fixed)
        if guard is TRUE and not call.versions:
            return replace(binding, right=replace(call, function=name, scalars=scalars))
        versions = (*call.versions, KernelVersion(guard, name, scalars))
        return replace(binding, right=replace(call, versions=versions))

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield a version for each symbol equal to 1, the common case of decoding."""
        found = state.module.functions.get(selection.function)
        if isinstance(found, PrimFunc):
            for symbol in sorted(symbols_of(found), key=lambda v: v.serial):
                yield cls(FunctionRef(found.name), symbol.name, 1, 1)


def _contradiction(facts: Facts, new: Mapping[Var, SymInt]) -> str | None:
    """Return which facts contradict each other after a replacement of symbols; None if none do."""
    found = Facts()
    for fact in facts:
        predicate = substitute(fact.predicate, new)
        if predicate is FALSE:
            return f"the range has no value for which {fact.predicate} holds ({fact.origin})"
        try:
            found = found.assume(predicate, origin=fact.origin, discharge=fact.discharge)
        except ContradictoryFactsError:
            older = found.about(predicate.free)
            others = " and ".join(f"{f.predicate} ({f.origin})" for f in older) or "the range"
            return (
                f"the range has no value for which {fact.predicate} holds ({fact.origin}): in the "
                f"version, it contradicts {others}"
            )
    return None
