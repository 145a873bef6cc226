"""Live ranges of storages in memory-stage functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..sizes import shape_bytes
from ..symbolic import Expr
from .nodes import (
    DEFAULT_DEVICE,
    AllocStorage,
    Binding,
    Branch,
    GraphFunc,
    IfElse,
    Kill,
    Loop,
    Operand,
    Rhs,
    TensorInfo,
    Value,
)
from .visit import branches_of, inner_bindings, operands_of, shared_operands


def tensor_bytes(info: TensorInfo) -> Expr:
    """Return the size of a compact tensor, in bytes.

    Examples
    --------
    >>> from ..dtype import f32
    >>> from ..symbolic import as_expr, var
    >>> n = var("n")
    >>> tensor_bytes(TensorInfo((n, as_expr(3)), f32))
    n * 12
    """
    return shape_bytes(info.shape or (), info.dtype)


@dataclass
class LiveRange:
    """The live range of a storage: the positions of its first and last use, inclusive.

    A position is the ordinal of a binding in program order.
    """

    storage: Value
    size: Expr
    first: int
    last: int
    depth: int
    device: str = DEFAULT_DEVICE
    stream: int = 0


class LiveRanges:
    """The live ranges of all storages of one function.

    ``roots`` maps a value to the storages that may hold it, ``ranges`` a storage to its live range,
    and ``positions`` a binding to its position. ``end`` is the position of the function results. A
    ``Kill`` is not a use. A storage that a loop uses is live until the end of the loop.
    """

    def __init__(self, func: GraphFunc) -> None:
        """Compute the live ranges; the results are used after the last binding."""
        self.roots: dict[Value, frozenset[Value]] = {}
        self.ranges: dict[Value, LiveRange] = {}
        self.positions: dict[Binding, int] = {}
        self.end = 0
        self._depth = 0
        self._bindings(func.bindings)
        self.end += 1
        self._use(func.results)

    def _bindings(self, bindings: Sequence[Binding]) -> None:
        for binding in bindings:
            self.end += 1
            self.positions[binding] = self.end
            self._binding(binding.value, binding.right)

    def _binding(self, value: Value, right: Rhs) -> None:
        if not isinstance(right, Kill):
            self._use(operands_of(right))
        self._depth += 1
        before = self.end
        for param in right.params if isinstance(right, Loop) else ():
            self.roots[param.value] = self.roots_of((param.given,))
        for inner in inner_bindings(right):
            self._bindings(inner)
        self._depth -= 1
        for branch in branches_of(right):
            self._use(branch.results)
        match right:
            case AllocStorage(size=size, device=device):
                self.ranges[value] = LiveRange(
                    value, size, self.end, self.end, self._depth, device, right.stream
                )
                self.roots[value] = frozenset({value})
            case IfElse(then=Branch(results=a), otherwise=Branch(results=b)):
                self.roots[value] = self.roots_of((*a, *b))
            case Loop(carried=carried):
                self._extend(before)
                self.roots[value] = self.roots_of([p.given for p in carried])
            case _:
                self.roots[value] = self.roots_of(shared_operands(right))

    def _extend(self, before: int) -> None:
        """Extend the ranges of the storages that a loop uses until its end.

        The next iteration uses them again; a storage of the body is allocated in each iteration.
        """
        self.end += 1
        for own in self.ranges.values():
            if own.first <= before <= own.last:
                own.last = self.end

    def roots_of(self, operands: Sequence[Operand]) -> frozenset[Value]:
        """Return the storages that may hold some of the operands."""
        sets = [self.roots.get(o, frozenset[Value]()) for o in operands if isinstance(o, Value)]
        return frozenset[Value]().union(*sets)

    def _use(self, operands: Sequence[Operand]) -> None:
        for root in self.roots_of(operands):
            self.ranges[root].last = self.end
