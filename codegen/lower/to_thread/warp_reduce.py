"""Reductions across threads, with the result in every thread.

Threads that are neighbors in a warp exchange registers by butterfly shuffles; several warps, and
threads in any other arrangement, exchange partial results through shared memory. Many neighbors on
a GPU without warps of a known size do so in two steps, each of which combines few of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt, prod
from typing import Final, Protocol

from ....ir.dtype import DType, i16, i32, i64, u32
from ....ir.loop.combiners import Combiner, identity_of
from ....ir.symbolic import Expr, as_expr, eq, var
from ....ir.thread.nodes import (
    Address,
    Assign,
    Binary,
    Bitcast,
    Cast,
    Const,
    If,
    Load,
    Loop,
    MachineOp,
    Predicate,
    Reg,
    Select,
    Source,
    Stmt,
    Store,
    Value,
)
from ....ir.thread.operations.nvidia import SHUFFLE_BUTTERFLY_F32, SHUFFLE_BUTTERFLY_I32
from ....ir.thread.types import VectorType
from ....schedules.launch.threads import Threads
from ....target.gpus import WARP
from ..math import combined

_STEP: Final = 16
"""The number of loads that a further step costs, with its barriers."""


class Combination(Protocol):
    """An operation on the values of two threads."""

    @property
    def identities(self) -> tuple[Const, ...]:
        """The values that do not change the other operand."""
        ...

    @property
    def exchangeable(self) -> bool:
        """Whether the result is the same to the bit if the operands are exchanged."""
        ...

    def __call__(
        self, left: tuple[Reg, ...], right: tuple[Value, ...], out: list[Stmt]
    ) -> tuple[Value, ...]:
        """Return the results; ``out`` collects the statements before them."""
        ...


@dataclass(frozen=True, slots=True)
class Single:
    """A combiner of one value.

    Parameters
    ----------
    op : str
        The combiner.
    dtype : DType
        The dtype of the value.
    """

    op: Combiner
    dtype: DType

    @property
    def identities(self) -> tuple[Const, ...]:
        """The identity of the combiner."""
        return (Const(identity_of(self.op, self.dtype).value, VectorType(self.dtype)),)

    @property
    def exchangeable(self) -> bool:
        """True, as all combiners of one value are commutative."""
        return True

    def __call__(
        self, left: tuple[Reg, ...], right: tuple[Value, ...], out: list[Stmt]
    ) -> tuple[Value, ...]:
        """Return the result."""
        del out
        return (combined(self.op, left[0], right[0]),)


class ThreadReduction:
    """A generator of the statements of one reduction across threads."""

    def __init__(
        self, threads: Threads, combine: Combination, scratch: tuple[Reg, ...], source: Source
    ) -> None:
        """Initialize; ``scratch`` is shared memory for :meth:`Threads.slots` elements per value."""
        self._threads = threads
        self._combine = combine
        self._scratch = scratch
        self._source = source
        self.out: list[Stmt] = []

    def total(self, parts: tuple[Value, ...], tags: tuple[str, ...]) -> tuple[Reg, ...]:
        """Combine the partial results of the threads along some axes."""
        threads = self._threads
        size = prod(threads.extent(t) for t in tags)
        own = self._keep("part", parts)
        if size == 1:
            return own
        if not threads.in_warps(tags):
            return self._gathered(own, tags)
        if size <= WARP:
            return self._butterfly(own, size)
        return self._warps(self._butterfly(own, WARP), size // WARP)

    def _keep(self, name: str, values: tuple[Value, ...]) -> tuple[Reg, ...]:
        regs = tuple(Reg(name, value.type) for value in values)
        for reg, value in zip(regs, values, strict=True):
            self.out.append(Assign(reg, value, self._source))
        return regs

    def _butterfly(self, own: tuple[Reg, ...], size: int) -> tuple[Reg, ...]:
        """Combine with the lane whose number differs in one bit, for each bit."""
        distance = size // 2
        while distance:
            other: tuple[Value, ...] = tuple(
                self._exchange(reg, _dtype(reg), distance) for reg in own
            )
            left, right = (
                (own, other) if self._combine.exchangeable else self._ordered(own, other, distance)
            )
            own = self._keep("part", self._combine(left, right, self.out))
            distance //= 2
        return own

    def _ordered(
        self, own: tuple[Reg, ...], other: tuple[Value, ...], distance: int
    ) -> tuple[tuple[Reg, ...], tuple[Value, ...]]:
        """Return the values of the lower lane first, so that both lanes have the same result."""
        lower = Predicate(eq(self._threads.number // distance % 2, 0))
        other = self._keep("other", other)
        pairs = tuple(zip(own, other, strict=True))
        left = self._keep("left", tuple(Select(lower, a, b) for a, b in pairs))
        return left, self._keep("right", tuple(Select(lower, b, a) for a, b in pairs))

    def _exchange(self, own: Reg, dtype: DType, distance: int) -> Value:
        if dtype.bits == 64:
            return self._exchange_halves(own, dtype, distance)
        if dtype.name == "f32":
            return self._shuffle(own, distance, is_float=True)
        whole = VectorType(i32)
        if dtype.is_float:
            bits = Cast(whole, Bitcast(VectorType(i16), own))
            narrow = Cast(VectorType(i16), self._shuffle(bits, distance))
            return Bitcast(VectorType(dtype), narrow)
        if dtype.bits == 32:
            word = own if dtype == i32 else Bitcast(whole, own)
            back = self._shuffle(word, distance)
            return back if dtype == i32 else Bitcast(VectorType(dtype), back)
        return Cast(VectorType(dtype), self._shuffle(Cast(whole, own), distance))

    def _exchange_halves(self, own: Reg, dtype: DType, distance: int) -> Value:
        of = VectorType(i64)
        bits = own if dtype == i64 else Bitcast(of, own)
        shift = Const(32, of)
        low = self._shuffle(Cast(VectorType(i32), bits), distance)
        high = self._shuffle(Cast(VectorType(i32), Binary("shr", bits, shift)), distance)
        # The low half must be zero-extended, so it is cast to an unsigned integer first.
        rest = Cast(of, Bitcast(VectorType(u32), low))
        joined = Binary("or", Binary("shl", Cast(of, high), shift), rest)
        return joined if dtype == i64 else Bitcast(VectorType(dtype), joined)

    def _shuffle(self, value: Value, distance: int, *, is_float: bool = False) -> Reg:
        operation = SHUFFLE_BUTTERFLY_F32 if is_float else SHUFFLE_BUTTERFLY_I32
        result = Reg("other", operation.results[0])
        mask = Const(distance, VectorType(i32))
        self.out.append(MachineOp(operation, (value, mask), (result,), self._source))
        return result

    def _warps(self, own: tuple[Reg, ...], warps: int) -> tuple[Reg, ...]:
        """Store the results of each warp in shared memory, then combine them in every thread."""
        number = self._threads.number
        warp = number // WARP
        first = Predicate(eq(number % WARP, 0))
        self.out.append(If(first, self._stores(warp, own), (), self._source))
        start = warp // warps * warps
        return self._sum(own, (("warp", warps, 1),), start)

    def _gathered(self, own: tuple[Reg, ...], tags: tuple[str, ...]) -> tuple[Reg, ...]:
        """Store the parts of every thread in shared memory, then combine those of its group."""
        threads = self._threads
        self.out.extend(self._stores(threads.number, own))
        size = prod(threads.extent(t) for t in tags)
        part = _two_steps(size)
        if part and not threads.warps and threads.neighbors(tags):
            return self._in_two_steps(own, size, part)
        start = threads.number
        for tag in tags:
            start -= threads.position(tag) * threads.stride(tag)
        loops = tuple((t[-1], threads.extent(t), threads.stride(t)) for t in tags)
        return self._sum(own, loops, start)

    def _in_two_steps(self, own: tuple[Reg, ...], size: int, part: int) -> tuple[Reg, ...]:
        """Combine every ``part``-th value of a group of ``size``, then the ``part`` results.

        Adjacent threads read adjacent values, and each result is computed by several threads.
        """
        number = self._threads.number
        start = number // size * size
        some = self._sum(own, (("step", size // part, part),), start + number % part)
        self.out.extend(self._stores(number, some))
        return self._sum(some, (("part", part, 1),), start)

    def _stores(self, index: Expr, values: tuple[Reg, ...]) -> tuple[Stmt, ...]:
        pairs = zip(self._scratch, values, strict=True)
        return tuple(
            Store(_slot(scratch, index, value), value, source=self._source)
            for scratch, value in pairs
        )

    def _sum(
        self, own: tuple[Reg, ...], loops: tuple[tuple[str, int, int], ...], start: Expr
    ) -> tuple[Reg, ...]:
        totals = tuple(Reg("total", reg.type) for reg in own)
        for total, identity in zip(totals, self._combine.identities, strict=True):
            self.out.append(Assign(total, identity, self._source))
        counters = [var(name, lower=0, upper=size - 1) for name, size, _ in loops]
        index = start
        for counter, (_, _, stride) in zip(counters, loops, strict=True):
            index += counter * stride
        pairs = zip(self._scratch, own, strict=True)
        parts: tuple[Value, ...] = tuple(
            Load(VectorType(_dtype(reg)), _slot(scratch, index, reg)) for scratch, reg in pairs
        )
        inner: list[Stmt] = []
        results = self._combine(totals, parts, inner)
        if len(totals) > 1:  # all operands are read before a total changes
            made = tuple(Reg("next", value.type) for value in results)
            inner += [Assign(r, v, self._source) for r, v in zip(made, results, strict=True)]
            results = made
        inner += [Assign(t, v, self._source) for t, v in zip(totals, results, strict=True)]
        body = tuple(inner)
        for counter, (_, size, _) in zip(counters, loops, strict=True):
            body = (Loop(counter, as_expr(0), as_expr(size), body, 1, self._source),)
        self.out.extend(body)
        return totals


def _two_steps(size: int) -> int:
    """Return the number of results of the first of two steps; 0 if one step takes no longer.

    Examples
    --------
    >>> [_two_steps(size) for size in (8, 32, 64, 96, 256, 251)]
    [0, 4, 8, 8, 16, 0]
    """
    part = max(d for d in range(1, isqrt(size) + 1) if size % d == 0)
    return part if size - part - size // part > _STEP else 0


def _dtype(reg: Reg) -> DType:
    if not isinstance(reg.type, VectorType):
        raise TypeError(f"a partial result has type {reg.type}")
    return reg.type.dtype


def _slot(scratch: Reg, index: Expr, value: Reg) -> Address:
    width = VectorType(_dtype(value)).width
    return Address(scratch, index * width, width)
