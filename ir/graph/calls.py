"""Whether calls of loop-level, graph-level and library functions fit what they call."""

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
    Var,
    prove,
    substitute,
)
from ..violations import Collector
from . import rules
from .agree import bind_dims, disagreement, rebound
from .memory import Launch, LaunchLibrary
from .nodes import (
    CallDPSLibrary,
    CallGraph,
    CallTIR,
    ConstantRef,
    GraphFunc,
    Operand,
    ScalarLiteral,
    TensorInfo,
    Value,
)


@dataclass(frozen=True, slots=True)
class _Pair:
    """A parameter's annotation and that of its argument; None where that is no tensor."""

    name: str
    formal: TensorInfo
    actual: TensorInfo | None


def _mismatch(pair: _Pair, bound: Mapping[Var, Expr], facts: Facts) -> str:
    """Say why an argument is none for its parameter; empty if it is."""
    if pair.actual is None:
        return "the argument is no tensor"
    formal, actual = pair.formal.shape, pair.actual.shape
    if formal is not None and actual is not None and len(formal) != len(actual):
        return f"rank {len(actual)} is not rank {len(formal)}"
    return disagreement(pair.actual, rebound(pair.formal, bound), facts)


class CallChecker:
    """Checks the calls of one function against the module."""

    def __init__(self, out: Collector, module: Module | None, func: GraphFunc) -> None:
        """Report to ``out``."""
        self._out = out
        self._module = module
        self._read_only = {p.value for p in func.params if p.access == "in"}

    def check(
        self, call: CallTIR | Launch | CallGraph | CallDPSLibrary | LaunchLibrary, facts: Facts
    ) -> None:
        """Check one call."""
        match call:
            case CallTIR() | Launch():
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
            message = f"parameter {operand.name!r} is passed in, and written"
            self._out.report(rules.WRITES, message)

    # ------------------------------------------------------------ kernels

    def _prim(self, name: str) -> PrimFunc | None:
        if self._module is None:
            return None
        found = self._module.functions.get(name)
        if isinstance(found, PrimFunc):
            return found
        known = ", ".join(f.name for f in self._module.prims) or "none"
        message = f"no loop-level function {name!r}; there are {known}"
        self._out.report(rules.CALLEE, message)
        return None

    def _kernel(
        self,
        call: CallTIR | Launch,
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
        words = ("operands", "outputs", "integers")
        odd = [f"{g} {w}, not {n}" for g, n, w in zip(given, wanted, words, strict=True) if g != n]
        message = f"the call of {function!r} has {', '.join(odd)}"
        self._out.report(rules.ARGUMENTS, message)

    def _unify(
        self, function: str, pairs: Sequence[_Pair], bound: dict[Var, Expr], facts: Facts
    ) -> None:
        """Bind the callee's symbols to the arguments' dimensions, then compare all of them."""
        for pair in pairs:
            if pair.actual is not None:
                bind_dims(pair.formal, pair.actual, bound)
        for pair in pairs:
            problem = _mismatch(pair, bound, facts)
            if problem:
                message = f"parameter {pair.name!r} of {function!r}: {problem}"
                self._out.report(rules.SHAPES, message)

    def _expectations(self, expected: Facts, bound: dict[Var, Expr], facts: Facts) -> None:
        for fact in expected:
            if fact.discharge is not Discharge.CALLER or fact.predicate.free - bound.keys():
                continue
            claim = substitute(fact.predicate, dict(bound))
            answer = prove(claim, facts)
            if not isinstance(answer, Proved):
                self._out.report(
                    rules.FACTS, f"{claim} is expected of the caller ({fact.origin}): {answer}"
                )

    # ------------------------------------------------------------ graph functions

    def _graph(self, name: str, args: tuple[Operand, ...], facts: Facts) -> None:
        if self._module is None:
            return
        callee = self._module.functions.get(name)
        if not isinstance(callee, GraphFunc):
            known = ", ".join(f.name for f in self._module.graphs)
            message = f"no graph-level function {name!r}; there are {known}"
            self._out.report(rules.CALLEE, message)
            return
        if len(args) != len(callee.params):
            message = f"the call of {name!r} has {len(args)} operands, not {len(callee.params)}"
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
    """Add a guard; one that can never hold adds nothing."""
    try:
        return facts.assume(guard)
    except ContradictoryFactsError:
        return facts


def _tensor(operand: Operand) -> TensorInfo | None:
    """Give the annotation of a tensor operand; None of anything else."""
    match operand:
        case Value(info=TensorInfo() as info) | ConstantRef(info=info):
            return info
        case ScalarLiteral(dtype=dtype):
            return TensorInfo((), dtype)
        case _:
            return None
