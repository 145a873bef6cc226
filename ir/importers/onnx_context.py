"""The context passed to the import handlers of ONNX operators."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

from ..dtype import from_numpy, i64
from ..graph.builder import GraphBuilder
from ..graph.nodes import ConstantRef, TensorInfo
from ..graph.operators.shape_inference import MAX_ELEMENTS
from ..module import Array
from ..symbolic import Expr, const_value, to_text
from .elementwise import convert
from .emitter import Emitter
from .onnx_file import DEFAULT_DOMAINS
from .tensors import Imported, StackedSequence, TensorSequence, Uniform
from .unsupported import UnsupportedFormError

_MAX_SCOPES: Final = 100_000
_SCOPE: Final = re.compile(r"""'[^'\\]*'|"[^"\\]*\"""")
_SCOPES: Final = re.compile(rf"\[(?:{_SCOPE.pattern})(?:, (?:{_SCOPE.pattern}))*\]")


Datum: TypeAlias = "Imported | TensorSequence | StackedSequence"
"""A value of an ONNX graph."""


def _no_subgraph(_graph: Any, _given: Sequence[Datum]) -> list[Datum]:
    raise UnsupportedFormError("subgraphs are not supported here")


class OnnxContext(Emitter):
    """The emitter of one ONNX graph, positioned at one of its nodes."""

    def __init__(self, builder: GraphBuilder, opset: int) -> None:
        """Create a context positioned before the first node."""
        super().__init__(builder)
        self.opset = opset
        self.node: Any = None
        self.inputs: list[Datum | None] = []
        self.attributes: dict[str, Any] = {}
        self.translate: Callable[[Any, Sequence[Datum]], list[Datum]] = _no_subgraph

    def input(self, position: int) -> Imported:
        """Return a required input."""
        found = self.optional(position)
        if found is None:
            raise UnsupportedFormError(f"required input {position} is missing")
        return found

    def optional(self, position: int) -> Imported | None:
        """Return an input, or None if it is omitted."""
        found = self.inputs[position] if position < len(self.inputs) else None
        return None if found is None else tensor_of(found, f"input {position}")

    def given(self) -> list[Imported]:
        """Return all inputs that are not omitted."""
        found = (self.optional(k) for k in range(len(self.inputs)))
        return [x for x in found if x is not None]

    def sequence(self, position: int) -> TensorSequence:
        """Return a required input that is a sequence."""
        found = self.inputs[position]
        if not isinstance(found, TensorSequence):
            raise UnsupportedFormError(f"input {position} is not a sequence of tensors")
        return found

    def subgraph(self, graph: Any, given: Sequence[Imported]) -> list[Imported]:
        """Translate a subgraph whose inputs and outputs are tensors."""
        return [tensor_of(x, f"output {k}") for k, x in enumerate(self.translate(graph, given))]

    def integer(self, name: str, default: int | None = None) -> int:
        """Read an integer attribute."""
        found = self.attributes.get(name, default)
        if not isinstance(found, int):
            raise UnsupportedFormError(f"required integer attribute {name} is missing")
        return found

    def values(self, x: Imported) -> tuple[Expr, ...]:
        """Return the elements of an integer vector or scalar, which may depend on shapes only."""
        self.check_vector(x)
        found = self.elements(x)
        if found is None:
            raise UnsupportedFormError(
                "a shape or index operand depends on data; only constants and expressions over "
                "the input shapes are supported",
                hint="compute shapes and indices from the shapes of the inputs",
            )
        return found

    def check_vector(self, x: Imported) -> None:
        """Reject an operand of sizes or indices that is neither a vector nor a scalar."""
        if x.rank > 1:
            raise UnsupportedFormError(
                f"a shape or index operand must be a vector, got {x.rank} dimensions"
            )

    def sizes(self, x: Imported, *, lower: int | None = 0) -> tuple[Expr, ...]:
        """Return the elements of an integer vector or scalar as terms.

        Elements that depend on data are read when the program runs, and are checked to be at least
        ``lower``.
        """
        self.check_vector(x)
        found = self.elements(x)
        return self.read(x, lower=lower) if found is None else found

    def read(self, x: Imported, *, lower: int | None = 0) -> tuple[Expr, ...]:
        """Return symbols for the elements of a tensor of constant shape, read at run time."""
        dims = [const_value(d) for d in x.shape]
        if None in dims or math.prod(d or 0 for d in dims) > MAX_ELEMENTS:
            shape = ", ".join(map(to_text, x.shape))
            raise UnsupportedFormError(
                f"sizes or indices are read from a tensor of shape ({shape}); expected a constant "
                f"shape of at most {MAX_ELEMENTS} elements"
            )
        count = math.prod(d or 0 for d in dims)
        name = f"given_{self.node.op_type.lower()}"
        symbols = tuple(self.symbol(name, lower=lower) for _ in range(count))
        source = self.plain(convert(self, x, i64))
        info = TensorInfo(x.shape, i64, elements=symbols)
        self.builder.match_cast(source, info, name="sizes")
        return symbols

    def known(self, position: int) -> tuple[int, ...] | None:
        """Return the elements of an integer input if they are constants."""
        x = self.input(position)
        found = self.elements(x) if x.rank <= 1 else None
        values = None if found is None else [const_value(v) for v in found]
        if values is None or None in values:
            return None
        return tuple(v for v in values if v is not None)

    def fixed(self, x: Imported) -> tuple[int, ...]:
        """Return the elements of an integer tensor, which must be constants."""
        found = [const_value(v) for v in self.values(x)]
        if None in found:
            shown = ", ".join(to_text(v) for v in self.values(x))
            raise UnsupportedFormError(f"axes, steps, and counts must be constants, got [{shown}]")
        return tuple(v for v in found if v is not None)

    def floats(self, x: Imported) -> list[float]:
        """Return the elements of a tensor of floats, which must be constants."""
        if isinstance(x.known, Uniform):
            return [float(x.known.value)]
        constant = self.constants.get(x.operand.key) if isinstance(x.operand, ConstantRef) else None
        if constant is None:
            raise UnsupportedFormError("scales, regions, and numbers of padding must be constants")
        return np.asarray(constant.load(), np.float64).ravel().tolist()

    def leaf(self, *weights: Imported) -> str | None:
        """Return the innermost module of the node, such as ``query``, as a name for its result.

        Return None unless one of ``weights`` is a constant: only the result of the operator that
        uses the weights of a module takes its name.
        """
        last = scope_of(self.node).rsplit(".", 1)[-1]
        weighted = any(isinstance(w.operand, ConstantRef) for w in weights)
        return last if weighted and last.isidentifier() else None

    def literal(self, name: str, array: Array) -> Imported:
        """Return a reference to a constant stored in the graph."""
        return self.constant(name, array.shape, from_numpy(array.dtype), lambda: array)

    def axes(self, position: int, *, attribute_below: int) -> tuple[int, ...] | None:
        """Read axes from an attribute below opset ``attribute_below``, else from an input."""
        if self.opset < attribute_below:
            found = self.attributes.get("axes")
            return None if found is None else tuple(found)
        given = self.optional(position)
        return None if given is None else self.fixed(given)


def tensor_of(x: Datum, where: str) -> Imported:
    """Return a value that must be a tensor."""
    if not isinstance(x, Imported):
        count = len(x.items) if isinstance(x, TensorSequence) else to_text(x.stack.shape[0])
        raise UnsupportedFormError(
            f"{where} is a sequence of {count} tensors; expected a tensor",
            hint="concatenate the sequence to a tensor before; in a loop, carry a tensor to which "
            "the body concatenates, or use a scan output",
        )
    return x


def scope_of(node: Any) -> str:
    """Return the path of the source module of a node; empty if the model does not record one."""
    for entry in node.metadata_props:
        if entry.key == "pkg.torch.onnx.name_scopes":
            return _last_scope(entry.value)
    parts = [p for p in node.name.split("/") if p]
    return ".".join(parts[:-1])


def _last_scope(text: str) -> str:
    """Return the module of a node, the last but one string of a list as Python prints it."""
    if len(text) > _MAX_SCOPES or not _SCOPES.fullmatch(text):
        return ""
    names = [scope[1:-1] for scope in _SCOPE.findall(text)]
    return names[-2] if len(names) > 1 else ""


Result: TypeAlias = "Datum | Sequence[Datum]"
Handler: TypeAlias = Callable[[OnnxContext], Result]
_F = TypeVar("_F", bound=Handler)
_HANDLERS: dict[str, Handler] = {}

HANDLERS: Mapping[str, Handler] = MappingProxyType(_HANDLERS)
"""The import handlers by ONNX operator name, which follows the name of other domains."""


def handler_key(node: Any) -> str:
    """Return the name that the handler of a node is registered under, with other domains."""
    return node.op_type if node.domain in DEFAULT_DOMAINS else f"{node.domain}.{node.op_type}"


def onnx_op(*names: str) -> Callable[[_F], _F]:
    """Register an import handler for ONNX operators."""

    def register(handler: _F) -> _F:
        for name in names:
            _HANDLERS[name] = handler
        return handler

    return register
