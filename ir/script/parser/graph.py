"""Parsing of graph-level functions."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TypeAlias

from ....errors import TilewrightError
from ...graph.loops import implied_info, inner_facts, loop_info
from ...graph.nodes import (
    Binding,
    Branch,
    Call,
    ConstantRef,
    GraphFunc,
    GraphParam,
    IfElse,
    Info,
    Loop,
    LoopParam,
    ObjectInfo,
    Operand,
    Stage,
    Update,
    VersionCase,
    VersionSwitch,
)
from ...graph.unify import operands_text
from ...graph.visit import defining_infos, info_terms, loop_symbols, param_symbols
from ...identity import NO_ORIGIN, Origins
from ...loop.nodes import AccessMode, Attributes
from ...symbolic import TRUE, Bool, Expr, Facts, Var
from ..errors import ScriptTypeError
from .arguments import Arguments, called_name
from .buffers import ACCESS
from .constants import Constants
from .header import Declarations, decorator_of, signature, statements_of, take_facts
from .infos import read_info
from .rhs import RightReader
from .scope import Scope
from .source import Source, describe, text_of
from .unknown import unknown_name
from .values import EFFECT, ValueReader

Hints: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]


class GraphReader:
    """Parses the bindings of one function in order."""

    def __init__(self, scope: Scope, constants: Constants) -> None:
        """Start with no values."""
        self.scope = scope
        self.source = scope.source
        self.values = ValueReader(scope, constants)
        self._rights = RightReader(self.values)
        self.facts = Facts()
        self.symbols: set[Var] = set()

    def bindings(self, body: list[ast.stmt], *, origins: Origins = NO_ORIGIN) -> list[Binding]:
        """Parse statements."""
        bindings: list[Binding] = []
        for node in body:
            bindings += self._statement(node, origins, ())
        return bindings

    def _statement(self, node: ast.stmt, origins: Origins, attributes: Attributes) -> list[Binding]:
        match node:
            case ast.Assign(targets=[ast.Name() as target], value=value):
                return [self._assign(target, None, value, origins, attributes)]
            case ast.AnnAssign(
                target=ast.Name() as target, annotation=annotation, value=ast.expr() as value
            ):
                return [self._assign(target, annotation, value, origins, attributes)]
            case ast.Expr(value=ast.Call() as call):
                return [self._effect(call, origins, attributes)]
            case ast.If():
                return [self._if(node, origins, attributes)]
            case ast.FunctionDef():
                return [self._loop(node, origins, attributes)]
            case ast.With(items=items, body=body):
                return self._with(items, body, origins, attributes)
            case ast.Pass():
                return []
            case _:
                raise self.source.error(
                    node,
                    "unsupported statement in a graph-level function",
                    "statements are y: Tensor[...] = op(x), if, @loop(k), with origin(...), return",
                )

    def _assign(
        self,
        target: ast.Name,
        annotation: ast.expr | None,
        node: ast.expr,
        origins: Origins,
        attributes: Attributes,
    ) -> Binding:
        written = None if annotation is None else read_info(self.scope, annotation)
        right, implied = self._rights.read(node, written)
        info = implied if written is None else written
        if info is None and isinstance(right, Call):
            info = self._inferred(right, node)
        if info is None:
            raise self.source.error(
                target,
                f"value {target.id!r} needs an annotation",
                f"write {target.id}: Tensor[(...), f32] = ...",
            )
        value = self.values.define(target.id, info, target)
        binding = Binding(value, right, origins, attributes)
        self._introduce(defining_infos(binding))
        return binding

    def _introduce(self, infos: Iterable[Info]) -> None:
        """Note the symbols that annotations define."""
        self.symbols.update(t for i in infos for t in info_terms(i) if isinstance(t, Var))

    def _inferred(self, call: Call, node: ast.expr) -> Info:
        """Infer the annotation of a call with the shape rule of its operator."""
        from ...graph.operators import infer_call  # slow import; rarely needed

        try:
            return infer_call(call.op, call.args, call.attributes, self.facts).info
        except TilewrightError as error:
            location = self.source.location(node)
            message = f"{error.where}: {error.message}" if error.where else error.message
            hint = error.hint or f"operands are {operands_text(call.args)}"
            raise ScriptTypeError(message, location=location, hint=hint) from None

    def _effect(self, call: ast.Call, origins: Origins, attributes: Attributes) -> Binding:
        right, implied = self._rights.read(call, None)
        if implied is None:
            raise self.source.error(
                call,
                "the result of this call needs a name and an annotation",
                "write y: Tensor[(...), f32] = ...",
            )
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
                    call,
                    f"expected origin, attributes or binding after with, got {describe(call)}",
                    "write with origin(...), attributes(...) or binding(...):",
                )
            arguments = Arguments(self.source, call, f"with {name}(...):")
            if name == "origin":
                origins = frozenset(self.scope.string(n) for n in arguments.positional)
            elif name == "attributes":
                attributes = self.scope.attributes(arguments)
            else:
                return [self._named_switch(arguments, body, origins, attributes)]
        bindings: list[Binding] = []
        for node in body:
            bindings += self._statement(node, origins, attributes)
        return bindings

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
        name, annotation = arguments.take(2)
        arguments.finish()
        if len(body) != 1 or not isinstance(body[0], ast.If):
            raise arguments.error("expected a single if statement with symbolic guards as body")
        switch = VersionSwitch(tuple(self._cases(body[0])))
        info = read_info(self.scope, annotation)
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
        bindings = tuple(self.bindings(body))
        self.values.restore(before)
        return VersionCase(guard, bindings)

    def _if_else(self, node: ast.If, origins: Origins, attributes: Attributes) -> Binding:
        condition = self.values.operand(node.test)
        target, annotation, then = self._branch(node.body, node)
        other, _, otherwise = self._branch(node.orelse, node)
        if target.id != other.id:
            raise self.source.error(
                other,
                f"expected {target.id!r} as the result of the else branch, got {other.id!r}",
                "both branches must end with an assignment to the same name",
            )
        if annotation is None:
            raise self.source.error(
                target,
                f"value {target.id!r} needs an annotation",
                f"write {target.id}: Tensor[(...), f32] = ...",
            )
        value = self.values.define(target.id, read_info(self.scope, annotation), target)
        return Binding(value, IfElse(condition, then, otherwise), origins, attributes)

    def _branch(
        self, body: list[ast.stmt], whole: ast.If
    ) -> tuple[ast.Name, ast.expr | None, Branch]:
        """Parse a branch; its last statement assigns the result."""
        match body:
            case [*rest, ast.Assign(targets=[ast.Name() as target], value=value)]:
                annotation = None
            case [
                *rest,
                ast.AnnAssign(
                    target=ast.Name() as target, annotation=annotation, value=ast.expr() as value
                ),
            ]:
                pass
            case _:
                raise self.source.error(
                    body[-1] if body else whole,
                    "expected an assignment of the result at the end of a branch",
                    "end both branches with an assignment: y: Tensor[...] = t",
                )
        before = dict(self.values.values)
        bindings = tuple(self.bindings(rest))
        results = self.values.results(value)
        self.values.restore(before)
        return target, annotation, Branch(bindings, results)

    # ------------------------------------------------------------ loops

    def _loop(self, node: ast.FunctionDef, origins: Origins, attributes: Attributes) -> Binding:
        """Parse a loop, written as a nested function of the values of one iteration."""
        index, count = self._loop_head(node)
        given = self._loop_params(node)
        before, facts, outer = dict(self.values.values), self.facts, frozenset(self.symbols)
        carried, elements = ([self._loop_param(*g) for g in part] for part in given)
        params = tuple(carried), tuple(elements)
        empty = Loop(index, count, *params, None, Branch((), ()))
        self.facts = inner_facts(empty, facts)
        self.symbols.update(loop_symbols(empty))
        condition, body = self._loop_body(node)
        self.facts, self.symbols = facts, set(outer)
        self.values.restore(before)
        loop = Loop(index, count, *params, condition, body)
        info = self._loop_result(node, loop)
        self._introduce((info,))
        target = ast.copy_location(ast.Name(node.name), node)
        return Binding(self.values.define(node.name, info, target), loop, origins, attributes)

    def _loop_head(self, node: ast.FunctionDef) -> tuple[Var, Expr | None]:
        """Parse ``@loop(k, count=n)``."""
        usage = "@loop(k, count=n)"
        match node.decorator_list:
            case [ast.Call() as call] if called_name(call) == "loop":
                arguments = Arguments(self.source, call, usage)
            case _:
                raise self.source.error(
                    node,
                    f"nested function {node.name!r} is not a loop",
                    f"write {usage} above a loop; define other functions beside each other",
                )
        (written,) = arguments.take(1)
        counted = arguments.keyword("count")
        arguments.finish()
        index = self.scope.expr(written)
        if not isinstance(index, Var):
            raise arguments.error(f"expected a symbol as index, got {text_of(written)}", written)
        return index, None if counted is None else self.scope.expr(counted)

    def _loop_params(
        self, node: ast.FunctionDef
    ) -> tuple[list[tuple[ast.arg, Operand]], list[tuple[ast.arg, Operand]]]:
        """Parse the carried values and the stacked inputs in the scope outside of the loop."""
        args = node.args
        odd = [*args.posonlyargs, *args.kwonlyargs, args.vararg, args.kwarg]
        without = args.args[: len(args.args) - len(args.defaults)]
        for arg in (*filter(None, odd), *without):
            raise self.source.error(
                arg,
                f"value {arg.arg!r} of the loop has no initial value",
                f"write {arg.arg}: Tensor[(4,), f32] = x, or = each(xs) for a slice of xs",
            )
        carried: list[tuple[ast.arg, Operand]] = []
        elements: list[tuple[ast.arg, Operand]] = []
        for arg, given in zip(args.args, args.defaults, strict=True):
            if isinstance(given, ast.Call) and called_name(given) == "each":
                arguments = Arguments(self.source, given, "x: Tensor[(4,), f32] = each(xs)")
                (source,) = arguments.take(1)
                arguments.finish()
                elements.append((arg, self.values.operand(source)))
            else:
                carried.append((arg, self.values.operand(given)))
        return carried, elements

    def _loop_param(self, arg: ast.arg, given: Operand) -> LoopParam:
        if arg.annotation is None:
            raise self.source.error(
                arg, f"value {arg.arg!r} needs an annotation", "write h: Tensor[(4,), f32] = x"
            )
        info = read_info(self.scope, arg.annotation)
        return LoopParam(self.values.define(arg.arg, info, arg), given)

    def _loop_body(self, node: ast.FunctionDef) -> tuple[Branch | None, Branch]:
        """Parse the statements of the condition, ``while c:`` if there is one, and the body."""
        condition: Branch | None = None
        statements = statements_of(node)
        match statements:
            case [*first, ast.While(test=test, body=body, orelse=[])]:
                bindings = tuple(self.bindings(first))
                condition = Branch(bindings, (self.values.operand(test),))
                statements = body
            case _:
                pass
        rest, returned = _returned(self, node, statements)
        bindings = tuple(self.bindings(rest))
        results = self.values.results(returned)
        return condition, Branch(bindings, results)

    def _loop_result(self, node: ast.FunctionDef, loop: Loop) -> Info:
        """Parse the annotation of a loop; it is implied if nothing varies between iterations."""
        if node.returns is not None:
            return read_info(self.scope, node.returns)
        if implied_info(loop, self.symbols) is None:
            raise self.source.error(
                node,
                f"loop {node.name!r} needs an annotation, because a dimension varies, or the "
                "number of its iterations",
                f"write def {node.name}(...) -> Tensor[(u, 4), f32], with a new symbol u",
            )
        return loop_info(loop, self.symbols)


def _hints(scope: Scope, body: list[ast.stmt]) -> tuple[Hints, list[ast.stmt]]:
    """Parse leading ``hint("seq", 32, 128)`` lines; return the remaining statements too."""
    hints: list[tuple[str, tuple[int, ...]]] = []
    for position, statement in enumerate(body):
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or called_name(call) != "hint":
            return tuple(hints), body[position:]
        arguments = Arguments(scope.source, call, 'hint("n", 32, 128)')
        arguments.finish()
        if not arguments.positional:
            raise arguments.error("expected a symbol name and its likely values")
        node, *values = arguments.positional
        name = scope.string(node)
        if name not in scope.variables:
            raise unknown_name(scope.source, node, "symbol", name, scope.variables)
        hints.append((name, tuple(scope.integer(v) for v in values)))
    return tuple(hints), []


def _returned(
    reader: GraphReader, node: ast.FunctionDef, body: list[ast.stmt]
) -> tuple[list[ast.stmt], ast.expr]:
    match body:
        case [*rest, ast.Return(value=ast.expr() as value)]:
            return rest, value
        case _:
            last = body[-1] if body else node
            raise reader.source.error(
                last, f"function {node.name!r} must end with a return statement", "write return y"
            )


def _named_results(
    reader: GraphReader, node: ast.expr
) -> tuple[tuple[Operand, ...], tuple[str, ...]]:
    """Parse the operand of ``return y``, ``return y, z`` or ``return {"name": y}``."""
    if not isinstance(node, ast.Dict):
        return reader.values.results(node), ()
    keys = [k for k in node.keys if k is not None]
    if len(keys) != len(node.keys):
        raise reader.source.error(
            node, "expected a name for every result", 'write return {"name": y}'
        )
    return reader.values.operands(node.values), tuple(reader.scope.string(k) for k in keys)


def _last_values(
    reader: GraphReader, node: ast.expr, params: tuple[GraphParam, ...]
) -> tuple[ast.expr, tuple[Update, ...]]:
    """Parse ``updates(cache=c2)`` at the end of a return statement; return the rest, too."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    call = parts[-1] if parts else None
    if not isinstance(call, ast.Call) or called_name(call) != "updates":
        return node, ()
    arguments = Arguments(reader.source, call, "return y, updates(cache=c2)")
    arguments.take(0)
    known = {p.value.name: p.value for p in params}
    made: list[Update] = []
    for name, value in arguments.rest():
        if name not in known:
            raise unknown_name(reader.source, value, "parameter", name, known)
        made.append(Update(known[name], reader.values.operand(value)))
    rest = parts[:-1]
    if len(rest) == 1 and isinstance(rest[0], ast.Dict):
        return rest[0], tuple(made)
    whole = ast.copy_location(ast.Tuple(elts=rest, ctx=ast.Load()), node)
    return whole, tuple(made)


def _initial(reader: GraphReader, node: ast.expr) -> ConstantRef:
    """Parse the initial value of a state parameter."""
    found = reader.values.operand(node)
    if not isinstance(found, ConstantRef):
        raise reader.source.error(
            node,
            f"expected a constant as the initial value of a state, got {describe(node)}",
            'write cache: State[Tensor[(8,), f32], const("cache")]',
        )
    return found


def _parameter(reader: GraphReader, arg: ast.arg) -> GraphParam:
    annotation: ast.expr | None = arg.annotation
    access: AccessMode = "in"
    initial: ConstantRef | None = None
    match annotation:
        case ast.Subscript(value=ast.Name(id="State"), slice=ast.Tuple(elts=[inner, value])):
            annotation, access, initial = inner, "state", _initial(reader, value)
        case ast.Subscript(value=ast.Name(id=kind), slice=inner) if kind in ACCESS:
            annotation, access = inner, ACCESS[kind]
        case None:
            raise reader.source.error(
                arg, f"parameter {arg.arg!r} needs an annotation", "write x: Tensor[(n, 4), f32]"
            )
        case _:
            pass
    value = reader.values.define(arg.arg, read_info(reader.scope, annotation), arg)
    return GraphParam(value, access, initial)


def read_graph_func(
    source: Source,
    node: ast.FunctionDef,
    declared: Declarations,
    constants: Constants,
) -> GraphFunc:
    """Parse one graph-level function, given the symbols and constants declared above it."""
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
    reader.symbols = param_symbols(GraphFunc(node.name, params, (), ()))
    hints, rest = _hints(scope, rest)
    rest, returned = _returned(reader, node, rest)
    bindings = tuple(reader.bindings(rest))
    own, updates = _last_values(reader, returned, params)
    results, result_names = _named_results(reader, own)
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
        updates,
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
