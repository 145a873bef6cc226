"""Lowering of host IR to thread IR, with explicit addresses and widths."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import assert_never

from ....ir.dtype import DType, f32, f64, i32, i64, u8, u16
from ....ir.host import nodes as host
from ....ir.symbolic import Expr, as_expr
from ....ir.thread import nodes as thread, runtime_table, types
from ....ir.thread.function import ThreadFunc
from ...rtlib import layout

CODE_CHECK = 3
"""The return code of a host function after a failed guard; the call record contains its number."""

_I32 = types.VectorType(i32)
_WIDTHS: Mapping[host.Width, DType] = {
    "u8": u8,
    "u16": u16,
    "i32": i32,
    "i64": i64,
    "f32": f32,
    "f64": f64,
}
_TYPES: Mapping[host.Kind, types.Type] = {
    "int": types.INDEX,
    "ptr": types.POINTER,
    "code": _I32,
}


def _width_type(width: host.Width) -> types.Type:
    return types.POINTER if width == "ptr" else types.VectorType(_WIDTHS[width])


def _cast(value: thread.Value, to: types.VectorType) -> thread.Value:
    return value if value.type == to else thread.Cast(to, value)


class _Lowering:
    """The lowering of one host function, with one register per local variable."""

    def __init__(self, function: host.HostFunc) -> None:
        self.function = function
        self.regs: dict[host.Local, thread.Reg] = {}

    def reg(self, local: host.Local) -> thread.Reg:
        if local not in self.regs:
            self.regs[local] = thread.Reg(local.name, _TYPES[local.kind])
        return self.regs[local]

    def value(self, value: host.Value) -> thread.Value:
        match value:
            case host.Local():
                return self.reg(value)
            case host.Integer(number):
                return thread.Const(number, types.INDEX)
            case host.NullPointer():
                return thread.Null()
            case host.Term(expr):
                return thread.Index(expr)
            case host.Claim(predicate):
                return thread.Predicate(predicate)
            case host.Arithmetic(op, left, right):
                return thread.Binary(op, self.integer(left), self.integer(right))
            case host.Comparison(op, left, right):
                return thread.Compare(op, self.integer(left), self.integer(right))
            case host.Both(left, right):
                return thread.Binary("and", self.bit(left), self.bit(right))
            case host.Either(left, right):
                return thread.Binary("or", self.bit(left), self.bit(right))
            case host.Negation(operand):
                return thread.Unary("not", self.bit(operand))
            case host.Read(width, base, offset):
                return thread.Load(_width_type(width), self.address(base, offset))
            case host.Moved(base, offset):
                return self.moved(base, offset)
            case host.Numeric(base):
                return thread.Bitcast(types.INDEX, self.value(base))
            case host.FunctionPointer(name):
                return thread.FunctionAddress(name)
            case host.Static(name, words):
                return thread.Data(name, struct.pack(f"<{len(words)}q", *words))
            case _:
                assert_never(value)

    def integer(self, value: host.Value) -> thread.Value:
        lowered = self.value(value)
        if isinstance(lowered.type, types.PointerType):
            return thread.Bitcast(types.INDEX, lowered)
        return _cast(lowered, types.INDEX)

    def pointer(self, value: host.Value) -> thread.Value:
        lowered = self.value(value)
        if isinstance(lowered.type, types.PointerType):
            return lowered
        return thread.Bitcast(types.POINTER, _cast(lowered, types.INDEX))

    def bit(self, value: host.Value) -> thread.Value:
        lowered = self.value(value)
        if lowered.type == types.BIT:
            return lowered
        return thread.Compare("ne", self.integer(value), thread.Const(0, types.INDEX))

    def as_kind(self, value: host.Value, kind: host.Kind) -> thread.Value:
        match kind:
            case "int":
                return self.integer(value)
            case "ptr":
                return self.pointer(value)
            case "code":
                return _cast(self.value(value), _I32)
            case _:
                assert_never(kind)

    def argument(self, value: host.Value) -> thread.Value:
        lowered = self.value(value)
        return thread.Cast(types.INDEX, lowered) if lowered.type == types.BIT else lowered

    def moved(self, base: host.Value, offset: host.Value) -> thread.Value:
        match offset:
            case host.Integer(number):
                return thread.Offset(self.pointer(base), as_expr(number))
            case host.Term(expr):
                return thread.Offset(self.pointer(base), expr)
            case _:
                total = thread.Binary("add", self.integer(base), self.integer(offset))
                return thread.Bitcast(types.POINTER, total)

    def address(self, base: host.Value, offset: host.Value) -> thread.Address:
        constant: Expr | None = None
        match offset:
            case host.Integer(number):
                constant = as_expr(number)
            case host.Term(expr):
                constant = expr
            case _:
                pass
        if constant is not None:
            return thread.Address(self.pointer(base), constant)
        return thread.Address(self.moved(base, offset), as_expr(0))

    def body(self, statements: host.Body) -> thread.Body:
        return tuple(s for statement in statements for s in self.statement(statement))

    def statement(self, statement: host.Statement) -> Iterator[thread.Stmt]:
        match statement:
            case host.Assign(target, value):
                yield thread.Assign(self.reg(target), self.as_kind(value, target.kind))
            case host.BindSymbol(symbol, value):
                yield thread.Let(symbol, self.integer(value))
            case host.Write(width, base, offset, value):
                yield thread.Store(self.address(base, offset), self.stored(value, width))
            case host.Invoke(callee, args, result):
                yield self.invoke(callee, args, result)
            case host.HostLaunch():
                yield from self.launch(statement)
            case host.Guard():
                yield self.guard(statement)
            case host.When(condition, then, otherwise):
                yield thread.If(self.bit(condition), self.body(then), self.body(otherwise))
            case host.While(condition, body):
                yield thread.While(self.bit(condition), self.body(body))
            case host.Reserve(target, size):
                yield thread.Allocate(self.reg(target), size)
            case host.Return(value):
                yield self.leave(value)
            case host.Pause():
                yield thread.Pause()
            case host.Exchange() | host.Publish() | host.Observe():
                yield self.atomic(statement)
            case _:
                assert_never(statement)

    def atomic(self, statement: host.Exchange | host.Publish | host.Observe) -> thread.Stmt:
        address = self.address(statement.base, statement.offset)
        address = thread.Address(address.base, address.offset, 8)
        match statement:
            case host.Exchange(expected=expected, desired=desired, result=result):
                old, new = self.integer(expected), self.integer(desired)
                return thread.CompareExchange(address, old, new, self.reg(result))
            case host.Publish(value=value):
                return thread.AtomicStore(address, self.integer(value))
            case host.Observe(result=result):
                return thread.AtomicLoad(address, self.reg(result))
            case _:
                assert_never(statement)

    def stored(self, value: host.Value, width: host.Width) -> thread.Value:
        if width == "ptr":
            return self.pointer(value)
        return _cast(self.integer(value), types.VectorType(_WIDTHS[width]))

    def invoke(
        self, callee: str | host.Value, args: tuple[host.Value, ...], result: host.Local | None
    ) -> thread.Stmt:
        target = callee if isinstance(callee, str) else self.pointer(callee)
        register = None if result is None else self.reg(result)
        return thread.Call(target, tuple(self.argument(a) for a in args), register)

    def leave(self, value: host.Value | None) -> thread.Stmt:
        if value is None:
            return thread.Return()
        return thread.Return(self.as_kind(value, self.function.returns or "int"))

    def guard(self, guard: host.Guard) -> thread.Stmt:
        writes = [
            host.Write("i64", guard.call, host.Integer(layout.CALL_SITE), host.Integer(guard.site))
        ]
        writes += [
            host.Write("i64", guard.call, host.Integer(layout.CALL_NUMBERS + 8 * k), number)
            for k, number in enumerate(guard.numbers)
        ]
        failing = (*self.body(tuple(writes)), thread.Return(thread.Const(CODE_CHECK, _I32)))
        return thread.If(thread.Unary("not", self.bit(guard.condition)), failing)

    def profile(self, launch: host.HostLaunch, phase: int) -> thread.Stmt:
        entry = host.Read("ptr", launch.table, host.Integer(runtime_table.PROFILE))
        args = (launch.call, host.Integer(launch.ordinal), host.Integer(phase))
        wanted = host.Comparison("ne", launch.sink, host.NullPointer())
        return thread.If(self.bit(wanted), (self.invoke(entry, args, None),))

    def launch(self, launch: host.HostLaunch) -> Iterator[thread.Stmt]:
        code = thread.Reg(f"code{launch.ordinal}", _I32)
        scratch = () if launch.scratch is None else (launch.scratch,)
        args = [self.pointer(b) for b in (launch.table, *launch.buffers)]
        args += [self.integer(s) for s in launch.symbols]
        args += [self.pointer(s) for s in scratch]
        yield self.profile(launch, 0)
        yield thread.Call(launch.kernel, tuple(args), code)
        yield self.profile(launch, 1)
        site = host.Integer(layout.CALL_NUMBERS + 24)
        write = self.body((host.Write("i64", launch.call, site, host.Integer(launch.ordinal)),))
        failed = thread.Compare("ne", code, thread.Const(0, _I32))
        yield thread.If(failed, (*write, thread.Return(code)))


def _assigned(statements: host.Body) -> Iterator[host.Local]:
    for statement in statements:
        match statement:
            case host.Assign(target=target):
                yield target
            case host.When(then=then, otherwise=otherwise):
                yield from _assigned((*then, *otherwise))
            case host.While(body=body):
                yield from _assigned(body)
            case _:
                pass


def lower_host(function: host.HostFunc) -> ThreadFunc:
    """Lower one host function to thread IR.

    Parameters of thread IR are immutable, so a parameter that is assigned is copied to a register.
    """
    lowering = _Lowering(function)
    changed = set(_assigned(function.body))
    params: list[thread.Reg] = []
    copies: list[thread.Stmt] = []
    for param in function.params:
        reg = lowering.reg(param)
        if param in changed:
            given = thread.Reg(f"{param.name}_given", reg.type)
            copies.append(thread.Assign(reg, given))
            reg = given
        params.append(reg)
    body = (*copies, *lowering.body(function.body))
    result = None if function.returns is None else _TYPES[function.returns]
    return ThreadFunc(function.name, tuple(params), body, result, function.exported)
