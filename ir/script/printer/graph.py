"""Printing of graph-level functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, assert_never

from ...dtype import bool_, f32, i64
from ...graph.nodes import (
    DEFAULT_DEVICE,
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
    GraphParam,
    GrowTensor,
    IfElse,
    Info,
    KernelVersion,
    Kill,
    LaunchKernel,
    LaunchLibrary,
    Loop,
    LoopParam,
    MakeTuple,
    MatchCast,
    ObjectInfo,
    Operand,
    Rhs,
    ScalarLiteral,
    TensorInfo,
    TupleInfo,
    TupleItem,
    Value,
    VersionSwitch,
    ViewTensor,
    result_info,
)
from ...module import Constant
from ...naming import is_valid_name
from ...symbolic import TRUE, Expr, as_expr
from ..names import quote, tuple_text
from .elements import number_text
from .header import fact_lines, write_header
from .infos import info_text
from .lines import Lines
from .loop import ACCESS, FUNCTION_KEYS, NO_KEYS
from .terms import TermPrinter

FORMS: Final = frozenset(
    {
        "alloc_storage", "call", "call_library", "call_tir", "check", "const", "copy", "each",
        "grow", "kill", "launch", "launch_library", "match_cast", "op", "updates", "view",
    }
)  # fmt: skip
"""Right-hand sides other than operators; ``op("name")`` calls an operator of such a name."""

RIGHT_KEYS: Final = frozenset({"outputs"})
EFFECT: Final = "_"
"""The name of an unused value, the result of an effect."""

_PLAIN = {float: f32, int: i64, bool: bool_}


def constant_info(constant: Constant) -> TensorInfo:
    """Return the annotation of references to a constant; such annotations are not printed."""
    return TensorInfo(tuple(as_expr(d) for d in constant.shape), constant.dtype)


def _updates(call: CallTIR | CallGraph) -> list[str]:
    """Return the positions of updated arguments as a keyword argument."""
    return [f"updates={tuple_text([str(k) for k in call.updates])}"] if call.updates else []


def _field(info: Info, index: int) -> Info | None:
    """Return the annotation of a tuple field; None if it is unknown."""
    fields = info.fields if isinstance(info, TupleInfo) else ()
    return fields[index] if 0 <= index < len(fields) else None


class GraphPrinter:
    """Prints the bindings of one function."""

    def __init__(
        self,
        terms: TermPrinter,
        out: Lines,
        constants: Mapping[str, Constant],
        *,
        provenance: bool,
    ) -> None:
        """Print to ``out``; references to ``constants`` are printed without annotations."""
        self._terms = terms
        self._out = out
        self._constants = constants
        self._provenance = provenance

    def info(self, info: Info) -> str:
        """Return an annotation as text."""
        return info_text(info, self._terms)

    def operand(self, operand: Operand) -> str:
        """Return an operand as text."""
        match operand:
            case Value(name=name):
                return name
            case ConstantRef(key=key, info=info):
                known = self._constants.get(key)
                if known is not None and constant_info(known) == info:
                    return f"const({quote(key)})"
                return f"const({quote(key)}, {self.info(info)})"
            case ScalarLiteral(value=value, dtype=dtype):
                text = number_text(value, dtype)
                return text if _PLAIN[type(value)] == dtype else f"{dtype}({text})"
            case Dims(dims=dims):
                return self._terms.tuple(dims)
            case _:
                assert_never(operand)

    def operands(self, operands: tuple[Operand, ...]) -> list[str]:
        """Return several operands as texts."""
        return [self.operand(o) for o in operands]

    def bindings(self, bindings: tuple[Binding, ...]) -> None:
        """Print bindings in order, inside ``with`` if they have origins or attributes."""
        for binding in bindings:
            self._binding(binding)

    def _binding(self, binding: Binding) -> None:
        heads: list[str] = []
        if self._provenance and binding.origins:
            heads.append(f"origin({', '.join(quote(o) for o in sorted(binding.origins))})")
        if binding.attributes:
            words = self._terms.keywords(binding.attributes, NO_KEYS)
            heads.append(f"attributes({', '.join(words)})")
        if heads:
            self._out.add(f"with {', '.join(heads)}:")
            with self._out.indented():
                self._define(binding)
        else:
            self._define(binding)

    def _define(self, binding: Binding) -> None:
        value, right = binding.value, binding.right
        self._terms.check(value.name, "value")
        with self._out.marked("binding", value.uid, value.name):
            match right:
                case IfElse():
                    self._if_else(value, right)
                case VersionSwitch():
                    self._versions(value, right)
                case Loop():
                    self._loop(value, right)
                case _:
                    self._assign(value, right)

    def _assign(self, value: Value, right: Rhs) -> None:
        head, arguments, implied = self._right(right, value.info)
        target = self._target(value, implied)
        if head:
            self._out.call(f"{target}{head}", arguments)
        else:
            self._out.add(f"{target}{arguments[0]}")

    def _target(self, value: Value, implied: Info | None) -> str:
        """Return ``name: Info = ``, without the annotation if the right-hand side implies it."""
        if value.name == EFFECT and implied == value.info:
            return ""
        annotation = "" if implied == value.info else f": {self.info(value.info)}"
        return f"{value.name}{annotation} = "

    def _right(self, right: Rhs, info: Info) -> tuple[str, list[str], Info | None]:
        """Return the callee, the arguments and the implied annotation of a right-hand side."""
        match right:
            case Call(op=op, args=args, attributes=attributes):
                words = self._terms.keywords(attributes, NO_KEYS)
                plain = op not in FORMS and all(map(is_valid_name, op.split(".")))
                name = [] if plain else [quote(op)]
                return (op if plain else "op"), [*name, *self.operands(args), *words], None
            case CallTIR():
                options = [*self._outputs(right, info), *self._choice(right), *_updates(right)]
                return "call_tir", [*self._kernel(right), *options], None
            case CallDPSLibrary(symbol=symbol, args=args, attributes=attributes):
                first = [quote(symbol), *self.operands(args), *self._outputs(right, info)]
                return "call_library", [*first, *self._terms.keywords(attributes, RIGHT_KEYS)], None
            case CallGraph(function=function, args=args):
                return (
                    "call",
                    [self._callee(function), *self.operands(args), *_updates(right)],
                    None,
                )
            case MatchCast(value=operand, info=refined):
                return "match_cast", [self.operand(operand), self.info(refined)], refined
            case MakeTuple(fields=fields):
                return "", [tuple_text(self.operands(fields))], None
            case TupleItem(tuple_=whole, index=index):
                return "", [f"{whole.name}[{index}]"], _field(whole.info, index)
            case IfElse() | VersionSwitch() | Loop():
                raise TypeError(type(right).__name__)  # printed as statements
            case _:
                return self._memory(right)

    def right_text(self, right: Rhs) -> str:
        """Return a right-hand side as text on one line; branches and switches have no such text."""
        head, arguments, _ = self._right(right, ObjectInfo())
        return f"{head}({', '.join(arguments)})" if head else arguments[0]

    def _memory(
        self,
        right: AllocStorage
        | ViewTensor
        | LaunchKernel
        | LaunchLibrary
        | CopyTensor
        | GrowTensor
        | Kill
        | Check,
    ) -> tuple[str, list[str], Info | None]:
        match right:
            case AllocStorage(size=size, device=device, alignment=alignment):
                options = [] if device == DEFAULT_DEVICE else [f"device={quote(device)}"]
                options += [] if alignment == 64 else [f"alignment={alignment}"]
                options += _on_stream(right)
                return "alloc_storage", [self._terms.text(size), *options], ObjectInfo()
            case ViewTensor(storage=storage, offset=offset, info=info):
                return "view", [storage.name, self._terms.text(offset), self.info(info)], info
            case LaunchKernel():
                options = [*self._choice(right), *_on_stream(right)]
                return "launch", [*self._kernel(right), *options], ObjectInfo()
            case LaunchLibrary(symbol=symbol, args=args, outputs=outputs, attributes=attributes):
                outs = f"outputs={tuple_text(self.operands(outputs))}"
                words = self._terms.keywords(attributes, RIGHT_KEYS)
                first = [quote(symbol), *self.operands(args), outs]
                return "launch_library", [*first, *words], ObjectInfo()
            case CopyTensor(source=source, target=target, reason=reason):
                why = [*([quote(reason)] if reason else []), *_on_stream(right)]
                return "copy", [self.operand(source), target.name, *why], ObjectInfo()
            case GrowTensor(source=source, info=info):
                return "grow", [source.name, self.info(info)], info
            case Kill(value=value):
                return "kill", [value.name], ObjectInfo()
            case Check(predicate=predicate, message=message):
                return "check", [self._terms.text(predicate), quote(message)], ObjectInfo()
            case _:
                assert_never(right)

    def _callee(self, function: str) -> str:
        return self._terms.check(function, "function")

    def _kernel(self, call: CallTIR | LaunchKernel) -> list[str]:
        return [self._callee(call.function), *self.operands(call.args)]

    def _choice(self, call: CallTIR | LaunchKernel) -> list[str]:
        """Return the scalar arguments and versions of a kernel call as keyword arguments."""
        versions = [self.version_text(v) for v in call.versions]
        return self._scalars(call.scalars) + (
            [f"versions={tuple_text(versions)}"] if versions else []
        )

    def version_text(self, version: KernelVersion) -> str:
        """Return a version as text, ``when(guard, function)``."""
        parts = [self._terms.text(version.guard), self._callee(version.function)]
        return f"when({', '.join([*parts, *self._scalars(version.scalars)])})"

    def _outputs(self, call: CallTIR | CallDPSLibrary, info: Info) -> list[str]:
        """Return ``outputs=`` as text unless the annotation of the value implies the outputs."""
        implied = result_info(call)
        if implied == info and implied != TupleInfo(()):
            return []
        return [f"outputs={tuple_text([self.info(o) for o in call.outputs])}"]

    def _scalars(self, scalars: tuple[Expr, ...]) -> list[str]:
        return [f"scalars={self._terms.tuple(scalars)}"] if scalars else []

    def _if_else(self, value: Value, right: IfElse) -> None:
        self._out.add(f"if {self._test(right.condition)}:")
        self._branch(value, right.then, annotated=True)
        self._out.add("else:")
        self._branch(value, right.otherwise, annotated=False)

    def _test(self, condition: Operand) -> str:
        """Return a condition as text; a literal has a dtype, so that it is not a symbolic guard."""
        if isinstance(condition, ScalarLiteral):
            return f"{condition.dtype}({number_text(condition.value, condition.dtype)})"
        return self.operand(condition)

    def _branch(self, value: Value, branch: Branch, *, annotated: bool) -> None:
        annotation = f": {self.info(value.info)}" if annotated else ""
        with self._out.indented():
            self.bindings(branch.bindings)
            self._out.add(f"{value.name}{annotation} = {self.results(branch.results)}")

    def loop_head(self, loop: Loop) -> str:
        """Return the decorator of a loop."""
        count = "" if loop.count is None else f", count={self._terms.text(loop.count)}"
        return f"@loop({self._terms.text(loop.index)}{count})"

    def loop_param(self, param: LoopParam, *, element: bool) -> str:
        """Return a value that every iteration defines as text."""
        given = self.operand(param.given)
        name = self._terms.check(param.value.name, "value")
        return f"{name}: {self.info(param.value.info)} = {f'each({given})' if element else given}"

    def _loop(self, value: Value, loop: Loop) -> None:
        self._out.add(self.loop_head(loop))
        first = len(self._out.lines)
        params = [self.loop_param(p, element=False) for p in loop.carried]
        params += [self.loop_param(p, element=True) for p in loop.elements]
        self._out.call(f"def {value.name}", params, f" -> {self.info(value.info)}:")
        for param in loop.params:
            self._out.mark_from(first, "binding", param.value.uid, param.value.name)
        with self._out.indented():
            if loop.condition is None:
                self._loop_body(loop)
                return
            self.bindings(loop.condition.bindings)
            self._out.add(f"while {self._test(loop.condition.results[0])}:")
            with self._out.indented():
                self._loop_body(loop)

    def _loop_body(self, loop: Loop) -> None:
        self.bindings(loop.body.bindings)
        results = loop.body.results
        text = self.results(results)
        self._out.add(f"return {text[1:-1] if len(results) > 1 else text}")

    def results(self, results: tuple[Operand, ...]) -> str:
        """Return the results of a function or branch as text: one operand, or a tuple."""
        if len(results) == 1 and not isinstance(results[0], Dims):
            return self.operand(results[0])
        return tuple_text(self.operands(results))

    def _versions(self, value: Value, switch: VersionSwitch) -> None:
        plain = value.name == EFFECT and value.info == ObjectInfo()
        if not plain:
            self._out.add(f"with binding({quote(value.name)}, {self.info(value.info)}):")
            with self._out.indented():
                self._cases(switch)
        else:
            self._cases(switch)

    def _cases(self, switch: VersionSwitch) -> None:
        last = len(switch.cases) - 1
        for position, case in enumerate(switch.cases):
            if position and position == last and case.guard == TRUE:
                self._out.add("else:")
            else:
                word = "elif" if position else "if"
                self._out.add(f"{word} {self._terms.text(case.guard)}:")
            with self._out.indented():
                self.bindings(case.bindings)

    def parameter(self, param: GraphParam) -> str:
        """Return one parameter of the signature as text."""
        name = self._terms.check(param.value.name, "parameter")
        info = self.info(param.value.info)
        if param.access == "in":
            return f"{name}: {info}"
        inner = info if param.initial is None else f"{info}, {self.operand(param.initial)}"
        return f"{name}: {ACCESS[param.access]}[{inner}]"

    def return_statement(self, func: GraphFunc) -> None:
        """Print the return statement: results, with their names as keys, then last values."""
        names, operands = func.result_names, self.operands(func.results)
        updates = [f"{u.param.name}={self.operand(u.value)}" for u in func.updates]
        if names and len(names) == len(func.results):
            entries = [f"{quote(k)}: {v}" for k, v in zip(names, operands, strict=True)]
            self._named_results(entries, updates)
        elif updates:
            self._out.call(f"return {', '.join([*operands, 'updates'])}", updates)
        else:
            text = self.results(func.results)
            several = len(func.results) > 1
            self._out.add(f"return {text[1:-1] if several else text}")

    def _named_results(self, entries: list[str], updates: list[str]) -> None:
        last = f", updates({', '.join(updates)})" if updates else ""
        line = f"return {{{', '.join(entries)}}}{last}"
        if self._out.fits(line):
            self._out.add(line)
            return
        self._out.add("return {")
        with self._out.indented():
            for entry in entries:
                self._out.add(f"{entry},")
        if updates:
            self._out.call("}, updates", updates)
        else:
            self._out.add("}")


def _options(func: GraphFunc, terms: TermPrinter) -> list[str]:
    options = [] if func.stage == "dataflow" else [f"stage={quote(func.stage)}"]
    if func.result_names and len(func.result_names) != len(func.results):
        options.append(f"result_names={tuple_text([quote(n) for n in func.result_names])}")
    return options + terms.keywords(func.attributes, FUNCTION_KEYS)


def print_graph_func(
    func: GraphFunc,
    constants: Mapping[str, Constant],
    *,
    provenance: bool = False,
    lowered: bool = False,
) -> Lines:
    """Print one graph-level function, with its symbols declared above it.

    With ``lowered``, the parser need not accept the text, as in ``print_prim_func``.
    """
    terms, body, out = TermPrinter(func.name, rename=lowered), Lines(), Lines()
    printer = GraphPrinter(terms, body, constants, provenance=provenance)
    terms.check(func.name, "function")
    params = [printer.parameter(p) for p in func.params]
    with body.indented():
        for line in fact_lines(func.facts, terms):
            body.add(line)
        for name, values in func.hints:
            body.add(f"hint({', '.join([quote(name), *map(str, values)])})")
        printer.bindings(func.bindings)
        printer.return_statement(func)
    signature = write_header(
        out,
        terms,
        decorator="graph_func",
        options=_options(func, terms),
        name=func.name,
        params=params,
    )
    for param in func.params:
        out.mark_from(signature, "binding", param.value.uid, param.value.name)
    out.append(body)
    return out


def _on_stream(right: AllocStorage | LaunchKernel | CopyTensor) -> list[str]:
    """Return the stream of an operation as a keyword argument; stream 0 is omitted."""
    return [f"stream={right.stream}"] if right.stream else []
