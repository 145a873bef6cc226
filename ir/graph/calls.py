"""Checks of calls to loop-level, graph-level and library functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..loop.nodes import BufferParam, PrimFunc
from ..module import Module
from ..symbolic import (
    TRUE,
    Bool,
    ContradictoryFactsError,
    Discharge,
    Expr,
    Facts,
    Proved,
    Refuted,
    Var,
    is_proved,
    negate,
    prove,
    substitute,
)
from ..violations import Collector
from . import rules
from .call_conditions import bound_conditions
from .nodes import (
    CallDPSLibrary,
    CallGraph,
    CallTIR,
    ConstantRef,
    GraphFunc,
    LaunchKernel,
    LaunchLibrary,
    Operand,
    ScalarLiteral,
    TensorInfo,
    Value,
)
from .unify import bind_dims, disagreement, rebound


@dataclass(frozen=True, slots=True)
class _Pair:
    """The annotations of a parameter and of its argument; None if that is not a tensor."""

    name: str
    formal: TensorInfo
    actual: TensorInfo | None


def _mismatch(pair: _Pair, bound: Mapping[Var, Expr], facts: Facts) -> str:
    """Describe why an argument does not match its parameter; empty if it does."""
    if pair.actual is None:
        return "expected a tensor"
    formal, actual = pair.formal.shape, pair.actual.shape
    if formal is not None and actual is not None and len(formal) != len(actual):
        return f"expected rank {len(formal)}, got rank {len(actual)}"
    return disagreement(pair.actual, rebound(pair.formal, bound), facts)


class CallChecker:
    """The checker of the calls in one function."""

    def __init__(self, out: Collector, module: Module | None, func: GraphFunc) -> None:
        """Create a checker that reports to ``out``."""
        self._out = out
        self._module = module
        self._read_only = {p.value for p in func.params if p.access == "in"}

    def check(
        self,
        call: CallTIR | LaunchKernel | CallGraph | CallDPSLibrary | LaunchLibrary,
        facts: Facts,
    ) -> None:
        """Check one call and report its violations."""
        match call:
            case CallTIR() | LaunchKernel():
                self._kernel(call, call.function, call.scalars, TRUE, facts)
                for version in call.versions:
                    self._kernel(call, version.function, version.scalars, version.guard, facts)
            case CallGraph(function=function, args=args):
                self._graph(function, args, facts)
            case LaunchLibrary(outputs=outputs):
                for output in outputs:
                    self._written(output)
            case CallDPSLibrary():
                return

    def _written(self, operand: Operand) -> None:
        if isinstance(operand, ConstantRef):
            self._out.report(rules.WRITES, f"constant {operand.key!r} is written")
        elif isinstance(operand, Value) and operand in self._read_only:
            message = f"parameter {operand.name!r} has access mode 'in' but is written"
            self._out.report(rules.WRITES, message)

    def _prim(self, name: str) -> PrimFunc | None:
        if self._module is None:
            return None
        found = self._module.functions.get(name)
        if isinstance(found, PrimFunc):
            return found
        known = ", ".join(f.name for f in self._module.prims) or "none"
        message = f"no loop-level function {name!r}; loop-level functions are {known}"
        self._out.report(rules.CALLEE, message)
        return None

    def _kernel(
        self,
        call: CallTIR | LaunchKernel,
        function: str,
        scalars: Sequence[Expr],
        guard: Bool,
        facts: Facts,
    ) -> None:
        callee = self._prim(function)
        if callee is None:
            return
        params = [p for p in callee.params if isinstance(p, BufferParam)]
        if isinstance(call, CallTIR):
            taken = [p for p in params if p.access != "out"]
            made = [p for p in params if p.access == "out"]
            outputs: Sequence[TensorInfo] = call.outputs
        else:
            taken, made, outputs = params, [], ()
        given = (len(call.args), len(outputs), len(scalars))
        wanted = (len(taken), len(made), len(callee.scalar_params))
        if given != wanted:
            self._count(function, given, wanted)
            return
        for param, arg in zip(taken, call.args, strict=True):
            if param.access != "in":
                self._written(arg)
        actual = [_tensor(a) for a in call.args] + list(outputs)
        pairs = [
            _Pair(p.buffer.name, TensorInfo(p.buffer.shape, p.buffer.dtype), info)
            for p, info in zip((*taken, *made), actual, strict=True)
        ]
        bound = dict(zip(callee.scalar_params, scalars, strict=True))
        known = _with(facts, guard)
        self._unify(function, pairs, bound, known)
        self._expectations(callee.facts, bound, known)

    def _count(
        self, function: str, given: tuple[int, int, int], wanted: tuple[int, int, int]
    ) -> None:
        words = ("operand", "output", "integer")
        counts = zip(given, wanted, words, strict=True)
        wrong = [
            f"expected {n} {word if n == 1 else f'{word}s'}, got {g}"
            for g, n, word in counts
            if g != n
        ]
        message = f"call of {function!r}: {'; '.join(wrong)}"
        self._out.report(rules.ARGUMENTS, message)

    def _unify(
        self, function: str, pairs: Sequence[_Pair], bound: dict[Var, Expr], facts: Facts
    ) -> None:
        """Bind the symbols of the callee to the dimensions of the arguments, then compare them."""
        for pair in pairs:
            if pair.actual is not None:
                bind_dims(pair.formal, pair.actual, bound)
        for pair in pairs:
            problem = _mismatch(pair, bound, facts)
            if problem:
                message = f"parameter {pair.name!r} of {function!r}: {problem}"
                self._out.report(rules.SHAPES, message)
        for condition in bound_conditions(bound, function):
            if is_proved(negate(condition.claim), facts):
                self._out.report(rules.SHAPES, f"{condition.text} is false for all values")

    def _expectations(self, expected: Facts, bound: dict[Var, Expr], facts: Facts) -> None:
        for fact in expected:
            if fact.discharge is not Discharge.CALLER or fact.predicate.free - bound.keys():
                continue
            claim = substitute(fact.predicate, dict(bound))
            answer = prove(claim, facts)
            if not isinstance(answer, Proved):
                reason = (
                    f"false for {answer}"
                    if isinstance(answer, Refuted)
                    else f"not proved: {answer.missing}"
                )
                self._out.report(
                    rules.FACTS,
                    f"the callee requires {claim} ({fact.origin}), which is {reason}",
                )

    def _graph(self, name: str, args: tuple[Operand, ...], facts: Facts) -> None:
        if self._module is None:
            return
        callee = self._module.functions.get(name)
        if not isinstance(callee, GraphFunc):
            known = ", ".join(f.name for f in self._module.graphs)
            message = f"no graph-level function {name!r}; graph-level functions are {known}"
            self._out.report(rules.CALLEE, message)
            return
        if len(args) != len(callee.params):
            count = len(callee.params)
            noun = "operand" if count == 1 else "operands"
            message = f"call of {name!r}: expected {count} {noun}, got {len(args)}"
            self._out.report(rules.ARGUMENTS, message)
            return
        pairs = [
            _Pair(param.value.name, param.value.info, _tensor(arg))
            for param, arg in zip(callee.params, args, strict=True)
            if isinstance(param.value.info, TensorInfo)
        ]
        bound: dict[Var, Expr] = {}
        self._unify(name, pairs, bound, facts)
        self._expectations(callee.facts, bound, facts)


def _with(facts: Facts, guard: Bool) -> Facts:
    """Add a guard to facts; a guard that contradicts them is ignored."""
    try:
        return facts.assume(guard)
    except ContradictoryFactsError:
        return facts


def _tensor(operand: Operand) -> TensorInfo | None:
    """Return the annotation of a tensor operand; None for other operands."""
    match operand:
        case Value(info=TensorInfo() as info) | ConstantRef(info=info):
            return info
        case ScalarLiteral(dtype=dtype):
            return TensorInfo((), dtype)
        case _:
            return None
