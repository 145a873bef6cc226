"""The context passed to the import handlers of PyTorch operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

from ..dtype import DType
from ..graph.builder import GraphBuilder
from ..symbolic import Expr, as_expr, const_value
from .emitter import Emitter
from .shaping import reshape
from .tensors import Imported
from .torch_constants import TorchConstants, torch_dtype
from .torch_symbols import TorchSymbols

Scalar: TypeAlias = "float | int | bool | Expr"
OperandLike: TypeAlias = "Imported | complex | float | int | bool | Expr"
Datum: TypeAlias = Any
"""The result of a node of the source program: a tensor, a size, a list of these, or None."""


class TorchContext(Emitter):
    """The emitter of one exported program, positioned at one of its nodes."""

    def __init__(self, builder: GraphBuilder, symbols: TorchSymbols) -> None:
        """Create a context without constants, positioned before the first node."""
        super().__init__(builder)
        self.symbols = symbols
        self.tensors = TorchConstants(self)
        self.node: Any = None
        self.streams = 0

    @property
    def operator(self) -> str:
        """The name of the node's operator without its overload, such as ``add``."""
        return str(self.node.target).split(".")[1]

    @property
    def leaf(self) -> str | None:
        """The name of the innermost module that the node belongs to, such as ``query``."""
        path = module_path(self.node)
        last = path.rsplit(".", 1)[-1]
        return last if last.isidentifier() else None

    def result_dtype(self) -> DType:
        """Return the dtype of the node's result in PyTorch."""
        return torch_dtype(self.node.meta["val"].dtype)

    def number(self, value: OperandLike, dtype: DType) -> Imported:
        """Return a tensor unchanged, and a number or size as a tensor of rank 0."""
        if isinstance(value, Imported):
            return value
        if isinstance(value, Expr):
            known = const_value(value)
            if known is None:
                return reshape(self, self.apply("shape_to_tensor", (value,)), ())
            value = known
        if isinstance(value, complex):
            return self._complex(value, dtype)
        return self.uniform(value, (), dtype)

    def _complex(self, value: complex, dtype: DType) -> Imported:
        """Return a complex number as a tensor of rank 0."""
        if not value.imag:
            return self.uniform(value.real, (), dtype)
        parts = (self.uniform(v, (), dtype.part) for v in (value.real, value.imag))
        return self.apply("complex", *(self.plain(part) for part in parts))

    def dims(self, sizes: Any) -> tuple[Expr, ...]:
        """Convert a list of sizes to terms."""
        return tuple(as_expr(s) for s in sizes)


def module_path(node: Any) -> str:
    """Return the path of the module that a node belongs to, such as ``encoder.layer.0``."""
    stack: dict[Any, Any] = node.meta.get("nn_module_stack") or {}
    paths = [str(entry[0]) for entry in stack.values()]
    return paths[-1] if paths else ""


Handler: TypeAlias = Callable[..., Datum]
_F = TypeVar("_F", bound=Handler)
_HANDLERS: dict[str, Handler] = {}

HANDLERS: Mapping[str, Handler] = MappingProxyType(_HANDLERS)
"""The import handlers by PyTorch operator name without its overload.

The names of operators outside of ATen begin with their namespace.
"""

_OTHERS: Final = ("prims.", "quantized_decomposed.", "transformers.")


def handler_name(target: Any) -> str | None:
    """Return the name of an operator in `HANDLERS`; None for functions of other kinds.

    Examples
    --------
    >>> handler_name("aten.add.Tensor"), handler_name("quantized_decomposed.quantize.default")
    ('add', 'quantized_decomposed.quantize')
    """
    text = str(target)
    if text.startswith("aten."):
        return text.split(".")[1]
    return ".".join(text.split(".")[:2]) if text.startswith(_OTHERS) else None


def aten(*names: str) -> Callable[[_F], _F]:
    """Register an import handler for PyTorch operators."""

    def register(handler: _F) -> _F:
        for name in names:
            _HANDLERS[name] = handler
        return handler

    return register
