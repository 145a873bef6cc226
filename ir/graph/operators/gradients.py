"""Gradients of operator calls: the call as its gradient sees it, and common compositions."""

from __future__ import annotations

from dataclasses import dataclass

from ...dtype import DType
from ...symbolic import Expr, as_expr, const_value
from ..nodes import Info, Operand, TensorInfo, TupleInfo, Value, operand_info
from .composition import Composer
from .errors import OperandError
from .shape_inference import CallFacts, Tensor
from .signature import AttributeValues


@dataclass(frozen=True, slots=True)
class GradientCall:
    """A call whose gradient is computed.

    Parameters
    ----------
    facts : CallFacts
        The call with its operands and attributes.
    result : Value
        The value of the call.
    cotangents : tuple of Operand or None
        The cotangent of each field of the result; None where the differentiated result does not
        depend on the field.
    """

    facts: CallFacts
    result: Value
    cotangents: tuple[Operand | None, ...]

    @property
    def args(self) -> tuple[Operand, ...]:
        """The operands."""
        return self.facts.args

    @property
    def attributes(self) -> AttributeValues:
        """The attributes, including defaults."""
        return self.facts.attributes

    def tensor(self, position: int) -> Tensor:
        """Return the annotation of a tensor operand."""
        return self.facts.tensor(position)

    def cotangent(self, graph: Composer, field: int = 0) -> Operand:
        """Return the cotangent of a field of the result; zeros if it has none."""
        found = self.cotangents[field]
        info = self.result.info
        own = info.fields[field] if isinstance(info, TupleInfo) else info
        return zeros(graph, own) if found is None else found


def tensor_of(info: Info) -> TensorInfo:
    """Return an annotation that is a tensor of known shape.

    Raises
    ------
    OperandError
        If it is not.
    """
    if not isinstance(info, TensorInfo) or info.shape is None:
        raise OperandError(f"expected a tensor of known shape, got {info!r}")
    return info


def shape_of(operand: Operand) -> tuple[Expr, ...]:
    """Return the shape of a tensor operand."""
    return tensor_of(operand_info(operand)).shape or ()


def zeros(graph: Composer, info: Info, name: str = "zeros") -> Value:
    """Return a tensor of zeros with the shape and dtype of an annotation."""
    tensor = tensor_of(info)
    return graph.emit("full", tensor.shape or (), 0.0, dtype=tensor.dtype.name, name=name)


def extent(graph: Composer, size: Expr, dtype: DType) -> Value:
    """Return a symbolic integer as a tensor of shape ``()``."""
    counted = graph.emit("reshape", graph.emit("shape_to_tensor", (size,)), ())
    return graph.emit("cast", counted, dtype=dtype.name)


def transposed(graph: Composer, x: Operand) -> Value:
    """Return a batch of transposed matrices."""
    rank = len(shape_of(x))
    return graph.emit("permute_dims", x, axes=(*range(rank - 2), rank - 1, rank - 2))


def restored(graph: Composer, x: Operand, axes: tuple[int, ...], shape: tuple[Expr, ...]) -> Value:
    """Broadcast the result of a reduction over axes to the shape of its operand."""
    kept = tuple(as_expr(1) if k in axes else d for k, d in enumerate(shape))
    spread = x if shape_of(x) == kept else graph.emit("reshape", x, kept)
    return graph.emit("broadcast_to", spread, shape)


def conformed(graph: Composer, cotangent: Operand, info: TensorInfo) -> Operand:
    """Return a cotangent with the shape of its operand: sum over the dimensions that broadcast.

    A dimension broadcasts if it is absent from the operand, or the constant 1. Symbolic dimensions
    of the operand and the result are equal, since an operator requires that.
    """
    shape, own = info.shape, shape_of(cotangent)
    if shape is None or shape == own:
        return cotangent
    lead = len(own) - len(shape)
    if lead > 0:
        cotangent, own = graph.emit("sum", cotangent, axes=tuple(range(lead))), own[lead:]
    ones = [k for k, d in enumerate(shape) if const_value(d) == 1 and const_value(own[k]) != 1]
    if ones:
        cotangent = graph.emit("sum", cotangent, axes=tuple(ones), keepdims=True)
    if shape_of(cotangent) == shape:
        return cotangent
    return graph.match_cast(cotangent, TensorInfo(shape, info.dtype))
