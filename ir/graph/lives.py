"""Which storage every value of a memory-stage function may lie in, and when each is used last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..symbolic import Const, Expr, product
from .memory import AllocStorage, Kill, ViewTensor
from .nodes import (
    Binding,
    Branch,
    GraphFunc,
    IfElse,
    MakeTuple,
    MatchCast,
    Operand,
    Right,
    TensorInfo,
    TupleItem,
    Value,
)
from .visit import inner_bindings, operands_of


def tensor_bytes(info: TensorInfo) -> Expr:
    """Count the bytes of a compact tensor.

    Examples
    --------
    >>> from ..dtype import f32
    >>> from ..symbolic import as_expr, var
    >>> n = var("n")
    >>> tensor_bytes(TensorInfo((n, as_expr(3)), f32))
    n * 12
    """
    return product((*(info.shape or ()), Const(info.dtype.bytes)))


@dataclass
class Life:
    """The life of a storage: moments count bindings in program order, both ends included."""

    storage: Value
    size: Expr
    first: int
    last: int
    depth: int


class Lives:
    """Walks a function once.

    ``roots`` gives the storages that a value may lie in, ``lives`` the life of each storage,
    ``moments`` the number of each binding, ``moment`` that of the last one. A ``Kill`` is no use.
    """

    def __init__(self, func: GraphFunc) -> None:
        """Walk the function; results are used after everything else."""
        self.roots: dict[Value, frozenset[Value]] = {}
        self.lives: dict[Value, Life] = {}
        self.moments: dict[Binding, int] = {}
        self.moment = 0
        self._depth = 0
        self._bindings(func.bindings)
        self.moment += 1
        self._use(func.results)

    def _bindings(self, bindings: Sequence[Binding]) -> None:
        for binding in bindings:
            self.moment += 1
            self.moments[binding] = self.moment
            self._binding(binding.value, binding.right)

    def _binding(self, value: Value, right: Right) -> None:
        if not isinstance(right, Kill):
            self._use(operands_of(right))
        self._depth += 1
        for inner in inner_bindings(right):
            self._bindings(inner)
        self._depth -= 1
        match right:
            case AllocStorage(size=size):
                self.lives[value] = Life(value, size, self.moment, self.moment, self._depth)
                self.roots[value] = frozenset({value})
            case ViewTensor() | MatchCast() | MakeTuple() | TupleItem():
                self.roots[value] = self.roots_of(operands_of(right))
            case IfElse(then=Branch(results=a), otherwise=Branch(results=b)):
                self._use((*a, *b))
                self.roots[value] = self.roots_of((*a, *b))
            case _:
                self.roots[value] = frozenset()

    def roots_of(self, operands: Sequence[Operand]) -> frozenset[Value]:
        """Give the storages that some operands may lie in."""
        sets = [self.roots.get(o, frozenset[Value]()) for o in operands if isinstance(o, Value)]
        return frozenset[Value]().union(*sets)

    def _use(self, operands: Sequence[Operand]) -> None:
        for root in self.roots_of(operands):
            self.lives[root].last = self.moment
