"""The interface of a builder for compositions of operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

from ...loop.nodes import Attribute
from ...symbolic import SymInt
from ..nodes import ConstantRef, Info, Operand, Value
from .lowering import accumulator
from .shape_inference import CallFacts, Requirement

Argument: TypeAlias = "Operand | float | int | bool | Sequence[SymInt]"
AttributeArgument: TypeAlias = "Attribute | Sequence[int]"


class Composer(Protocol):
    """A builder of a graph, as an operator sees it."""

    def emit(self, op: str, *args: Any, name: str | None = None, **attributes: Any) -> Value:
        """Apply an operator."""
        ...

    def library(
        self, symbol: str, /, *args: Value | ConstantRef, **attributes: AttributeArgument
    ) -> tuple[Value, ...]:
        """Call a library function that deduces its outputs."""
        ...

    def match_cast(self, value: Argument, info: Info, *, name: str = "matched") -> Value:
        """Refine the annotation of a value, checked at run time."""
        ...

    def item(self, tuple_: Value, index: int, /) -> Value:
        """Select one field of a tuple."""
        ...

    def check(self, requirement: Requirement, /) -> None:
        """Add a run-time check of a requirement."""
        ...


def widened(call: CallFacts, graph: Composer, position: int = 0) -> Operand:
    """Return an operand in the dtype that a formula of several operations is computed in."""
    dtype, wide = call.tensor(position).dtype, accumulator(call.tensor(position).dtype)
    operand = call.args[position]
    return operand if dtype == wide else graph.emit("cast", operand, dtype=wide.name)


def narrowed_to(call: CallFacts, graph: Composer, value: Value) -> Value:
    """Return a value of a widened formula in the dtype of the first operand."""
    dtype = call.tensor(0).dtype
    return value if dtype == accumulator(dtype) else graph.emit("cast", value, dtype=dtype.name)
