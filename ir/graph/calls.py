"""Checks of calls to loop-level, graph-level and library functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import indent

from ...errors import TilewrightError
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
    CopyTensor,
    GraphFunc,
    LaunchKernel,
    LaunchLibrary,
    Operand,
    ScalarLiteral,
    TensorInfo,
    Value,
    operand_info,
)
from .rewritten_updates import rewritten_text
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
        self._func = func
        self._read_only = {p.value for p in func.params if p.access == "in"}

    def check(
        self,
        call: CallTIR | LaunchKernel | CallGraph | CallDPSLibrary | LaunchLibrary | CopyTensor,
        facts: Facts,
    ) -> None:
        """Check one call and report its violations."""
        match call:
            case CallTIR() | LaunchKernel():
                self._kernel(call, call.function, call.scalars, TRUE, facts)
                for version in call.versions:
                    self._kernel(call, version.function, version.scalars, version.guard, facts)
            case CallGraph():
                self._graph(call, facts)
            case CopyTensor(source=source, target=target):
                self._written(target)
                problem = disagreement(operand_info(source), target.info, facts)
                if problem:
                    self._out.report(rules.SHAPES, f"copy to {target.name!r}: {problem}")
            case LaunchLibrary(outputs=outputs):
                for output in outputs:
                    self._written(output)
            case CallDPSLibrary():
                self._library(call, facts)

    def _library(self, call: CallDPSLibrary, facts: Facts) -> None:
        """Check a call of a registered function; the others are unknown until code generation."""
        from .libraries import LIBRARY_FUNCTIONS  # library functions import this package

        function = LIBRARY_FUNCTIONS.get(call.symbol)
        if function is None:
            return
        try:
            outputs = function.deduced(call.args, call.attributes, facts)
        except TilewrightError as error:
            where = f"{error.where}: " if error.where else ""
            self._out.report(rules.ARGUMENTS, f"{where}{error.message}")
            return
        if outputs is not None and len(outputs) != len(call.outputs):
            message = f"call of {call.symbol!r}: expected {len(outputs)} outputs"
            self._out.report(rules.ARGUMENTS, f"{message}, got {len(call.outputs)}")
            return
        for k, (have, want) in enumerate(zip(call.outputs, outputs or call.outputs, strict=True)):
            problem = disagreement(want, have, facts)
            if problem:
                self._out.report(rules.SHAPES, f"output {k} of {call.symbol!r}: {problem}")

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
        written = [k for k, param in enumerate(taken) if param.access != "in"]
        if isinstance(call, CallTIR) and len(call.args) == len(taken):
            names = [p.buffer.name for p in taken]
            if not self._updates(call, written, names):
                return
        given = (len(call.args), len(outputs), len(scalars))
        wanted = (len(taken), len(made), len(callee.scalar_params))
        if given != wanted:
            self._count(function, given, wanted)
            return
        if not isinstance(call, CallTIR):
            for k in written:
                self._written(call.args[k])
        actual = [_tensor(a) for a in call.args] + list(outputs)
        pairs = [
            _Pair(p.buffer.name, TensorInfo(p.buffer.shape, p.buffer.dtype), info)
            for p, info in zip((*taken, *made), actual, strict=True)
        ]
        bound = dict(zip(callee.scalar_params, scalars, strict=True))
        if guard is not TRUE and is_proved(negate(guard), facts):
            return  # the version is never chosen
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

    def _updates(
        self, call: CallTIR | CallGraph, written: Sequence[int], names: Sequence[str]
    ) -> bool:
        """Return whether a call updates the operands that its callee writes; report others."""
        if tuple(written) == call.updates:
            return True
        differences = f"expected {_positions(written)}, got {_positions(call.updates)}"
        absent = [k for k in written if k not in call.updates]
        wrong = [k for k in call.updates if k not in written]
        fix = ""
        if absent:
            text = rewritten_text(self._func, self._module)
            fix = f"write the new values of the states:\n{indent(text, '    ')}" if text else ""
            message = (
                f"{call.function!r} writes its parameter {names[absent[0]]!r}, but the call does "
                f"not update operand {absent[0]}: {differences}"
            )
        elif wrong:
            name = repr(names[wrong[0]]) if wrong[0] < len(names) else "of this position"
            message = (
                f"the call updates operand {wrong[0]}, but {call.function!r} does not write its "
                f"parameter {name}: {differences}"
            )
        else:
            message = f"{differences}: positions are in increasing order"
        self._out.report(rules.UPDATES, message, fix=fix)
        return False

    def last_values(self, facts: Facts) -> None:
        """Report last values that are not those of written parameters, or of another type."""
        params = {p.value: p for p in self._func.params}
        seen: set[Value] = set()
        for update in self._func.updates:
            name, param = update.param.name, params.get(update.param)
            if self._func.stage == "memory":
                message = f"{name!r} has a last value, but launches of the memory stage write it"
                self._out.report(rules.LAST_VALUES, message)
            elif param is None:
                self._out.report(rules.LAST_VALUES, f"{name!r} is not a parameter")
            elif param.access == "in":
                message = f"parameter {name!r} has access mode 'in' but a last value"
                self._out.report(rules.LAST_VALUES, message)
            elif update.param in seen:
                self._out.report(rules.LAST_VALUES, f"parameter {name!r} has two last values")
            else:
                self._type_of("last", param.value, update.value, facts)
            seen.add(update.param)
        for param in self._func.params:
            if param.initial is not None:
                self._type_of("initial", param.value, param.initial, facts)
                if param.access != "state":
                    name, access = param.value.name, param.access
                    message = f"parameter {name!r} has access mode {access!r} but an initial value"
                    self._out.report(rules.LAST_VALUES, message)

    def _type_of(self, word: str, param: Value, value: Operand, facts: Facts) -> None:
        problem = disagreement(operand_info(value), param.info, facts)
        if not isinstance(value, Value | ConstantRef):
            problem = "expected a tensor"
        if problem:
            message = f"{word} value of parameter {param.name!r}: {problem}"
            self._out.report(rules.LAST_VALUES, message)

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

    def _graph(self, call: CallGraph, facts: Facts) -> None:
        name, args = call.function, call.args
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
        written = [k for k, p in enumerate(callee.params) if p.access != "in"]
        self._updates(call, written, [p.value.name for p in callee.params])
        pairs = [
            _Pair(param.value.name, param.value.info, _tensor(arg))
            for param, arg in zip(callee.params, args, strict=True)
            if isinstance(param.value.info, TensorInfo)
        ]
        bound: dict[Var, Expr] = {}
        self._unify(name, pairs, bound, facts)
        self._expectations(callee.facts, bound, facts)


def _positions(positions: Sequence[int]) -> str:
    listed = ", ".join(map(str, positions))
    return f"updates=({listed},)" if len(positions) == 1 else f"updates=({listed})"


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
