"""Statements of the thread IR, compiled once to closures that move a frame on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ...ir.errors import MalformedProgramError
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
    Offset,
    Perform,
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
from .arrays import where
from .frame import Frame
from .operations import HANDLERS
from .operations.handler import Group
from .sites import Site, Sites
from .spots import Access, Request
from .terms import Closure, Terms
from .values import Run, Values, lane_steps, numeric

Step: TypeAlias = Callable[[Frame], None]


class Statements:
    """Compiles the body of one kernel.

    ``granules`` gives the least element accessed through each pointer register.
    """

    def __init__(self, terms: Terms, sites: Sites, granules: dict[Reg, int]) -> None:
        """Compile nothing yet."""
        self.terms = terms
        self.sites = sites
        self.values = Values(terms)
        self.granules = granules
        self._known: dict[int, tuple[Stmt, tuple[int, Step]]] = {}

    def body(self, statements: Body) -> Step:
        """Compile a list of statements; the rest is skipped when nobody is left to run it."""
        steps = [self.statement(s) for s in statements]

        def run(frame: Frame) -> None:
            executed = frame.executed
            for ordinal, step in steps:
                if not frame.width:
                    return
                executed[ordinal] += frame.width
                step(frame)

        return run

    def statement(self, statement: Stmt) -> tuple[int, Step]:
        """Compile one statement; give its ordinal too.

        One that was compiled before, for a like kernel, is used again.
        """
        found = self._known.get(id(statement))
        if found is None:
            site = self.sites.of(statement, _WORDS.get(type(statement), "statement"))
            made = site.ordinal, self._fresh(statement, site)
            found = self._known[id(statement)] = statement, made
        return found[1]

    def _fresh(self, statement: Stmt, site: Site) -> Step:
        clear = self.values.statement(site, statement_values(statement))
        step = self._statement(statement, site)
        if not clear:
            return step

        def fresh(frame: Frame) -> None:
            frame.memo.clear()
            step(frame)

        return fresh

    def _statement(self, statement: Stmt, site: Site) -> Step:
        match statement:
            case Let(var=variable, value=value):
                return _bind(self.terms.slot(variable), self.values.compile(value))
            case Assign(reg=reg, value=value):
                return _assign(reg, self.values.compile(value))
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
                return lambda frame: frame.leave()
            case Barrier(scope="block"):
                return lambda frame: frame.barrier(site)
            case Barrier(scope="warp"):
                return lambda frame: frame.warp_barrier(site)
            case Perform():
                return self._perform(statement, site)
            case AtomicUpdate() | AtomicLoad() | AtomicStore() | CompareExchange():
                return self._atomic(statement)
            case _:
                raise MalformedProgramError(
                    f"a kernel has a {type(statement).__name__} statement, which only host code has"
                )

    # ------------------------------------------------------------ memory

    def _allocate(self, statement: Allocate) -> Step:
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

    def _store(self, statement: Store) -> Step:
        value, mask = _masked(statement)
        address = self.values.place(statement.address)
        given = self.values.compile(value)
        bits = self.values.optional(mask)
        stride = None if statement.stride is None else self.terms.compile(statement.stride)
        alignment = statement.address.alignment
        access = self.values.access(value.type, alignment, strided=stride is not None)
        return _write(access, address, lane_steps(access, stride), given, bits)

    def _scatter(self, statement: Scatter) -> Step:
        of = numeric(statement.value.type)
        access = self.values.access(of, of.dtype.bytes, strided=True)
        base, offsets = self.values.compile(statement.base), self.values.compile(statement.offsets)
        given = self.values.compile(statement.value)
        bits = self.values.optional(statement.mask)
        if access.vector:
            return _write(access, base, offsets, given, bits)
        return _write(access, lambda f: base(f) + offsets(f), lambda _: 0, given, bits)

    def _atomic(self, statement: AtomicUpdate | AtomicLoad | AtomicStore | CompareExchange) -> Step:
        address = self.values.place(statement.address)
        match statement:
            case AtomicLoad(result=result):
                access = self._atomic_access(result.type, statement.address)
                return atomics.reader(access, address, result)
            case AtomicStore(value=value):
                access = self._atomic_access(value.type, statement.address)
                return atomics.writer(access, address, self.values.compile(value))
            case AtomicUpdate(op=op, value=value, result=result):
                access = self._atomic_access(value.type, statement.address)
                given = self.values.compile(value)
                return atomics.updater(access, address, (op, given), result)
            case CompareExchange(expected=expected, desired=desired, result=result):
                access = self._atomic_access(desired.type, statement.address)
                pair = self.values.compile(expected), self.values.compile(desired)
                return atomics.exchanger(access, address, pair, result)

    def _atomic_access(self, of: Any, address: Address) -> Access:
        return self.values.access(of, address.alignment, strided=False)

    # ------------------------------------------------------------ control

    def _loop(self, statement: Loop) -> Step:
        slot = self.terms.slot(statement.var)
        start, stop = self.terms.compile(statement.start), self.terms.compile(statement.stop)
        self.sites.enter(statement)
        body = self.body(statement.body)
        self.sites.leave()
        return _loop(slot, (start, stop, statement.step), body)

    def _perform(self, statement: Perform, site: Site) -> Step:
        operation = statement.operation
        handler = HANDLERS[operation.name]
        arguments = [self.values.compile(a) for a in statement.args]
        results, name = statement.results, operation.name
        warp = operation.scope == "warp"

        def run(frame: Frame) -> None:
            given = [argument(frame) for argument in arguments]
            if warp:
                frame.converged(site, name)
            made = handler(Group(frame, site), given)
            for reg, value in zip(results, made, strict=True):
                assign(frame, reg, value)

        return run


_WORDS: dict[type[Stmt], str] = {
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
    Perform: "operation",
    AtomicUpdate: "atomic update",
    AtomicLoad: "atomic load",
    AtomicStore: "atomic store",
    CompareExchange: "compare and exchange",
}


def _masked(statement: Store) -> tuple[Value, Value | None]:
    """Undo a masked store that was written as a choice between the value and what is there.

    On registers that is how it has to be said; here it would read what nothing has written.
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
    there = value.address
    return there.offset == address.offset and _same_base(there.base, address.base)


def _same_base(a: Value, b: Value) -> bool:
    if isinstance(a, Offset) and isinstance(b, Offset):
        return a.offset == b.offset and _same_base(a.base, b.base)
    return a is b


def assign(frame: Frame, reg: Reg, value: Any) -> None:
    """Give a register a value in the active threads."""
    if frame.active is not None and frame.active is not frame.exist:
        old = frame.registers.get(reg)
        if old is not None:
            value = where(frame.active, value, old)
    frame.registers[reg] = value


def _bind(slot: int, value: Run) -> Step:
    def run(frame: Frame) -> None:
        found = value(frame)
        frame.environment[slot] = int(found) if np.ndim(found) == 0 else found

    return run


def _assign(reg: Reg, value: Run) -> Step:
    return lambda frame: assign(frame, reg, value(frame))


def _write(access: Access, address: Run, steps: Run, value: Run, mask: Run | None) -> Step:
    def run(frame: Frame) -> None:
        given, at = value(frame), address(frame)
        bits = None if mask is None else mask(frame)
        store(Request(frame, access, "written", steps(frame), bits), at, given)

    return run


def _branch(condition: Run, then: Step, otherwise: Step) -> Step:
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


def _while(condition: Run, body: Step) -> Step:
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


def _loop(slot: int, bounds: tuple[Closure, Closure, int], body: Step) -> Step:
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
            _diverging(frame, slot, (first, last, step), body)
        frame.resume(active, width)

    return run


def _diverging(frame: Frame, slot: int, bounds: tuple[Any, Any, int], body: Step) -> None:
    """Run a loop whose bounds differ between threads: those that are done wait."""
    value, last, step = bounds
    while frame.narrow(np.asarray(value < last)):
        frame.environment[slot] = value
        body(frame)
        value = value + step
