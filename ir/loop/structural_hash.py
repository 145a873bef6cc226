"""The canonical tokens of loop-level functions and statements."""

from __future__ import annotations

from hashlib import sha256
from typing import assert_never

from ..canonical import Canon
from .nodes import (
    Alloc,
    Binary,
    Bind,
    Block,
    Buffer,
    BufferParam,
    Cast,
    Compare,
    Condition,
    Element,
    For,
    If,
    Index,
    Let,
    Load,
    Local,
    Number,
    PrimFunc,
    Reducer,
    Region,
    Reinterpret,
    ScalarParam,
    Seq,
    Stmt,
    Store,
    Ternary,
    Unary,
    Where,
)
from .thread_roles import role_text
from .visit import walk


def write_prim_func(canon: Canon, func: PrimFunc) -> None:
    """Append the tokens of a function; its name is not included."""
    canon.emit("prim_func")
    for buffer in func.buffer_params:
        canon.symbols(buffer.shape)
    canon.symbols(func.scalar_params)
    for param in func.params:
        match param:
            case BufferParam(buffer=buffer, access=access):
                with canon.inside(f"parameter {buffer.name!r}"):
                    canon.emit(f"{access} {_buffer(canon, buffer)}")
            case ScalarParam(var=var):
                canon.emit(f"scalar {canon.term(var)}")
            case _:
                assert_never(param)
    canon.facts(func.facts)
    canon.emit(f"target {func.target}")
    canon.attributes("attribute", func.attributes)
    for buffer in func.buffers:
        with canon.inside(f"buffer {buffer.name!r}"):
            canon.emit(f"alloc {_buffer(canon, buffer)}")
    write_statement(canon, func.body)
    canon.emit("end")


def verification_key(func: PrimFunc) -> tuple[str, str]:
    """Return digests of all that the rules depend on: the structure, and the names and uids.

    The key is linear in the size of the function. A function with the key of one without
    violations has none.
    """
    canon = Canon()
    write_prim_func(canon, func)
    symbols = (sorted(d.free, key=lambda v: v.serial) for b in func.buffer_params for d in b.shape)
    names: list[object] = [func.name, *(v.name for found in symbols for v in found)]
    names += [v.name for v in func.scalar_params]
    names += [(b.name, b.uid) for b in (*func.buffer_params, *func.buffers)]
    for node in walk(func.body):
        match node:
            case For(uid=uid, var=var):
                names.append((uid, var.name))
            case Let(var=var):
                names.append(var.name)
            case Alloc(buffer=buffer):
                names.append((buffer.name, buffer.uid))
            case Bind(local=local):
                names.append(local.name)
            case Block(uid=uid, name=name, iters=iters):
                names += [uid, name, *(v.var.name for v in iters)]
            case _:
                pass
    identity = repr(names).encode("utf-8", "surrogatepass")
    return canon.digest(), sha256(identity).hexdigest()


def _buffer(canon: Canon, buffer: Buffer) -> str:
    """Number a buffer and return its properties as text."""
    parts = [
        canon.number("@", buffer, buffer.name),
        f"({canon.terms(buffer.shape)}) {buffer.dtype} {buffer.scope}",
    ]
    if buffer.strides is not None:
        parts.append(f"strides ({canon.terms(buffer.strides)})")
    parts.append(f"align {buffer.alignment}")
    if buffer.layout is not None:
        inputs = ", ".join([canon.bind(v) for v in buffer.layout.inputs])
        parts.append(f"layout ({inputs}) -> ({canon.terms(buffer.layout.outputs)})")
    return " ".join(parts)


def write_statement(canon: Canon, statement: Stmt) -> None:
    """Append the tokens of a statement."""
    match statement:
        case Store(buffer=buffer, indices=indices, value=value):
            target = _access(canon, buffer, canon.terms(indices))
            canon.emit(f"{target} = {_element(canon, value)}")
        case For():
            _for(canon, statement)
        case Block():
            with canon.inside(f"block {statement.name!r}"):
                _block(canon, statement)
        case Seq(body=parts):
            for part in parts:
                write_statement(canon, part)
        case If(condition=condition, then=then, otherwise=otherwise):
            canon.emit(f"if {canon.term(condition)}")
            write_statement(canon, then)
            if otherwise is not None:
                canon.emit("else")
                write_statement(canon, otherwise)
            canon.emit("end")
        case Let():
            _let(canon, statement)
        case Alloc(buffer=buffer, body=body):
            with canon.inside(f"buffer {buffer.name!r}"):
                canon.emit(f"alloc {_buffer(canon, buffer)}")
            write_statement(canon, body)
        case Bind(local=local, value=value, body=body):
            found = _element(canon, value)
            canon.emit(f"bind {canon.number('%', local, local.name)} = {local.dtype} {found}")
            write_statement(canon, body)
        case _:
            assert_never(statement)


def _for(canon: Canon, loop: For) -> None:
    with canon.inside(f"loop {loop.var.name!r}"):
        extent = canon.term(loop.extent)
        canon.emit(f"for {canon.bind(loop.var)} in {loop.kind} {loop.thread!r} {extent}")
        canon.attributes("annotation", loop.annotations)
        write_statement(canon, loop.body)
        canon.emit("end")


def _let(canon: Canon, let: Let) -> None:
    load = _element(canon, let.load)
    limits = canon.terms((let.lower, let.upper))
    with canon.inside(f"variable {let.var.name!r}"):
        # The check that discharges the range is not part of the code of this statement.
        by = "" if let.discharge is None else " discharged"
        canon.emit(f"let {canon.bind(let.var)} = {let.mode} {load} in {limits}{by}")
        write_statement(canon, let.body)
        canon.emit("end")


def _block(canon: Canon, block: Block) -> None:
    outer = [(canon.term(v.binding), canon.term(v.extent), v) for v in block.iters]
    guard = canon.term(block.predicate)
    canon.emit("block")
    for binding, extent, iter_var in outer:
        canon.emit(f"{canon.bind(iter_var.var)} = {iter_var.kind} {extent} at {binding}")
    canon.emit(f"guard {guard}")
    canon.emit(f"reads {_regions(canon, block.reads)}")
    canon.emit(f"writes {_regions(canon, block.writes)}")
    canon.attributes("annotation", block.annotations)
    if block.threads is not None:
        canon.emit(role_text(block.threads))
    if block.init is not None:
        canon.emit("init")
        write_statement(canon, block.init)
    if block.reducer is not None:
        _reducer(canon, block.reducer)
    canon.emit("body")
    write_statement(canon, block.body)
    canon.emit("end")


def _reducer(canon: Canon, reducer: Reducer) -> None:
    locals_ = (*reducer.left, *reducer.right)
    names = ", ".join(f"{canon.number('%', x, x.name)} {x.dtype}" for x in locals_)
    canon.emit(f"reducer ({names}) commutative {reducer.commutative}")
    for local, value in reducer.binds:
        canon.emit(f"bind {canon.number('%', local, local.name)} = {_element(canon, value)}")
    parts = [_element(canon, e) for e in (*reducer.results, *reducer.identities)]
    canon.emit(f"result {', '.join(parts)}")


def _access(canon: Canon, buffer: Buffer, indices: str) -> str:
    return f"{canon.number('@', buffer, buffer.name)}[{indices}]"


def _regions(canon: Canon, regions: tuple[Region, ...]) -> str:
    return "; ".join(sorted([_region(canon, r) for r in regions]))


def _region(canon: Canon, region: Region) -> str:
    ranges = [f"{canon.term(r.start)} + {canon.term(r.extent)}" for r in region.ranges]
    return _access(canon, region.buffer, ", ".join(ranges))


def _number(value: float, dtype: object) -> str:
    """Return the key of a number; 0.0 and -0.0 have different keys."""
    return f"{dtype}({value!r})"


def _element(canon: Canon, element: Element) -> str:
    match element:
        case Number(value=value, dtype=dtype):
            plain = float(value) if dtype.is_inexact else value
            return _number(plain, dtype)
        case Index(value=value, dtype=dtype):
            return f"{dtype}<{canon.term(value)}>"
        case Condition(value=value):
            return f"<{canon.term(value)}>"
        case Load(buffer=buffer, indices=indices):
            return _access(canon, buffer, canon.terms(indices))
        case Unary(op=op, operand=operand):
            return f"{op}({_element(canon, operand)})"
        case Cast(dtype=dtype, operand=operand):
            return f"{dtype}({_element(canon, operand)})"
        case Reinterpret(dtype=dtype, operand=operand):
            return f"reinterpret({dtype}, {_element(canon, operand)})"
        case Binary(op=op, left=left, right=right) | Compare(op=op, left=left, right=right):
            return f"{op}({_element(canon, left)}, {_element(canon, right)})"
        case Ternary(op=op, first=first, second=second, third=third):
            return f"{op}({', '.join(_element(canon, e) for e in (first, second, third))})"
        case Where(condition=condition, then=then, otherwise=otherwise):
            inner = [_element(canon, e) for e in (condition, then, otherwise)]
            return f"where({', '.join(inner)})"
        case Local(name=name):
            return canon.number("%", element, name)
        case _:
            assert_never(element)
