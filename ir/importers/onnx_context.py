"""What a handler of one ONNX operator works with."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from ..dtype import from_numpy
from ..graph.builder import GraphBuilder
from ..graph.nodes import ConstantRef
from ..module import Array
from ..symbolic import Expr, const_value
from .emitter import Emitter
from .tensors import Imported
from .unsupported import UnsupportedFormError


class OnnxContext(Emitter):
    """The emitter of one ONNX graph, at one of its nodes."""

    def __init__(self, builder: GraphBuilder, opset: int) -> None:
        """Start before the first node."""
        super().__init__(builder)
        self.opset = opset
        self.node: Any = None
        self.inputs: list[Imported | None] = []
        self.attributes: dict[str, Any] = {}

    def input(self, position: int) -> Imported:
        """Give an input that has to be there."""
        found = self.optional(position)
        if found is None:
            raise UnsupportedFormError(f"input {position} is missing")
        return found

    def optional(self, position: int) -> Imported | None:
        """Give an input, None where it is left out."""
        return self.inputs[position] if position < len(self.inputs) else None

    def given(self) -> list[Imported]:
        """Give all inputs that are there."""
        return [x for x in self.inputs if x is not None]

    def integer(self, name: str, default: int | None = None) -> int:
        """Read an integer attribute."""
        found = self.attributes.get(name, default)
        if not isinstance(found, int):
            raise UnsupportedFormError(f"attribute {name} is missing")
        return found

    def values(self, x: Imported) -> tuple[Expr, ...]:
        """Give the integers that a tensor holds, which have to be known from the shapes."""
        found = self.elements(x)
        if found is None:
            raise UnsupportedFormError(
                "a shape or position depends on data",
                hint="only what follows from the inputs' shapes can be a shape",
            )
        return found

    def fixed(self, x: Imported) -> tuple[int, ...]:
        """Give the integers that a tensor holds, which have to be constant."""
        found = [const_value(v) for v in self.values(x)]
        if None in found:
            raise UnsupportedFormError("axes, steps or counts depend on the inputs' shapes")
        return tuple(v for v in found if v is not None)

    def leaf(self, *weights: Imported) -> str | None:
        """Name a result by the innermost module that the node comes from, such as ``query``.

        Only where one of ``weights`` is a constant: other results are not what a module is for.
        """
        last = scope_of(self.node).rsplit(".", 1)[-1]
        weighted = any(isinstance(w.operand, ConstantRef) for w in weights)
        return last if weighted and last.isidentifier() else None

    def literal(self, name: str, array: Array) -> Imported:
        """Refer to a constant written into the graph."""
        return self.constant(name, array.shape, from_numpy(array.dtype), lambda: array)

    def axes(self, position: int, *, attribute_below: int) -> tuple[int, ...] | None:
        """Read axes, an attribute in older opsets and an input in later ones."""
        if self.opset < attribute_below:
            found = self.attributes.get("axes")
            return None if found is None else tuple(found)
        given = self.optional(position)
        return None if given is None else self.fixed(given)


def scope_of(node: Any) -> str:
    """Give the path of the source module that a node comes from; empty where none is told."""
    for entry in node.metadata_props:
        if entry.key == "pkg.torch.onnx.name_scopes":
            return _last_scope(entry.value)
    parts = [p for p in node.name.split("/") if p]
    return ".".join(parts[:-1])


def _last_scope(text: str) -> str:
    try:
        scopes = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return ""
    names = [s for s in scopes if isinstance(s, str)] if isinstance(scopes, list) else []  # pyright: ignore[reportUnknownVariableType]
    return names[-2] if len(names) > 1 else ""


Result: TypeAlias = "Imported | list[Imported]"
Handler: TypeAlias = Callable[[OnnxContext], Result]
_F = TypeVar("_F", bound=Handler)
_HANDLERS: dict[str, Handler] = {}

HANDLERS: Mapping[str, Handler] = MappingProxyType(_HANDLERS)
"""How each operator of ONNX is imported, by its name."""


def onnx_op(*names: str) -> Callable[[_F], _F]:
    """Register a handler for operators of ONNX."""

    def register(handler: _F) -> _F:
        for name in names:
            _HANDLERS[name] = handler
        return handler

    return register
