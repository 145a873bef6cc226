"""Compilation of thread-IR values to closures over the execution state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ...errors import MalformedProgramError
from ...ir.symbolic import Var
from ...ir.thread.nodes import (
    Address,
    Binary,
    Bitcast,
    Broadcast,
    Cast,
    Compare,
    Const,
    Data,
    Extract,
    Fma,
    FunctionAddress,
    Gather,
    Index,
    Load,
    Null,
    Offset,
    Predicate,
    Reduce,
    Reg,
    Select,
    Shuffle,
    Unary,
    Value,
)
from ...ir.thread.types import INDEX, PointerType, Type, VectorType
from ...ir.thread.visit import operands
from . import element_operations
from .access import load, load_moved, report_uninitialized
from .access_resolution import AccessRequest, AccessSpec
from .arrays import where
from .evaluate_terms import Closure, TermEvaluator
from .frame import Frame
from .provenance import StatementSite

Run: TypeAlias = Callable[[Frame], Any]


MovedRun: TypeAlias = Callable[[Frame], "tuple[Any, Any]"]
"""A function that returns a value, and its uninitialized lanes or None."""


class UnboundRegisterError(MalformedProgramError):
    """A read of a register that was never assigned."""

    title = "Unbound register"


def numeric(of: Type) -> VectorType:
    """Return a type as a vector type; an address is a 64-bit integer."""
    return of if isinstance(of, VectorType) else INDEX


class Values:
    """The compiler of the values of one kernel, statement by statement.

    A value that occurs several times in a statement is computed once.
    """

    def __init__(self, terms: TermEvaluator) -> None:
        """Create a compiler outside of any statement."""
        self.terms = terms
        self.lanes: dict[Var, int] = {}
        self.data: dict[str, Data] = {}
        self._shared: frozenset[int] = frozenset()
        self._runs: dict[Value, Run] = {}
        self._site: StatementSite | None = None

    def statement(self, site: StatementSite, roots: tuple[Value, ...]) -> bool:
        """Begin a statement; return whether the memo must be cleared before the statement runs."""
        seen: Counter[int] = Counter()
        pending = list(roots)
        while pending:
            value = pending.pop()
            seen[id(value)] += 1
            if seen[id(value)] == 1:
                pending.extend(operands(value))
        self._site = site
        self._runs = {}
        self._shared = frozenset(key for key, count in seen.items() if count > 1)
        return bool(self._shared)

    def compile(self, value: Value) -> Run:
        """Return the function that computes a value."""
        known = self._runs.get(value)
        if known is not None:
            return known
        run = self._compile(value)
        if id(value) not in self._shared or isinstance(value, Reg | Const):
            return run

        def once(frame: Frame) -> Any:
            found = frame.memo.get(value)
            if found is None:
                found = frame.memo[value] = run(frame)
            return found

        self._runs[value] = once
        return once

    def moved(self, value: Value) -> MovedRun:
        """Compile a value that a statement only moves.

        The closure also returns which lanes are copies of uninitialized elements: numbers as in
        `Segment.origins`, or None. Loads, registers, and selections move values; all other values
        use their operands, which must be initialized.
        """
        shared = id(value) in self._shared
        match value:
            case Reg():
                return lambda frame: (_content(frame, value), frame.uninitialized.get(value))
            case Load() | Gather() if not shared:
                return self._moved_load(value)
            case Select(condition=bit, then=x, otherwise=y) if not shared:
                return _moved_choice(self.compile(bit), self.moved(x), self.moved(y))
            case _:
                run = self.compile(value)
                return lambda frame: (run(frame), None)

    def optional(self, value: Value | None) -> Run | None:
        """Compile a value, or return None."""
        return None if value is None else self.compile(value)

    def _compile(self, value: Value) -> Run:
        match value:
            case Reg():
                return _register(value, self._site)
            case Const(value=number, type=of):
                constant = element_operations.constant(number, of)
                return lambda _: constant
            case Null():
                return lambda _: 0
            case Index(expr=expr, lane=lane, lanes=lanes):
                return self._index(self.terms.compile(expr), lane, lanes)
            case Predicate(condition=claim, lane=lane, lanes=lanes):
                return self._predicate(self.terms.compile(claim), lane, lanes)
            case Data(name=name):
                self.data[name] = value
                return lambda frame: frame.allocated[name].pointer
            case FunctionAddress(name=name):
                raise MalformedProgramError(
                    f"a GPU kernel takes the address of function {name!r}, "
                    "which is supported on the host only"
                )
            case Offset(base=base, offset=offset):
                return self.address(base, self.terms.offset(offset))
            case Load() | Gather():
                return self._load(value)
            case _:
                return self._computed(value)

    def address(self, base: Value, offset: Closure) -> Run:
        """Compile an address: a base plus an offset in bytes."""
        start = self.compile(base)
        return lambda frame: start(frame) + offset(frame.environment)

    def access_address(self, address: Address) -> Run:
        """Compile the address of an access."""
        return self.address(address.base, self.terms.offset(address.offset))

    def access(self, of: Type, alignment: int, *, strided: bool) -> AccessSpec:
        """Return the specification of an access of the current statement."""
        site = self._site
        if site is None:
            raise MalformedProgramError("a value is outside of all statements")
        kind = numeric(of)
        storage = kind.dtype.numpy
        return AccessSpec(site, storage, kind.lanes, kind.lanes > 1, alignment, strided)

    def _lane(self, lane: Var, lanes: int) -> Callable[[Frame], None]:
        slot = self.terms.slot(lane)
        column = np.arange(lanes, dtype=np.int64)[:, None]

        def bind(frame: Frame) -> None:
            frame.environment[slot] = column if lanes > 1 else 0

        return bind

    def _index(self, term: Closure, lane: Var | None, lanes: int) -> Run:
        if lane is None:
            if lanes == 1:
                return lambda frame: _integers(term(frame.environment))
            return lambda frame: _spread(_integers(term(frame.environment)), lanes)
        bind = self._lane(lane, lanes)

        def run(frame: Frame) -> Any:
            bind(frame)
            found = _integers(term(frame.environment))
            return _spread(found, lanes) if found.ndim < 2 and lanes > 1 else found

        return run

    def _predicate(self, term: Closure, lane: Var | None, lanes: int) -> Run:
        if lane is None:
            if lanes == 1:
                return lambda frame: _bits(term(frame.environment))
            return lambda frame: _spread(_bits(term(frame.environment)), lanes)
        bind = self._lane(lane, lanes)

        def run(frame: Frame) -> Any:
            bind(frame)
            found = _bits(term(frame.environment))
            return _spread(found, lanes) if found.ndim < 2 and lanes > 1 else found

        return run

    def _load(self, value: Load | Gather) -> Run:
        request = self._request(value)
        if isinstance(value, Load) and value.partial:
            return lambda frame: load_moved(*request(frame))[0]
        if numeric(value.type).dtype.kind == "bool":
            return lambda frame: _truth(load(*request(frame)))
        return lambda frame: load(*request(frame))

    def _moved_load(self, value: Load | Gather) -> MovedRun:
        request = self._request(value)
        is_bool = numeric(value.type).dtype.kind == "bool"

        def run(frame: Frame) -> tuple[Any, Any]:
            found, origins = load_moved(*request(frame))
            return (_truth(found) if is_bool else found), origins

        return run

    def _request(self, value: Load | Gather) -> Callable[[Frame], tuple[AccessRequest, Any]]:
        """Return the closure of an access and its address."""
        return self._contiguous(value) if isinstance(value, Load) else self._gathered(value)

    def _contiguous(self, value: Load) -> Callable[[Frame], tuple[AccessRequest, Any]]:
        address = self.access_address(value.address)
        mask = self.optional(value.mask)
        stride = None if value.stride is None else self.terms.compile(value.stride)
        access = self.access(value.type, value.address.alignment, strided=stride is not None)
        offsets = lane_offsets(access, stride)

        def run(frame: Frame) -> tuple[AccessRequest, Any]:
            at, bits = address(frame), None if mask is None else mask(frame)
            return AccessRequest(frame, access, "read", offsets(frame), bits), at

        return run

    def _gathered(self, value: Gather) -> Callable[[Frame], tuple[AccessRequest, Any]]:
        base, offsets = self.compile(value.base), self.compile(value.offsets)
        mask = self.optional(value.mask)
        access = self.access(value.type, value.type.width, strided=True)

        def run(frame: Frame) -> tuple[AccessRequest, Any]:
            bits = None if mask is None else mask(frame)
            if access.vector:
                request = AccessRequest(frame, access, "read", offsets(frame), bits)
                return request, base(frame)
            at = base(frame) + offsets(frame)
            return AccessRequest(frame, access, "read", 0, bits), at

        return run

    def _computed(self, value: Value) -> Run:
        match value:
            case Unary(op=op, operand=x):
                return _one(element_operations.UNARY[op], self.compile(x))
            case Binary(op=op, left=x, right=y):
                combine = element_operations.binary(op, numeric(x.type).dtype)
                return _two(combine, self.compile(x), self.compile(y))
            case Compare(op=op, left=x, right=y):
                return _two(element_operations.COMPARE[op], self.compile(x), self.compile(y))
            case Fma(a=a, b=b, c=c):
                x, y, z = self.compile(a), self.compile(b), self.compile(c)
                return lambda frame: element_operations.fma(x(frame), y(frame), z(frame))
            case Select(condition=bit, then=x, otherwise=y):
                return _choice(self.compile(bit), self.compile(x), self.compile(y))
            case Cast(type=of, operand=x):
                change = element_operations.convert(of.dtype, numeric(x.type).dtype)
                return _one(change, self.compile(x))
            case Bitcast(type=of, operand=x):
                return self._bitcast(of, x)
            case _:
                return self._laned(value)

    def _laned(self, value: Value) -> Run:
        match value:
            case Broadcast(operand=x, lanes=lanes):
                scalar = self.compile(x)
                return lambda frame: _spread(np.asarray(scalar(frame)), lanes)
            case Extract(operand=x, lane=lane):
                return _extracted(self.compile(x), lane, numeric(x.type).lanes)
            case Shuffle(left=x, right=y, lanes=lanes):
                return _shuffled(self.compile(x), self.compile(y), lanes, numeric(x.type).lanes)
            case Reduce(op=op, operand=x):
                vector, of = self.compile(x), numeric(x.type)
                if of.lanes == 1:
                    return vector
                return lambda frame: element_operations.reduce_lanes(op, vector(frame), of.dtype)
            case _:
                raise MalformedProgramError(
                    f"a GPU kernel contains the unsupported value {type(value).__name__}"
                )

    def _bitcast(self, of: Type, operand: Value) -> Run:
        x, source, target = self.compile(operand), numeric(operand.type), numeric(of)
        if isinstance(of, PointerType) or isinstance(operand.type, PointerType):
            return x
        if source.lanes == target.lanes:
            return lambda frame: x(frame).view(target.dtype.numpy)

        def run(frame: Frame) -> Any:
            columns = np.atleast_2d(x(frame)) if source.lanes == 1 else x(frame)
            rows = np.ascontiguousarray(columns.T).view(target.dtype.numpy)
            return rows.T if target.lanes > 1 else _scalar(rows[:, 0])

        return run


def lane_offsets(access: AccessSpec, stride: Closure | None) -> Run:
    """Return the closure of the byte offset of every lane from the first."""
    if not access.vector:
        return lambda _: 0
    lanes = np.arange(access.lanes, dtype=np.int64)[:, None]
    if stride is None:
        offsets = lanes * access.width
        return lambda _: offsets
    return lambda frame: lanes * stride(frame.environment)


def _register(reg: Reg, site: StatementSite | None) -> Run:
    def run(frame: Frame) -> Any:
        if frame.uninitialized and site is not None:
            origins = frame.uninitialized.get(reg)
            if origins is not None:
                action = f"statement with register {reg.name!r}"
                report_uninitialized(frame, site, action, origins)
        return _content(frame, reg)

    return run


def _content(frame: Frame, reg: Reg) -> Any:
    found = frame.registers.get(reg)
    if found is None:
        raise UnboundRegisterError(f"register {reg.name!r} is read before it is assigned")
    return found


def _integers(value: Any) -> Any:
    return np.int64(value) if isinstance(value, int) else value


def _bits(value: Any) -> Any:
    return np.bool_(value) if isinstance(value, bool) else value


def _truth(value: Any) -> Any:
    return value.view(np.uint8) != 0


def _scalar(value: Any) -> Any:
    return value[0] if value.shape == (1,) else value


def _spread(value: Any, lanes: int) -> Any:
    """Return a vector with the same scalar in every lane."""
    width = value.shape[0] if value.ndim else 1
    return np.broadcast_to(value, (lanes, width))


def _one(function: Callable[[Any], Any], x: Run) -> Run:
    return lambda frame: function(x(frame))


def _two(function: Callable[[Any, Any], Any], x: Run, y: Run) -> Run:
    return lambda frame: function(x(frame), y(frame))


def _choice(bit: Run, x: Run, y: Run) -> Run:
    def run(frame: Frame) -> Any:
        chosen, then, otherwise = bit(frame), x(frame), y(frame)
        if chosen.ndim == 0:
            return then if chosen else otherwise
        return where(chosen, then, otherwise)

    return run


def _moved_choice(bit: Run, x: MovedRun, y: MovedRun) -> MovedRun:
    def run(frame: Frame) -> tuple[Any, Any]:
        chosen, (then, first), (otherwise, second) = bit(frame), x(frame), y(frame)
        if chosen.ndim == 0:
            return (then, first) if chosen else (otherwise, second)
        value = where(chosen, then, otherwise)
        if first is None and second is None:
            return value, None
        zero = np.int32(0)
        first, second = zero if first is None else first, zero if second is None else second
        return value, where(chosen, first, second)

    return run


def _extracted(x: Run, lane: int, lanes: int) -> Run:
    if lanes == 1:
        return x
    return lambda frame: _scalar(x(frame)[lane])


def _shuffled(x: Run, y: Run, lanes: tuple[int, ...], count: int) -> Run:
    chosen = np.array(lanes)

    def run(frame: Frame) -> Any:
        left, right = x(frame), y(frame)
        if count == 1:
            left, right = _spread(np.asarray(left), 1), _spread(np.asarray(right), 1)
        width = max(left.shape[1], right.shape[1])
        pair = [np.broadcast_to(side, (count, width)) for side in (left, right)]
        picked = np.concatenate(pair)[chosen]
        return picked if len(lanes) > 1 else _scalar(picked[0])

    return run
