"""Translation of run-time library functions from a Python subset to host IR.

:mod:`.language` describes the subset. The source is parsed, not executed. Syntax outside of the
subset is rejected with its line.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NoReturn, get_type_hints

from ...errors import TilewrightError
from ...ir.host import nodes as host
from .language import RTLIB_FUNCTIONS, Code, Ptr

_LOADS: Mapping[str, host.Width] = {
    "load_u8": "u8",
    "load_u16": "u16",
    "load_i32": "i32",
    "load_i64": "i64",
    "load_ptr": "ptr",
}
_STORES: Mapping[str, host.Width] = {
    "store_u8": "u8",
    "store_u16": "u16",
    "store_i32": "i32",
    "store_i64": "i64",
    "store_ptr": "ptr",
}
_CALLS: Mapping[str, host.Kind | None] = {
    "call_int": "int",
    "call_ptr": "ptr",
    "call_code": "code",
    "call_nothing": None,
}
_ARITHMETIC: Mapping[type[ast.operator], host.BinaryOp] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "shl",
    ast.RShift: "shr",
}
_COMPARISONS: Mapping[type[ast.cmpop], host.CompareOp] = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}


class HostSyntaxError(TilewrightError):
    """Run-time library code that uses syntax outside of the supported Python subset."""

    title = "Unsupported run-time library syntax"


def kind_of(value: host.Value) -> host.Kind:
    """Return the kind of a value: integer, address, or error code."""
    match value:
        case host.Local(kind=kind):
            return kind
        case host.NullPointer() | host.Moved() | host.FunctionPointer() | host.Static():
            return "ptr"
        case host.Read(width="ptr"):
            return "ptr"
        case _:
            return "int"


def _kind_of_type(annotation: object) -> host.Kind | None:
    kinds: dict[object, host.Kind] = {int: "int", bool: "int", Ptr: "ptr", Code: "code"}
    return kinds.get(annotation)


class _Translator:
    """A translator of one function; ``out`` is the statement list under construction."""

    def __init__(
        self, name: str, function: Callable[..., Any], known: Mapping[str, Callable[..., Any]]
    ) -> None:
        self.name = name
        self.known = known
        self.globals = function.__globals__
        self.locals: dict[str, host.Local] = {}
        self.out: list[host.Statement] = []
        self.returns: host.Kind | None = None
        self.fresh = 0

    def error(self, node: ast.AST, reason: str) -> HostSyntaxError:
        line = getattr(node, "lineno", 0)
        return HostSyntaxError(
            f"{reason}: {ast.unparse(node)}",
            where=f"function {self.name}, line {line}",
            hint="codegen/rtlib/language.py describes the supported Python subset",
        )

    def fail(self, node: ast.AST, reason: str) -> NoReturn:
        raise self.error(node, reason)

    def function(self, tree: ast.FunctionDef, hints: Mapping[str, Any]) -> host.HostFunc:
        params: list[host.Local] = []
        for argument in tree.args.args:
            kind = _kind_of_type(hints.get(argument.arg)) or self.fail(
                argument, "parameter is not of type int, bool, Ptr, or Code"
            )
            params.append(self.local(argument.arg, kind))
        self.returns = _kind_of_type(hints.get("return"))
        body = self.block(tree.body)
        return host.HostFunc(self.name, tuple(params), body, self.returns)

    def local(self, name: str, kind: host.Kind) -> host.Local:
        found = self.locals.setdefault(name, host.Local(name, kind))
        if found.kind != kind:
            raise HostSyntaxError(
                f"variable {name!r} of kind {found.kind} is assigned a value of kind {kind}",
                where=f"function {self.name}",
                hint="use another variable name",
            )
        return found

    def temporary(self, kind: host.Kind) -> host.Local:
        self.fresh += 1
        return self.local(f"t{self.fresh}", kind)

    def block(self, statements: list[ast.stmt]) -> host.Body:
        outer, self.out = self.out, []
        for statement in statements:
            self.statement(statement)
        inner, self.out = self.out, outer
        return tuple(inner)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                pass
            case ast.Expr(value=ast.Call() as call):
                self.call(call, use_result=False)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.assign(name, self.value(value))
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                old = self.locals.get(name) or self.fail(
                    node, "the variable is read before it is assigned"
                )
                self.assign(name, self.arithmetic(node, op, old, self.value(value)))
            case ast.If(test=test, body=body, orelse=orelse):
                condition = self.value(test)
                self.out.append(host.When(condition, self.block(body), self.block(orelse)))
            case ast.While(test=test, body=body, orelse=[]):
                self.out.append(host.While(self.pure(test), self.block(body)))
            case ast.For(target=ast.Name(id=name), iter=ast.Call() as range_, body=body, orelse=[]):
                self.for_range(name, range_, body)
            case ast.Return(value=value):
                self.out.append(host.Return(None if value is None else self.value(value)))
            case _:
                raise self.error(node, "unsupported statement")

    def assign(self, name: str, value: host.Value) -> None:
        self.out.append(host.Assign(self.local(name, kind_of(value)), value))

    def for_range(self, name: str, range_: ast.Call, body: list[ast.stmt]) -> None:
        match range_:
            case ast.Call(func=ast.Name(id="range"), args=[stop]):
                start: host.Value = host.Integer(0)
            case ast.Call(func=ast.Name(id="range"), args=[first, stop]):
                start = self.value(first)
            case _:
                raise self.error(range_, "expected range(stop) or range(start, stop)")
        bound = self.temporary("int")
        self.out.append(host.Assign(bound, self.value(stop)))
        index = self.local(name, "int")
        self.out.append(host.Assign(index, start))
        step = host.Assign(index, host.Arithmetic("add", index, host.Integer(1)))
        condition = host.Comparison("lt", index, bound)
        self.out.append(host.While(condition, (*self.block(body), step)))

    def pure(self, node: ast.expr) -> host.Value:
        before = len(self.out)
        value = self.value(node)
        if len(self.out) != before:
            raise self.error(node, "a condition of `while` must not contain calls")
        return value

    def value(self, node: ast.expr) -> host.Value:
        match node:
            case ast.Constant(value=int(number)):
                return host.Integer(int(number))
            case ast.Name(id=name):
                return self.name_value(node, name)
            case ast.Attribute():
                return self.constant(node)
            case ast.BinOp(left=left, op=op, right=right):
                return self.arithmetic(node, op, self.value(left), self.value(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return host.Arithmetic("sub", host.Integer(0), self.value(operand))
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return host.Arithmetic("xor", self.value(operand), host.Integer(-1))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return host.Negation(self.value(operand))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                comparison = _COMPARISONS[type(op)]
                return host.Comparison(comparison, self.value(left), self.value(right))
            case ast.BoolOp(op=op, values=values):
                return self.connective(op, [self.value(v) for v in values])
            case ast.Call():
                found = self.call(node, use_result=True)
                return found if found is not None else self.fail(node, "call without a result")
            case _:
                raise self.error(node, "unsupported expression")

    @staticmethod
    def connective(op: ast.boolop, values: list[host.Value]) -> host.Value:
        combined = values[0]
        for value in values[1:]:
            both = isinstance(op, ast.And)
            combined = host.Both(combined, value) if both else host.Either(combined, value)
        return combined

    def arithmetic(
        self, node: ast.AST, op: ast.operator, left: host.Value, right: host.Value
    ) -> host.Value:
        if "ptr" in (kind_of(left), kind_of(right)):
            raise self.error(node, "arithmetic on an address; use move(address, bytes)")
        return host.Arithmetic(_ARITHMETIC[type(op)], left, right)

    def name_value(self, node: ast.expr, name: str) -> host.Value:
        if name in self.locals:
            return self.locals[name]
        if name == "NULL":
            return host.NullPointer()
        return self.constant(node)

    def constant(self, node: ast.expr) -> host.Value:
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=name):
                found: object = getattr(self.globals.get(module), name, None)
            case ast.Name(id=name):
                found = self.globals.get(name)
            case _:
                found = None
        if not isinstance(found, int):
            raise self.error(node, "neither a variable nor an integer constant of a module")
        return host.Integer(found)

    def call(self, node: ast.Call, *, use_result: bool) -> host.Value | None:
        if not isinstance(node.func, ast.Name):
            raise self.error(node, "the called function is not a plain name")
        name = node.func.id
        if name == "function":
            return self.address(node)
        args = [self.value(a) for a in node.args]
        if name in _LOADS:
            return host.Read(_LOADS[name], args[0], args[1])
        if name in _STORES:
            self.out.append(host.Write(_STORES[name], args[0], args[1], args[2]))
            return None
        if name in _CALLS:
            return self.invoke(args[0], tuple(args[1:]), _CALLS[name] if use_result else None)
        return self.intrinsic(node, name, args, use_result=use_result)

    def intrinsic(
        self, node: ast.Call, name: str, args: list[host.Value], *, use_result: bool
    ) -> host.Value | None:
        match name, args:
            case "move", [base, offset]:
                return host.Moved(base, offset)
            case "number", [base]:
                return host.Numeric(base)
            case ("min" | "max") as op, [left, right]:
                return host.Arithmetic(op, left, right)
            case "Code", [value]:
                return value
            case "widen", [value]:
                wide = self.temporary("int")
                self.out.append(host.Assign(wide, value))
                return wide
            case "stack", [host.Integer(size)]:
                memory = self.temporary("ptr")
                self.out.append(host.Reserve(memory, size))
                return memory
            case "exchange", [base, offset, expected, desired]:
                old = self.temporary("int")
                self.out.append(host.Exchange(base, offset, expected, desired, old))
                return old
            case "publish", [base, offset, value]:
                self.out.append(host.Publish(base, offset, value))
                return None
            case "observe", [base, offset]:
                seen = self.temporary("int")
                self.out.append(host.Observe(base, offset, seen))
                return seen
            case "pause", []:
                self.out.append(host.Pause())
                return None
            case _:
                return self.library_call(node, name, tuple(args), use_result=use_result)

    def library_call(
        self, node: ast.Call, name: str, args: tuple[host.Value, ...], *, use_result: bool
    ) -> host.Value | None:
        callee = self.known.get(f"tw_{name}") or self.fail(
            node, f"unknown function {name!r}, or wrong number of arguments of an intrinsic"
        )
        returns = _kind_of_type(get_type_hints(callee).get("return"))
        return self.invoke(f"tw_{name}", args, returns if use_result else None)

    def address(self, node: ast.Call) -> host.Value:
        match node.args:
            case [ast.Name(id=name)] if f"tw_{name}" in self.known:
                return host.FunctionPointer(f"tw_{name}")
            case _:
                raise self.error(
                    node, "function() requires the name of a run-time library function"
                )

    def invoke(
        self, callee: str | host.Value, args: tuple[host.Value, ...], returns: host.Kind | None
    ) -> host.Value | None:
        result = None if returns is None else self.temporary(returns)
        self.out.append(host.Invoke(callee, args, result))
        return result


def translate(
    name: str,
    function: Callable[..., Any],
    known: Mapping[str, Callable[..., Any]] = RTLIB_FUNCTIONS,
) -> host.HostFunc:
    """Translate one function to host IR; ``known`` are the functions that it may call, by symbol.

    Raises
    ------
    HostSyntaxError
        If the source uses syntax outside of the subset; the error contains the line.

    Examples
    --------
    >>> from .planner import live_ranges_overlap
    >>> translate("overlap", live_ranges_overlap).returns
    'int'
    """
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise HostSyntaxError("not a function", where=name)
    return _Translator(name, function, known).function(tree, get_type_hints(function))


@cache
def rtlib_functions() -> tuple[host.HostFunc, ...]:
    """Translate all functions of the run-time library, in the order of definition."""
    from .. import rtlib as _  # noqa: F401  # the import registers the functions

    return tuple(translate(name, function) for name, function in RTLIB_FUNCTIONS.items())
