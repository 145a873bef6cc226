"""Graph-level functions from Python's syntax tree."""

from __future__ import annotations

import ast
from typing import TypeAlias

from ...errors import TilewrightError
from ...graph.memory import VersionCase, VersionSwitch
from ...graph.nodes import (
    Binding,
    Branch,
    Call,
    GraphFunc,
    GraphParam,
    IfElse,
    Info,
    ObjectInfo,
    Operand,
    Stage,
)
from ...identity import NO_ORIGIN, Origins
from ...loop.nodes import Access, Attributes
from ...symbolic import TRUE, Bool, Facts
from ..errors import ScriptTypeError
from .arguments import Arguments, called_name
from .buffers import ACCESS
from .constants import Constants
from .header import Declarations, decorator_of, signature, statements_of, take_facts
from .infos import read_info
from .rights import RightReader
from .scope import Scope
from .source import Source
from .values import EFFECT, ValueReader

Hints: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]


class GraphReader:
    """Reads the bindings of one function in order."""

    def __init__(self, scope: Scope, constants: Constants) -> None:
        """Start with no value."""
        self.scope = scope
        self.source = scope.source
        self.values = ValueReader(scope, constants)
        self._rights = RightReader(self.values)
        self.facts = Facts()

    def bindings(self, body: list[ast.stmt], *, origins: Origins = NO_ORIGIN) -> list[Binding]:
        """Read statements."""
        made: list[Binding] = []
        for node in body:
            made += self._statement(node, origins, ())
        return made

    def _statement(self, node: ast.stmt, origins: Origins, attributes: Attributes) -> list[Binding]:
        match node:
            case ast.Assign(targets=[ast.Name() as target], value=value):
                return [self._assign(target, None, value, origins, attributes)]
            case ast.AnnAssign(
                target=ast.Name() as target, annotation=note, value=ast.expr() as value
            ):
                return [self._assign(target, note, value, origins, attributes)]
            case ast.Expr(value=ast.Call() as call):
                return [self._effect(call, origins, attributes)]
            case ast.If():
                return [self._if(node, origins, attributes)]
            case ast.With(items=items, body=body):
                return self._with(items, body, origins, attributes)
            case ast.Pass():
                return []
            case _:
                raise self.source.error(
                    node,
                    "no such statement in a graph function",
                    "there are bindings y: Tensor[...] = op(x), if, with origin(...), return",
                )

    def _assign(
        self,
        target: ast.Name,
        note: ast.expr | None,
        node: ast.expr,
        origins: Origins,
        attributes: Attributes,
    ) -> Binding:
        written = None if note is None else read_info(self.scope, note)
        right, implied = self._rights.read(node, written)
        info = implied if written is None else written
        if info is None and isinstance(right, Call):
            info = self._deduced(right, node)
        if info is None:
            raise self.source.error(
                target,
                f"value {target.id!r} needs an annotation",
                f"{target.id}: Tensor[(...), f32] = ...",
            )
        return Binding(self.values.define(target.id, info, target), right, origins, attributes)

    def _deduced(self, call: Call, node: ast.expr) -> Info:
        """Deduce the annotation of an operator's result, as the operator's shape rule does."""
        from ...graph.operators import infer_call  # all operators; only what lacks notes needs them

        try:
            return infer_call(call.op, call.args, call.attributes, self.facts).info
        except TilewrightError as error:
            place = self.source.place(node)
            raise ScriptTypeError(error.message, place=place, hint=error.hint) from None

    def _effect(self, call: ast.Call, origins: Origins, attributes: Attributes) -> Binding:
        right, implied = self._rights.read(call, None)
        if implied is None:
            raise self.source.error(call, "the result of this call needs a name and an annotation")
        return Binding(self.values.define(EFFECT, implied, call), right, origins, attributes)

    def _with(
        self,
        items: list[ast.withitem],
        body: list[ast.stmt],
        origins: Origins,
        attributes: Attributes,
    ) -> list[Binding]:
        for item in items:
            call, name = item.context_expr, called_name(item.context_expr)
            if not isinstance(call, ast.Call) or name not in ("origin", "attributes", "binding"):
                raise self.source.error(
                    call, "after with stands origin(...), attributes(...) or binding(...)"
                )
            arguments = Arguments(self.source, call, f"with {name}(...):")
            if name == "origin":
                origins = frozenset(self.scope.string(n) for n in arguments.positional)
            elif name == "attributes":
                attributes = self.scope.attributes(arguments)
            else:
                return [self._named_switch(arguments, body, origins, attributes)]
        made: list[Binding] = []
        for node in body:
            made += self._statement(node, origins, attributes)
        return made

    # ------------------------------------------------------------ structured bindings

    def _if(self, node: ast.If, origins: Origins, attributes: Attributes) -> Binding:
        symbolic = self.scope.is_term(node.test) or (
            isinstance(node.test, ast.Constant) and isinstance(node.test.value, bool)
        )
        if symbolic:
            switch = VersionSwitch(tuple(self._cases(node)))
            value = self.values.define(EFFECT, ObjectInfo(), node.test)
            return Binding(value, switch, origins, attributes)
        return self._if_else(node, origins, attributes)

    def _named_switch(
        self, arguments: Arguments, body: list[ast.stmt], origins: Origins, attributes: Attributes
    ) -> Binding:
        name, note = arguments.take(2)
        arguments.finish()
        if len(body) != 1 or not isinstance(body[0], ast.If):
            raise arguments.error("a binding holds one if with symbolic guards")
        switch = VersionSwitch(tuple(self._cases(body[0])))
        info = read_info(self.scope, note)
        return Binding(
            self.values.define(self.scope.string(name), info, name), switch, origins, attributes
        )

    def _cases(self, node: ast.If) -> list[VersionCase]:
        cases = [self._case(self.scope.predicate(node.test), node.body)]
        match node.orelse:
            case []:
                return cases
            case [ast.If() as other]:
                return cases + self._cases(other)
            case rest:
                return [*cases, self._case(TRUE, rest)]

    def _case(self, guard: Bool, body: list[ast.stmt]) -> VersionCase:
        before = dict(self.values.values)
        made = tuple(self.bindings(body))
        self.values.forget(before)
        return VersionCase(guard, made)

    def _if_else(self, node: ast.If, origins: Origins, attributes: Attributes) -> Binding:
        condition = self.values.operand(node.test)
        target, note, then = self._side(node.body, node)
        other, _, otherwise = self._side(node.orelse, node)
        if target.id != other.id:
            raise self.source.error(
                other, f"the other branch gives {target.id!r}", "both give a value of one name"
            )
        if note is None:
            raise self.source.error(target, f"value {target.id!r} needs an annotation")
        value = self.values.define(target.id, read_info(self.scope, note), target)
        return Binding(value, IfElse(condition, then, otherwise), origins, attributes)

    def _side(
        self, body: list[ast.stmt], whole: ast.If
    ) -> tuple[ast.Name, ast.expr | None, Branch]:
        """Read a branch; its last statement names the result."""
        match body:
            case [*rest, ast.Assign(targets=[ast.Name() as target], value=value)]:
                note = None
            case [
                *rest,
                ast.AnnAssign(
                    target=ast.Name() as target, annotation=note, value=ast.expr() as value
                ),
            ]:
                pass
            case _:
                raise self.source.error(
                    body[-1] if body else whole,
                    "a branch ends with its result",
                    "y: Tensor[...] = t in both branches",
                )
        before = dict(self.values.values)
        made = tuple(self.bindings(rest))
        results = self.values.results(value)
        self.values.forget(before)
        return target, note, Branch(made, results)


def _hints(scope: Scope, body: list[ast.stmt]) -> tuple[Hints, list[ast.stmt]]:
    """Read the ``hint("seq", 32, 128)`` lines; give what stands below them."""
    hints: list[tuple[str, tuple[int, ...]]] = []
    for position, statement in enumerate(body):
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or called_name(call) != "hint":
            return tuple(hints), body[position:]
        arguments = Arguments(scope.source, call, 'hint("n", 32, 128)')
        arguments.finish()
        if not arguments.positional:
            raise arguments.error("a hint names a symbol and its likely values")
        name, *values = arguments.positional
        hints.append((scope.string(name), tuple(scope.integer(v) for v in values)))
    return tuple(hints), []


def _outcome(
    reader: GraphReader, node: ast.FunctionDef, body: list[ast.stmt]
) -> tuple[list[ast.stmt], ast.expr]:
    match body:
        case [*rest, ast.Return(value=ast.expr() as value)]:
            return rest, value
        case _:
            last = body[-1] if body else node
            raise reader.source.error(last, f"function {node.name!r} ends with return")


def _named_results(
    reader: GraphReader, node: ast.expr
) -> tuple[tuple[Operand, ...], tuple[str, ...]]:
    """Read ``return y``, ``return y, z`` or ``return {"name": y}``."""
    if not isinstance(node, ast.Dict):
        return reader.values.results(node), ()
    keys = [k for k in node.keys if k is not None]
    if len(keys) != len(node.keys):
        raise reader.source.error(node, "a dictionary of results names each of them")
    return reader.values.operands(node.values), tuple(reader.scope.string(k) for k in keys)


def _parameter(reader: GraphReader, arg: ast.arg) -> GraphParam:
    note: ast.expr | None = arg.annotation
    access: Access = "in"
    match note:
        case ast.Subscript(value=ast.Name(id=kind), slice=inner) if kind in ACCESS:
            note, access = inner, ACCESS[kind]
        case None:
            raise reader.source.error(
                arg, f"parameter {arg.arg!r} needs an annotation", "x: Tensor[(n, 4), f32]"
            )
        case _:
            pass
    return GraphParam(reader.values.define(arg.arg, read_info(reader.scope, note), arg), access)


def read_graph_func(
    source: Source,
    node: ast.FunctionDef,
    declared: Declarations,
    constants: Constants,
) -> GraphFunc:
    """Read one graph-level function; ``declared`` and ``constants`` stand above it."""
    scope = Scope(source, {name: symbol.mint() for name, symbol in declared.items()})
    reader = GraphReader(scope, constants)
    _, decorator = decorator_of(source, node, ("graph_func",))
    stage: Stage = "dataflow"
    names: tuple[str, ...] = ()
    attributes: Attributes = ()
    if isinstance(decorator, ast.Call):
        arguments = Arguments(source, decorator, '@graph_func(stage="memory", key=value)')
        arguments.take(0)
        stage = _stage(scope, arguments)
        given = arguments.keyword("result_names")
        names = () if given is None else scope.strings(given)
        attributes = scope.attributes(arguments)
    params = tuple(_parameter(reader, arg) for arg in signature(source, node))
    facts, rest = take_facts(scope, statements_of(node))
    reader.facts = facts
    hints, rest = _hints(scope, rest)
    rest, outcome = _outcome(reader, node, rest)
    bindings = tuple(reader.bindings(rest))
    results, result_names = _named_results(reader, outcome)
    return GraphFunc(
        node.name,
        params,
        bindings,
        results,
        facts,
        stage,
        attributes,
        hints,
        result_names or names,
    )


def _stage(scope: Scope, arguments: Arguments) -> Stage:
    node = arguments.keyword("stage")
    match None if node is None else scope.string(node):
        case None | "dataflow":
            return "dataflow"
        case "memory":
            return "memory"
        case other:
            raise arguments.error(f"no stage {other!r}; stages are dataflow, memory", node)
