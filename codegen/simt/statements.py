"""Compilation of thread-IR statements to closures that update the execution state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ...errors import MalformedProgramError
from ...ir.thread.nodes import (
    Address,
    Allocate,
    Assign,
    AtomicLoad,
    AtomicStore,
    AtomicUpdate,
    Barrier,
    Body,
    CompareExchange,
    If,
    Let,
    Load,
    Loop,
    MachineOp,
    Offset,
    Reg,
    Return,
    Scatter,
    Select,
    Stmt,
    Store,
    Unary,
    Value,
    While,
)
from ...ir.thread.types import PointerType
from ...ir.thread.visit import statement_values
from . import atomics
from .access import store
from .access_resolution import AccessRequest, AccessSpec
from .arrays import where
from .evaluate_terms import Closure, TermEvaluator
from .frame import Frame
from .operations import HANDLERS
from .operations.handler import Group
from .provenance import Sites, StatementSite
from .values import MovedRun, Run, Values, lane_offsets, numeric

StatementExecutor: TypeAlias = Callable[[Frame], None]


class Statements:
    """The compiler of the statements of one kernel.

    ``granules`` is the size of the smallest element accessed through each pointer register.
    """

    def __init__(self, terms: TermEvaluator, sites: Sites, granules: dict[Reg, int]) -> None:
        """Create a compiler without statements."""
        self.terms = terms
        self.sites = sites
        self.values = Values(terms)
        self.granules = granules
        self._known: dict[int, tuple[Stmt, tuple[int, StatementExecutor]]] = {}

    def body(self, statements: Body) -> StatementExecutor:
        """Compile a list of statements, which stops as soon as no thread is active."""
        steps = [self.statement(s) for s in statements]

        def run(frame: Frame) -> None:
            executed = frame.executed
            for ordinal, step in steps:
                if not frame.width:
                    return
                executed[ordinal] += frame.width
                step(frame)

        return run

    def statement(self, statement: Stmt) -> tuple[int, StatementExecutor]:
        """Compile one statement; return its ordinal and the closure.

        Statements that were compiled before, for a similar kernel, are reused.
        """
        found = self._known.get(id(statement))
        if found is None:
            site = self.sites.of(statement, _KINDS.get(type(statement), "statement"))
            compiled = site.ordinal, self._with_memo(statement, site)
            found = self._known[id(statement)] = statement, compiled
        return found[1]

    def _with_memo(self, statement: Stmt, site: StatementSite) -> StatementExecutor:
        clear = self.values.statement(site, statement_values(statement))
        step = self._statement(statement, site)
        if not clear:
            return step

        def run(frame: Frame) -> None:
            frame.memo.clear()
            step(frame)

        return run

    def _statement(self, statement: Stmt, site: StatementSite) -> StatementExecutor:
        match statement:
            case Let(var=variable, value=value):
                return _bind(self.terms.slot(variable), self.values.compile(value))
            case Assign(reg=reg, value=value):
                return _assign(reg, self.values.moved(value))
            case Allocate():
                return self._allocate(statement)
            case Store():
                return self._store(statement)
            case Scatter():
                return self._scatter(statement)
            case Loop():
                return self._loop(statement)
            case While(condition=condition, body=body):
                return _while(self.values.compile(condition), self.body(body))
            case If(condition=condition, then=then, otherwise=otherwise):
                bit = self.values.compile(condition)
                return _branch(bit, self.body(then), self.body(otherwise))
            case Return():
                return lambda frame: frame.return_active()
            case Barrier(scope="block"):
                return lambda frame: frame.barrier(site)
            case Barrier(scope="warp"):
                return lambda frame: frame.warp_barrier(site)
            case MachineOp():
                return self._machine_op(statement, site)
            case AtomicUpdate() | AtomicLoad() | AtomicStore() | CompareExchange():
                return self._atomic(statement)
            case _:
                raise MalformedProgramError(
                    f"a GPU kernel contains a {type(statement).__name__} statement, "
                    "which is supported on the host only"
                )

    def _allocate(self, statement: Allocate) -> StatementExecutor:
        reg, size = statement.reg, statement.size
        of = reg.type
        shared = isinstance(of, PointerType) and of.space == "shared"
        granule = self.granules.get(reg, 1)

        def run(frame: Frame) -> None:
            segment = frame.allocated.get(statement)
            if segment is None:
                space = "shared" if shared else "local"
                copies = len(frame.blocks) if shared else frame.count
                segment = frame.memory.add_copies(reg.name, space, size, copies, granule)
                frame.allocated[statement] = segment
            frame.registers[reg] = segment.pointer

        return run

    def _store(self, statement: Store) -> StatementExecutor:
        value, mask = _masked(statement)
        address = self.values.access_address(statement.address)
        stored = self.values.moved(value)
        bits = self.values.optional(mask)
        stride = None if statement.stride is None else self.terms.compile(statement.stride)
        alignment = statement.address.alignment
        access = self.values.access(value.type, alignment, strided=stride is not None)
        return _write(access, address, lane_offsets(access, stride), stored, bits)

    def _scatter(self, statement: Scatter) -> StatementExecutor:
        of = numeric(statement.value.type)
        access = self.values.access(of, of.width, strided=True)
        base, offsets = self.values.compile(statement.base), self.values.compile(statement.offsets)
        stored = self.values.moved(statement.value)
        bits = self.values.optional(statement.mask)
        if access.vector:
            return _write(access, base, offsets, stored, bits)
        return _write(access, lambda f: base(f) + offsets(f), lambda _: 0, stored, bits)

    def _atomic(
        self, statement: AtomicUpdate | AtomicLoad | AtomicStore | CompareExchange
    ) -> StatementExecutor:
        address = self.values.access_address(statement.address)
        match statement:
            case AtomicLoad(result=result):
                access = self._atomic_access(result.type, statement.address)
                return atomics.reader(access, address, result)
            case AtomicStore(value=value):
                access = self._atomic_access(value.type, statement.address)
                return atomics.writer(access, address, self.values.compile(value))
            case AtomicUpdate(op=op, value=value, result=result):
                access = self._atomic_access(value.type, statement.address)
                operand = self.values.compile(value)
                dtype = numeric(value.type).dtype
                return atomics.updater(access, address, (op, dtype, operand), result)
            case CompareExchange(expected=expected, desired=desired, result=result):
                access = self._atomic_access(desired.type, statement.address)
                pair = self.values.compile(expected), self.values.compile(desired)
                return atomics.exchanger(access, address, pair, result)

    def _atomic_access(self, of: Any, address: Address) -> AccessSpec:
        return self.values.access(of, address.alignment, strided=False)

    def _loop(self, statement: Loop) -> StatementExecutor:
        slot = self.terms.slot(statement.var)
        start, stop = self.terms.compile(statement.start), self.terms.compile(statement.stop)
        self.sites.enter(statement)
        body = self.body(statement.body)
        self.sites.leave()
        return _loop(slot, (start, stop, statement.step), body)

    def _machine_op(self, statement: MachineOp, site: StatementSite) -> StatementExecutor:
        operation = statement.operation
        handler = HANDLERS[operation.name]
        arguments = [self.values.compile(a) for a in statement.args]
        results, name = statement.results, operation.name
        warp = operation.scope == "warp"

        def run(frame: Frame) -> None:
            operands = [argument(frame) for argument in arguments]
            if warp:
                frame.check_converged(site, name)
            values = handler(Group(frame, site), operands)
            for reg, value in zip(results, values, strict=True):
                assign(frame, reg, value)

        return run


_KINDS: dict[type[Stmt], str] = {
    Let: "load",
    Assign: "value",
    Allocate: "allocation",
    Store: "store",
    Scatter: "scatter",
    Loop: "loop",
    While: "loop",
    If: "branch",
    Return: "return",
    Barrier: "barrier",
    MachineOp: "operation",
    AtomicUpdate: "atomic update",
    AtomicLoad: "atomic load",
    AtomicStore: "atomic store",
    CompareExchange: "compare and exchange",
}


def _masked(statement: Store) -> tuple[Value, Value | None]:
    """Return value and mask of a store; a select between the value and the old content is a mask.

    Code generation for vector registers writes masked stores in this form. Reading the old content
    here would be reported as an uninitialized read.
    """
    value, mask = statement.value, statement.mask
    if mask is not None or not isinstance(value, Select) or statement.stride is not None:
        return value, mask
    if value.condition.type != value.then.type and numeric(value.condition.type).lanes == 1:
        return value, mask
    if _reads_back(value.otherwise, statement.address):
        return value.then, value.condition
    if _reads_back(value.then, statement.address):
        return value.otherwise, Unary("not", value.condition)
    return value, mask


def _reads_back(value: Value, address: Address) -> bool:
    if not isinstance(value, Load) or value.mask is not None or value.stride is not None:
        return False
    loaded = value.address
    return loaded.offset == address.offset and _same_base(loaded.base, address.base)


def _same_base(a: Value, b: Value) -> bool:
    if isinstance(a, Offset) and isinstance(b, Offset):
        return a.offset == b.offset and _same_base(a.base, b.base)
    return a is b


def assign(frame: Frame, reg: Reg, value: Any, origins: Any = None) -> None:
    """Assign a value to a register in the active threads.

    ``origins`` are the copies of uninitialized elements among the lanes, as in `Segment.origins`.
    """
    if origins is not None or reg in frame.uninitialized:
        _assign_origins(frame, reg, origins)
    if frame.active is not None and frame.active is not frame.real:
        old = frame.registers.get(reg)
        if old is not None:
            value = where(frame.active, value, old)
    frame.registers[reg] = value


def _assign_origins(frame: Frame, reg: Reg, origins: Any) -> None:
    new: Any = np.int32(0) if origins is None else origins
    known: dict[Reg, Any] = frame.uninitialized
    if frame.active is not None:
        new = where(frame.active, new, known.get(reg, np.int32(0)))
    if np.any(new):
        known[reg] = new
    else:
        known.pop(reg, None)


def _bind(slot: int, value: Run) -> StatementExecutor:
    def run(frame: Frame) -> None:
        found = value(frame)
        frame.environment[slot] = int(found) if np.ndim(found) == 0 else found

    return run


def _assign(reg: Reg, value: MovedRun) -> StatementExecutor:
    return lambda frame: assign(frame, reg, *value(frame))


def _write(
    access: AccessSpec, address: Run, offsets: Run, value: MovedRun, mask: Run | None
) -> StatementExecutor:
    def run(frame: Frame) -> None:
        (stored, origins), at = value(frame), address(frame)
        bits = None if mask is None else mask(frame)
        store(AccessRequest(frame, access, "write", offsets(frame), bits), at, stored, origins)

    return run


def _branch(
    condition: Run, then: StatementExecutor, otherwise: StatementExecutor
) -> StatementExecutor:
    def run(frame: Frame) -> None:
        bit = condition(frame)
        if bit.ndim == 0:
            (then if bit else otherwise)(frame)
            return
        active, width = frame.active, frame.width
        if frame.narrow(bit):
            then(frame)
        frame.resume(active, width)
        if frame.narrow(~bit):
            otherwise(frame)
        frame.resume(active, width)

    return run


def _while(condition: Run, body: StatementExecutor) -> StatementExecutor:
    def run(frame: Frame) -> None:
        active, width = frame.active, frame.width
        while frame.width:
            frame.memo.clear()
            bit = condition(frame)
            if bit.ndim == 0:
                if not bit:
                    break
            elif not frame.narrow(bit):
                break
            body(frame)
        frame.resume(active, width)

    return run


def _loop(
    slot: int, bounds: tuple[Closure, Closure, int], body: StatementExecutor
) -> StatementExecutor:
    start, stop, step = bounds

    def run(frame: Frame) -> None:
        environment = frame.environment
        first, last = start(environment), stop(environment)
        active, width = frame.active, frame.width
        if isinstance(first, int) and isinstance(last, int):
            for value in range(first, last, step):
                environment[slot] = value
                body(frame)
                if not frame.width:
                    break
        else:
            _divergent_loop(frame, slot, (first, last, step), body)
        frame.resume(active, width)

    return run


def _divergent_loop(
    frame: Frame, slot: int, bounds: tuple[Any, Any, int], body: StatementExecutor
) -> None:
    """Run a loop whose bounds differ between threads; finished threads are inactive."""
    value, last, step = bounds
    while frame.narrow(np.asarray(value < last)):
        frame.environment[slot] = value
        body(frame)
        value = value + step
