"""The interface of a builder for compositions of operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

from ...loop.nodes import Attribute
from ...symbolic import SymInt
from ..nodes import ConstantRef, Info, Operand, Value
from .shape_inference import Requirement

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
