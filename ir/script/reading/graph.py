"""Graph-level functions from Python's syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from ...dtype import DTYPES, bool_, f32, i64
from ...graph.memory import (
    AllocStorage,
    Check,
    Kill,
    Launch,
    LaunchLibrary,
    VersionCase,
    VersionSwitch,
    ViewTensor,
)
from ...graph.nodes import (
    Binding,
    Branch,
    Call,
    CallDPSLibrary,
    CallGraph,
    CallTIR,
    ConstantRef,
    Dims,
    GraphFunc,
    GraphParam,
    IfElse,
    Info,
    KernelVersion,
    MakeTuple,
    MatchCast,
    ObjectInfo,
    Operand,
    Right,
    ScalarLiteral,
    Stage,
    TensorInfo,
    TupleInfo,
    TupleItem,
    Value,
)
from ...identity import NO_ORIGIN, Origins, UidSource
from ...loop.nodes import Attributes
from ...module import Constant
from ...symbolic import TRUE, Bool, Expr, as_expr
from ..errors import DuplicateNameError, UnknownNameError
from .arguments import Arguments, called_name
from .header import Declarations, decorator_of, signature, statements_of, take_facts
from .infos import read_info
from .loop import ACCESS
from .scope import Scope, listed
from .source import Source

EFFECT: Final = "_"
_PLAIN = {float: f32, int: i64, bool: bool_}
Implied: TypeAlias = "Info | None"
Hints: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]


class GraphReader:
    """Reads the bindings of one function, entering values as they are defined."""

    def __init__(self, scope: Scope, constants: Mapping[str, Constant]) -> None:
        """Take the annotations of constants from ``constants``."""
        self.scope = scope
        self.source = scope.source
        self.mint = UidSource()
        self.values: dict[str, Value] = {}
        self._constants = constants
        self._forms: dict[str, Callable[[ast.Call, Implied], tuple[Right, Implied]]] = {
            "call_tir": self._call_tir,
            "call_library": self._call_library,
            "call": self._call_graph,
            "match_cast": self._match_cast,
            "op": self._named_op,
            "alloc_storage": self._alloc_storage,
            "view": self._view,
            "launch": self._launch,
            "launch_library": self._launch_library,
            "kill": self._kill,
            "check": self._check,
        }

    # ------------------------------------------------------------ values

    def define(self, name: str, info: Info, node: ast.expr | ast.arg) -> Value:
        """Enter a value under a new name; ``_`` is the name of all that nothing uses."""
        if name in self.values:
            raise DuplicateNameError(
                f"two values {name!r}; a value is defined once", place=self.source.place(node)
            )
        value = Value(self.mint(), name, info)
        if name != EFFECT:
            self.values[name] = value
        return value

    def value(self, node: ast.expr) -> Value:
        """Read the name of a value."""
        if not isinstance(node, ast.Name):
            raise self.source.error(node, "the name of a value is expected here")
        if node.id not in self.values:
            raise UnknownNameError(
                f"no value {node.id!r}; values are {listed(self.values)}",
                place=self.source.place(node),
            )
        return self.values[node.id]

    def operand(self, node: ast.expr) -> Operand:
        """Read an operand: a value, a constant, a literal, a tuple of symbolic integers."""
        number = self.scope.number(node)
        if number is not None:
            return ScalarLiteral(number, _PLAIN[type(number)])
        match node:
            case ast.Tuple(elts=dims):
                return Dims(self.scope.exprs(dims))
            case ast.Call(func=ast.Name(id="const")):
                return self._constant(node)
            case ast.Call(func=ast.Name(id=name), args=[inner]) if name in DTYPES:
                literal = self.scope.number(inner)
                if literal is None:
                    raise self.source.error(inner, "a number is expected here")
                return ScalarLiteral(literal, DTYPES[name])
            case ast.Call():
                raise self.source.error(
                    node, "an operand is no call", "bind the call to a name of its own first"
                )
            case _:
                return self.value(node)

    def operands(self, nodes: list[ast.expr]) -> tuple[Operand, ...]:
        """Read several operands."""
        return tuple(self.operand(n) for n in nodes)

    def _constant(self, node: ast.Call) -> ConstantRef:
        arguments = Arguments(self.source, node, 'const("key"), or const("key", Tensor[...])')
        key_node, *infos = arguments.take(1, 2)
        arguments.finish()
        key = self.scope.string(key_node)
        if infos:
            info = read_info(self.scope, infos[0])
            if not isinstance(info, TensorInfo):
                raise self.source.error(infos[0], "a constant is a Tensor")
            return ConstantRef(key, info)
        if key not in self._constants:
            raise UnknownNameError(
                f"no constant {key!r}; constants above are {listed(self._constants)}",
                place=self.source.place(key_node),
                hint=f'write its annotation: const("{key}", Tensor[(...), f32])',
            )
        known = self._constants[key]
        return ConstantRef(key, TensorInfo(tuple(map(as_expr, known.shape)), known.dtype))

    # ------------------------------------------------------------ bindings

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
            case ast.AnnAssign(target=ast.Name() as target, annotation=note, value=ast.expr() as value):
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
        right, implied = self._right(node, written)
        info = implied if written is None else written
        if info is None:
            raise self.source.error(
                target,
                f"value {target.id!r} needs an annotation",
                f"{target.id}: Tensor[(...), f32] = ...",
            )
        return Binding(self.define(target.id, info, target), right, origins, attributes)

    def _effect(self, call: ast.Call, origins: Origins, attributes: Attributes) -> Binding:
        right, implied = self._right(call, None)
        if implied is None:
            raise self.source.error(call, "the result of this call needs a name and an annotation")
        return Binding(self.define(EFFECT, implied, call), right, origins, attributes)

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
            value = self.define(EFFECT, ObjectInfo(), node.test)
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
        return Binding(self.define(self.scope.string(name), info, name), switch, origins, attributes)

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
        before = dict(self.values)
        made = tuple(self.bindings(body))
        self._forget(before)
        return VersionCase(guard, made)

    def _forget(self, before: Mapping[str, Value]) -> None:
        """Leave a branch: what it defined is out of scope."""
        self.values = dict(before)

    def _if_else(self, node: ast.If, origins: Origins, attributes: Attributes) -> Binding:
        condition = self.operand(node.test)
        target, note, then = self._side(node.body, node)
        other, _, otherwise = self._side(node.orelse, node)
        if target.id != other.id:
            raise self.source.error(
                other, f"the other branch gives {target.id!r}", "both give a value of one name"
            )
        if note is None:
            raise self.source.error(target, f"value {target.id!r} needs an annotation")
        value = self.define(target.id, read_info(self.scope, note), target)
        return Binding(value, IfElse(condition, then, otherwise), origins, attributes)

    def _side(
        self, body: list[ast.stmt], whole: ast.If
    ) -> tuple[ast.Name, ast.expr | None, Branch]:
        """Read a branch; its last statement names the result."""
        match body:
            case [*rest, ast.Assign(targets=[ast.Name() as target], value=value)]:
                note = None
            case [*rest, ast.AnnAssign(target=ast.Name() as target, annotation=note, value=ast.expr() as value)]:
                pass
            case _:
                raise self.source.error(
                    body[-1] if body else whole,
                    "a branch ends with its result",
                    "y: Tensor[...] = t in both branches",
                )
        before = dict(self.values)
        made = tuple(self.bindings(rest))
        results = self.results(value)
        self._forget(before)
        return target, note, Branch(made, results)

    def results(self, node: ast.expr) -> tuple[Operand, ...]:
        """Read what a function or a branch gives."""
        if isinstance(node, ast.Tuple):
            return self.operands(node.elts)
        return (self.operand(node),)

    # ------------------------------------------------------------ right-hand sides

    def _right(self, node: ast.expr, written: Implied) -> tuple[Right, Implied]:
        match node:
            case ast.Tuple(elts=parts):
                return MakeTuple(self.operands(parts)), None
            case ast.Subscript(value=whole, slice=index):
                tuple_ = self.value(whole)
                return TupleItem(tuple_, self.scope.integer(index)), _field(tuple_.info, index)
            case ast.Call():
                name = called_name(node)
                if name is None:
                    raise self.source.error(node, "an operator has a name")
                if name in self._forms:
                    return self._forms[name](node, written)
                return self._operator(node, name, 0), None
            case _:
                raise self.source.error(
                    node, "a right-hand side is a call, a tuple, or a field of a tuple"
                )

    def _arguments(self, node: ast.Call, usage: str) -> Arguments:
        return Arguments(self.source, node, usage)

    def _operator(self, node: ast.Call, name: str, skip: int) -> Call:
        arguments = self._arguments(node, f"{name}(operands, attribute=value)")
        operands = self.operands(arguments.positional[skip:])
        return Call(name, operands, self.scope.attributes(arguments))

    def _named_op(self, node: ast.Call, _: Implied) -> tuple[Right, Implied]:
        if not node.args:
            raise self.source.error(node, 'the name of an operator is expected: op("name", x)')
        return self._operator(node, self.scope.string(node.args[0]), 1), None

    def _function_name(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return node.id
        raise self.source.error(node, "the name of a function is expected here")

    def _outputs(self, arguments: Arguments, written: Implied) -> tuple[TensorInfo, ...]:
        node = arguments.keyword("outputs")
        if node is None:
            fields = written.fields if isinstance(written, TupleInfo) else (written,)
        elif isinstance(node, ast.Tuple):
            fields = tuple(read_info(self.scope, n) for n in node.elts)
        else:
            raise arguments.error("outputs are a tuple of annotations", node)
        tensors = tuple(f for f in fields if isinstance(f, TensorInfo))
        if len(tensors) != len(fields):
            raise arguments.error(
                "the outputs of this call are not known: annotate the value as a Tensor or a "
                "Tuple of Tensors, or give outputs=(Tensor[...],)"
            )
        return tensors

    def _scalars(self, arguments: Arguments) -> tuple[Expr, ...]:
        node = arguments.keyword("scalars")
        return () if node is None else self.scope.dims(node)

    def _versions(self, arguments: Arguments) -> tuple[KernelVersion, ...]:
        node = arguments.keyword("versions")
        if node is None:
            return ()
        if not isinstance(node, ast.Tuple):
            raise arguments.error("versions are a tuple: (when(n == 1, gemv),)", node)
        return tuple(self._version(n) for n in node.elts)

    def _version(self, node: ast.expr) -> KernelVersion:
        if not isinstance(node, ast.Call) or called_name(node) != "when":
            raise self.source.error(node, "a version is when(guard, function)")
        arguments = self._arguments(node, "when(guard, function, scalars=(n,))")
        guard, function = arguments.take(2)
        scalars = self._scalars(arguments)
        arguments.finish()
        return KernelVersion(self.scope.predicate(guard), self._function_name(function), scalars)

    def _call_tir(self, node: ast.Call, written: Implied) -> tuple[Right, Implied]:
        arguments = self._arguments(node, "call_tir(function, operands, scalars=(n,))")
        function, *operands = self._at_least_one(arguments)
        outputs = self._outputs(arguments, written)
        scalars, versions = self._scalars(arguments), self._versions(arguments)
        arguments.finish()
        name, args = self._function_name(function), self.operands(operands)
        implied = outputs[0] if len(outputs) == 1 else TupleInfo(outputs)
        return CallTIR(name, args, outputs, scalars, versions), implied

    @staticmethod
    def _at_least_one(arguments: Arguments) -> list[ast.expr]:
        if not arguments.positional:
            raise arguments.error("the first argument names what is called")
        return arguments.positional

    def _call_library(self, node: ast.Call, written: Implied) -> tuple[Right, Implied]:
        arguments = self._arguments(node, 'call_library("symbol", operands, attribute=value)')
        symbol, *operands = self._at_least_one(arguments)
        outputs = self._outputs(arguments, written)
        attributes = self.scope.attributes(arguments)
        name, args = self.scope.string(symbol), self.operands(operands)
        implied = outputs[0] if len(outputs) == 1 else TupleInfo(outputs)
        return CallDPSLibrary(name, args, outputs, attributes), implied

    def _call_graph(self, node: ast.Call, _: Implied) -> tuple[Right, Implied]:
        arguments = self._arguments(node, "call(function, operands)")
        function, *operands = self._at_least_one(arguments)
        arguments.finish()
        return CallGraph(self._function_name(function), self.operands(operands)), None

    def _match_cast(self, node: ast.Call, _: Implied) -> tuple[Right, Implied]:
        arguments = self._arguments(node, "match_cast(x, Tensor[(n, 4), f32])")
        operand, note = arguments.take(2)
        arguments.finish()
        info = read_info(self.scope, note)
        return MatchCast(self.operand(operand), info), info

    # ------------------------------------------------------------ memory stage

    def _alloc_storage(self, node: ast.Call, _: Implied) -> tuple[Right, Implied]:
        arguments = self._arguments(node, 'alloc_storage(bytes, device="cpu", alignment=64)')
        (size,) = arguments.take(1)
        device, alignment = arguments.keyword("device"), arguments.keyword("alignment")
        arguments.finish()
        made = AllocStorage(
            self.scope.expr(size),
            "cpu" if device is None else self.scope.string(device),
            64 if alignment is None else self.scope.integer(alignment),
        )
        return made, ObjectInfo()

    def _view(self, node: ast.Call, _: Implied) -> tuple[Right, Implied]:
        arguments = self._arguments(node, "view(storage, offset, Tensor[(n, 4), f32])")
        storage, offset, note = arguments.take(3)
        arguments.finish()
        info = read_info(self.scope, note)
        if not isinstance(info, TensorInfo):
            raise self.source.error(note, "a view is a Tensor")
        return ViewTensor(self.value(storage), self.scope.expr(offset), info), info

    def _launch(self, node: ast.Call, _: Implied) -> tuple[Right, Implied]:
        arguments = self._arguments(node, "launch(function, operands, scalars=(n,))")
        function, *operands = self._at_least_one(arguments)
        scalars, versions = self._scalars(arguments), self._versions(arguments)
        arguments.finish()
        name, args = self._function_name(function), self.operands(operands)
        return Launch(name, args, scalars, versions), ObjectInfo()

    def _launch_library(self, node: ast.Call, _: Implied) -> tuple[Right, Implied]:
        arguments = self._arguments(node, 'launch_library("symbol", operands, outputs=(y,))')
        symbol, *operands = self._at_least_one(arguments)
        outputs = arguments.keyword("outputs")
        arguments.finish()
        if not isinstance(outputs, ast.Tuple):
            raise arguments.error("outputs are a tuple of values")
        name, args = self.scope.string(symbol), self.operands(operands)
        return LaunchLibrary(name, args, self.operands(outputs.elts)), ObjectInfo()

    def _kill(self, node: ast.Call, _: Implied) -> tuple[Right, Implied]:
        arguments = self._arguments(node, "kill(value)")
        arguments.finish()
        return Kill(self.value(arguments.take(1)[0])), ObjectInfo()

    def _check(self, node: ast.Call, _: Implied) -> tuple[Right, Implied]:
        arguments = self._arguments(node, 'check(n % 8 == 0, "message")')
        predicate, message = arguments.take(2)
        arguments.finish()
        return Check(self.scope.predicate(predicate), self.scope.string(message)), ObjectInfo()


def _field(info: Info, index: ast.expr) -> Implied:
    position = index.value if isinstance(index, ast.Constant) else None
    fields = info.fields if isinstance(info, TupleInfo) else ()
    return fields[position] if isinstance(position, int) and 0 <= position < len(fields) else None


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
        return reader.results(node), ()
    keys = [k for k in node.keys if k is not None]
    if len(keys) != len(node.keys):
        raise reader.source.error(node, "a dictionary of results names each of them")
    return reader.operands(node.values), tuple(reader.scope.string(k) for k in keys)


def _parameter(reader: GraphReader, arg: ast.arg) -> GraphParam:
    note, access = arg.annotation, "in"
    match note:
        case ast.Subscript(value=ast.Name(id=kind), slice=inner) if kind in ACCESS:
            note, access = inner, ACCESS[kind]
        case None:
            raise reader.source.error(
                arg, f"parameter {arg.arg!r} needs an annotation", "x: Tensor[(n, 4), f32]"
            )
        case _:
            pass
    return GraphParam(reader.define(arg.arg, read_info(reader.scope, note), arg), access)


def read_graph_func(
    source: Source,
    node: ast.FunctionDef,
    declared: Declarations,
    constants: Mapping[str, Constant],
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
