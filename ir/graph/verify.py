"""Well-formedness checks of graph-level functions and modules."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from ...errors import TilewrightError
from ..loop.nodes import PrimFunc
from ..loop.verify import loop_violations
from ..module import Module
from ..naming import is_valid_name
from ..symbolic import TRUE, Bool, Expr, Facts, Var, const_value, product, to_text
from ..violations import Collector, Rule, Violation
from . import rules
from .calls import CallChecker
from .devices import device_problems
from .loops import condition_problem, inner_facts, loop_problems
from .nodes import (
    AllocStorage,
    Binding,
    Branch,
    Call,
    CallDPSLibrary,
    CallGraph,
    CallTIR,
    Check,
    ConstantRef,
    CopyTensor,
    Dims,
    GraphFunc,
    GrowTensor,
    IfElse,
    Info,
    Kill,
    LaunchKernel,
    LaunchLibrary,
    Loop,
    MakeTuple,
    MatchCast,
    Operand,
    Rhs,
    ScalarLiteral,
    TupleInfo,
    TupleItem,
    Value,
    VersionSwitch,
    ViewTensor,
    operand_info,
    result_info,
)
from .unify import disagreement, operands_text
from .visit import (
    all_bindings,
    all_values,
    branches_of,
    info_terms,
    operands_of,
    param_symbols,
    terms_of,
)

_MEMORY = (
    AllocStorage
    | ViewTensor
    | LaunchKernel
    | LaunchLibrary
    | CopyTensor
    | GrowTensor
    | Kill
    | Check
    | VersionSwitch
)
_ROLES: Mapping[type, str] = {
    MatchCast: "the operand of match_cast",
    MakeTuple: "a field of the tuple",
    IfElse: "the condition",
    Loop: "an initial value of the loop",
}
"""The operands of right-hand sides in messages."""

_MAKING = Call | CallTIR | CallDPSLibrary | CallGraph


def graph_violations(func: GraphFunc, module: Module | None = None) -> tuple[Violation, ...]:
    """Return all violations of the well-formedness rules in a graph-level function.

    Callees and constants are checked only if a module is given.

    Examples
    --------
    >>> from .nodes import GraphParam, TensorInfo, Value
    >>> from ..dtype import f32
    >>> from ..symbolic import as_expr
    >>> x = Value(1, "x", TensorInfo((as_expr(4),), f32))
    >>> [str(v) for v in graph_violations(GraphFunc("f", (), (), (x,)))]
    ["[G4 defined before use] function 'f', return: value 'x' is not defined here"]
    """
    return tuple(_Checker(func, module).run())


def module_violations(module: Module) -> tuple[Violation, ...]:
    """Return all violations of the well-formedness rules in a module and its functions."""
    found: list[Violation] = []
    for name, func in module.functions.items():
        if name != func.name:
            message = f"function {func.name!r} is stored under the key {name!r}"
            found.append(_of_function(rules.MODULE, func.name, message))
        if isinstance(func, PrimFunc):
            found += loop_violations(func)
        else:
            found += graph_violations(func, module)
    found += [
        _of_function(
            rules.RECURSION, name, f"function {name!r} calls itself, directly or indirectly"
        )
        for name in _recursive(module)
    ]
    return tuple(found)


def _of_function(rule: Rule, name: str, message: str) -> Violation:
    return Violation(rule, message, name, f"function {name!r}", None)


def _callees(bindings: Iterable[Binding]) -> Iterator[str]:
    for binding in all_bindings(bindings):
        if isinstance(binding.right, CallGraph):
            yield binding.right.function


def _recursive(module: Module) -> list[str]:
    """Return the graph-level functions that call themselves, directly or indirectly."""
    calls = {f.name: set(_callees(f.bindings)) for f in module.graphs}
    reached = {name: set(callees) for name, callees in calls.items()}
    for _ in calls:
        for name, callees in reached.items():
            for callee in tuple(callees):
                reached[name] |= calls.get(callee, set())
    return [name for name, callees in reached.items() if name in callees]


class _Checker:
    """The checker of one function; it tracks the values and symbols in scope."""

    def __init__(self, func: GraphFunc, module: Module | None) -> None:
        self._func = func
        self._module = module
        self._out = Collector(func.name)
        self._values: set[Value] = set()
        self._symbols: set[Var] = set()
        self._cast: set[Var] = set()
        self._carried: set[Value] = set()
        self._storages: dict[Value, str] = {}
        self._calls = CallChecker(self._out, module, func)

    def run(self) -> list[Violation]:
        """Check parameters, bindings and results in order."""
        func = self._func
        self._check_identity()
        for param in func.params:
            if param.initial is not None:
                self._operand(param.initial)
        self._symbols |= param_symbols(func)
        self._introduce([p.value.info for p in func.params])
        self._values |= {p.value for p in func.params}
        self._bindings(func.bindings, func.facts)
        self._symbols |= self._cast
        for fact in (*func.facts, *func.facts.hints):  # checked where all its symbols are bound
            self._use(fact.predicate, "a fact")
        with self._out.inside("return"):
            for result in func.results:
                self._operand(result)
            self._literals(func.results, "a result of the function")
            for update in func.updates:
                self._operand(update.value)
            self._calls.last_values(func.facts)
            self._check_results()
        return self._out.found

    def _check_identity(self) -> None:
        values = list(all_values(self._func))
        for uid, count in Counter(v.uid for v in values).items():
            if count > 1:
                self._out.report(rules.UIDS, f"{count} values have uid {uid}", uid)
        names = Counter(v.name for v in values if v.name != rules.EFFECT)
        for name, count in names.items():
            if count > 1:
                self._out.report(rules.NAMES, f"{count} values are named {name!r}")
        for name in dict.fromkeys((self._func.name, *names)):
            if not is_valid_name(name):
                message = f"name {name!r} is not a valid identifier of the text format"
                self._out.report(rules.VALID_NAMES, message)

    def _check_results(self) -> None:
        names, results = self._func.result_names, self._func.results
        if names and len(names) != len(results):
            message = f"expected one name per result ({len(results)}), got {len(names)}"
            self._out.report(rules.RESULTS, message)
        for name, count in Counter(names).items():
            if count > 1:
                self._out.report(rules.RESULTS, f"{count} results are named {name!r}")

    def _introduce(self, infos: Iterable[Info]) -> None:
        """Define the symbols that are themselves terms, then check the symbols of all terms."""
        terms = [t for info in infos for t in info_terms(info)]
        self._symbols |= {t for t in terms if isinstance(t, Var)}
        for term in terms:
            self._use(term, "an annotation")

    def _use(self, term: Expr | Bool, where: str) -> None:
        for symbol in sorted(term.free - self._symbols, key=lambda s: s.name):
            self._out.report(
                rules.SYMBOLS,
                f"{where} uses symbol {symbol.name!r}, which no parameter or match_cast defines",
            )

    def _operand(self, operand: Operand) -> None:
        match operand:
            case Value():
                if operand not in self._values:
                    self._out.report(
                        rules.DEFINED, f"value {operand.name!r} is not defined here", operand.uid
                    )
            case Dims(dims=dims):
                for dim in dims:
                    self._use(dim, "an operand")
            case ConstantRef():
                self._constant(operand)
            case ScalarLiteral():
                return

    def _literals(self, operands: Iterable[Operand], role: str) -> None:
        """Report literals among operands that need storage."""
        for operand in operands:
            if isinstance(operand, ScalarLiteral):
                value, dtype = operand.value, operand.dtype.name
                fix = f'write a tensor: number = full((), {value}, dtype="{dtype}")'
                self._out.report(rules.LITERALS, f"{value} is {role}", fix=fix)

    def _constant(self, ref: ConstantRef) -> None:
        if self._module is None:
            return
        known = self._module.constants.get(ref.key)
        if known is None:
            if ref.key not in _prepared(self._module, self._func.name):
                self._out.report(rules.CONSTANTS, f"the module has no constant {ref.key!r}")
            return
        shape = ref.info.shape
        stated = None if shape is None else tuple(map(to_text, shape))
        same = stated == tuple(map(str, known.shape))
        if self._func.stage == "memory" and shape is not None:  # a view has as many elements
            same = const_value(product(shape)) == math.prod(known.shape)
        if ref.info.dtype != known.dtype or not same:
            self._out.report(
                rules.CONSTANTS,
                f"constant {ref.key!r} has dtype {known.dtype} and shape {known.shape}, "
                f"but the reference has dtype {ref.info.dtype} and shape {_shape_text(stated)}",
            )

    def _bindings(self, bindings: Iterable[Binding], facts: Facts) -> None:
        for binding in bindings:
            with self._out.inside(f"binding {binding.value.name!r}", binding.value.uid):
                self._binding(binding, facts)
            self._values.add(binding.value)

    def _binding(self, binding: Binding, facts: Facts) -> None:
        right, info = binding.right, binding.value.info
        self._check_stage(right)
        for operand in operands_of(right):
            self._operand(operand)
        if not isinstance(right, Call):
            self._literals(operands_of(right), _ROLES.get(type(right), "an argument of the call"))
        if isinstance(right, MatchCast):
            self._introduce([right.info])
            self._cast |= self._symbols
        for term in terms_of(right):
            self._use(term, "the right-hand side")
        for problem in device_problems(right, info, self._storages):
            self._out.report(rules.DEVICES, problem)
        if isinstance(right, AllocStorage):
            self._storages[binding.value] = right.device
        self._check_right(right, info, facts)
        if isinstance(right, Loop):
            self._introduce([info])
        for term in info_terms(info):
            self._use(term, "the annotation")

    def _check_stage(self, right: Rhs) -> None:
        memory = self._func.stage == "memory"
        wrong = isinstance(right, _MAKING) if memory else isinstance(right, _MEMORY)
        if wrong:
            name = type(right).__name__
            message = f"{name} is not allowed in the {self._func.stage} stage"
            self._out.report(rules.STAGE, message)

    def _check_right(self, right: Rhs, info: Info, facts: Facts) -> None:
        match right:
            case Call(op=op):
                self._operator(right, info, facts, op)
            case CallTIR() | CallDPSLibrary():
                self._calls.check(right, facts)
                self._agree(result_info(right), info, facts)
            case CallGraph() | LaunchKernel() | LaunchLibrary() | CopyTensor():
                self._calls.check(right, facts)
            case MatchCast(info=refined) | ViewTensor(info=refined):
                self._agree(refined, info, facts)
            case GrowTensor(source=source, info=grown):
                self._agree(grown, info, facts)
                if source not in self._carried:
                    message = f"{source.name!r} grows, but it is not a carried value of this loop"
                    self._out.report(rules.CARRIED, message)
            case MakeTuple(fields=fields):
                self._agree(TupleInfo(tuple(map(operand_info, fields))), info, facts)
            case TupleItem():
                self._tuple_item(right, info, facts)
            case IfElse(condition=condition, then=then, otherwise=otherwise):
                if problem := condition_problem(condition):
                    self._out.report(rules.CONDITIONS, problem)
                for branch in (then, otherwise):
                    self._branch(branch, info, facts)
            case Loop():
                self._loop(right, info, facts)
            case VersionSwitch():
                self._versions(right, facts)
            case AllocStorage() | Kill() | Check():
                return

    def _agree(self, right: Info, info: Info, facts: Facts) -> None:
        problem = disagreement(right, info, facts)
        if problem:
            self._out.report(
                rules.ANNOTATION, f"the right-hand side does not match the annotation: {problem}"
            )

    def _operator(self, call: Call, info: Info, facts: Facts, op: str) -> None:
        from .operators import infer_call  # operators import this package

        try:
            inferred = infer_call(op, call.args, call.attributes, facts)
        except TilewrightError as error:
            where = f"{error.where}: " if error.where else ""
            operands = f"; operands are {operands_text(call.args)}"
            self._out.report(rules.OPERATORS, f"{where}{error.message}{operands}")
        else:
            self._agree(inferred.info, info, facts)

    def _tuple_item(self, right: TupleItem, info: Info, facts: Facts) -> None:
        whole = right.tuple_.info
        if not isinstance(whole, TupleInfo):
            message = f"value {right.tuple_.name!r} is not a tuple"
            self._out.report(rules.ANNOTATION, message)
        elif not 0 <= right.index < len(whole.fields):
            message = (
                f"field {right.index} is out of range for a tuple of {len(whole.fields)} fields"
            )
            self._out.report(rules.ANNOTATION, message)
        else:
            self._agree(whole.fields[right.index], info, facts)

    def _branch(self, branch: Branch, info: Info, facts: Facts) -> None:
        values, symbols = set(self._values), set(self._symbols)
        self._bindings(branch.bindings, facts)
        for result in branch.results:
            self._operand(result)
        self._literals(branch.results, "the result of the branch")
        results = tuple(map(operand_info, branch.results))
        self._agree(results[0] if len(results) == 1 else TupleInfo(results), info, facts)
        self._values, self._symbols = values, symbols

    def _loop(self, loop: Loop, info: Info, facts: Facts) -> None:
        for rule, problem in loop_problems(loop, info, facts, self._symbols):
            self._out.report(rule, problem)
        values, symbols = set(self._values), set(self._symbols)
        self._symbols.add(loop.index)
        self._introduce(p.value.info for p in loop.params)
        self._values |= {p.value for p in loop.params}
        carried, self._carried = self._carried, {p.value for p in loop.carried}
        inner = inner_facts(loop, facts)
        for branch in branches_of(loop):
            self._bindings(branch.bindings, inner)
            for result in branch.results:
                self._operand(result)
            role = "the condition" if branch is loop.condition else "a result of the iteration"
            self._literals(branch.results, role)
        self._values, self._symbols, self._carried = values, symbols, carried

    def _versions(self, switch: VersionSwitch, facts: Facts) -> None:
        if not switch.cases or switch.cases[-1].guard != TRUE:
            self._out.report(rules.VERSIONS, "the guard of the last case must be the constant True")
        for case in switch.cases:
            self._use(case.guard, "a guard")
            values, symbols = set(self._values), set(self._symbols)
            self._bindings(case.bindings, facts)
            self._values, self._symbols = values, symbols


def _shape_text(dims: tuple[str, ...] | None) -> str:
    if dims is None:
        return "?"
    return f"({dims[0]},)" if len(dims) == 1 else f"({', '.join(dims)})"


def _prepared(module: Module, function: str) -> set[str]:
    """Return the keys of the constants that another function prepares for this one."""
    return {
        name
        for graph in module.graphs
        if ("prepare_for", function) in graph.attributes
        for name in graph.result_names
    }
