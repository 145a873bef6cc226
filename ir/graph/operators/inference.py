"""Forward deduction: what is known of a call's result, and what has to hold for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...dtype import DType
from ...loop.nodes import Attributes
from ...symbolic import (
    FALSE,
    TRUE,
    Bool,
    Expr,
    Facts,
    as_expr,
    eq,
    is_proved,
    negate,
    to_text,
)
from ..nodes import Dims, Info, Operand, ScalarLiteral
from .errors import OperandError, ShapeMismatchError
from .signature import AttributeValues, Signature, check_operands, tensor_info

MOST_ELEMENTS = 64
"""Integer tensors of up to this many elements carry symbolic element values."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A predicate that a result rests on, neither proved nor impossible."""

    predicate: Bool
    reason: str


@dataclass(frozen=True, slots=True)
class Inferred:
    """The annotation of a result, and the requirements that a run-time check has to hold."""

    info: Info
    requirements: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class Tensor:
    """What is known of a tensor operand whose shape is known."""

    shape: tuple[Expr, ...]
    dtype: DType
    elements: tuple[Expr, ...] | None

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)


def shape_text(dims: Sequence[Expr]) -> str:
    """Print a shape.

    Examples
    --------
    >>> shape_text((as_expr(2), as_expr(3)))
    '(2, 3)'
    """
    inner = ", ".join(to_text(d) for d in dims)
    return f"({inner},)" if len(dims) == 1 else f"({inner})"


class CallFacts:
    """One call whose operands and attributes fit the signature; collects its requirements."""

    def __init__(
        self,
        op: str,
        signature: Signature,
        args: tuple[Operand, ...],
        attributes: Attributes,
        facts: Facts,
    ) -> None:
        """Check operands and attributes against the signature."""
        check_operands(op, signature, args)
        self.op = op
        self.args = args
        self.attributes = AttributeValues(op, signature, attributes)
        self.facts = facts
        self._signature = signature
        self._requirements: list[Requirement] = []

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """What could not be proved so far."""
        return tuple(self._requirements)

    def name(self, position: int) -> str:
        """Name an operand for a message."""
        return self._signature.operand_name(position)

    def has(self, position: int) -> bool:
        """Whether an optional operand is there."""
        return position < len(self.args)

    def tensor(self, position: int) -> Tensor:
        """Give the annotation of a tensor operand."""
        info = tensor_info(self.args[position])
        if info is None or info.shape is None:
            raise self.error(position, "expected a tensor of known shape")
        return Tensor(info.shape, info.dtype, info.elements)

    def tensors(self) -> tuple[Tensor, ...]:
        """Give the annotations of all operands, which all are tensors."""
        return tuple(self.tensor(k) for k in range(len(self.args)))

    def dims(self, position: int) -> tuple[Expr, ...]:
        """Give a tuple of integers."""
        operand = self.args[position]
        if not isinstance(operand, Dims):
            raise self.error(position, "expected a tuple of integers")
        return operand.dims

    def literal(self, position: int) -> ScalarLiteral:
        """Give a number."""
        operand = self.args[position]
        if not isinstance(operand, ScalarLiteral):
            raise self.error(position, "expected a number")
        return operand

    def elements(self, position: int) -> tuple[Expr, ...] | None:
        """Give the symbolic values of an integer operand, where they are known."""
        operand = self.args[position]
        if isinstance(operand, ScalarLiteral):
            exact = not isinstance(operand.value, float)
            return (as_expr(int(operand.value)),) if exact else None
        return self.tensor(position).elements

    def error(self, position: int, message: str, hint: str = "") -> OperandError:
        """Make an error about one operand."""
        where = f"operand {self.name(position)!r} of {self.op}"
        return OperandError(message, where=where, hint=hint)

    def require_rank(self, position: int, least: int, most: int | None = None) -> Tensor:
        """Check the rank of an operand."""
        tensor = self.tensor(position)
        if tensor.rank < least or (most is not None and tensor.rank > most):
            wanted = f"{least}" if most == least else f"at least {least}"
            wanted = f"{least} to {most}" if most is not None and most != least else wanted
            raise self.error(
                position, f"rank {tensor.rank}, shape {shape_text(tensor.shape)}; expected {wanted}"
            )
        return tensor

    def require_same_dtype(self, positions: Sequence[int]) -> DType:
        """Check that operands have one dtype, and give it."""
        first = self.tensor(positions[0])
        for k in positions[1:]:
            if self.tensor(k).dtype != first.dtype:
                message = f"dtype {self.tensor(k).dtype} differs from {first.dtype}"
                of_first = f"of operand {self.name(positions[0])!r}"
                raise self.error(k, f"{message} {of_first}", hint="cast one of them")
        return first.dtype

    def require(self, predicate: Bool, reason: str) -> None:
        """Prove a predicate; keep it as a requirement where only the run can tell.

        Raises
        ------
        ShapeMismatchError
            If no values of the symbols make it true.
        """
        if predicate == TRUE or is_proved(predicate, self.facts):
            return
        if predicate == FALSE or is_proved(negate(predicate), self.facts):
            raise ShapeMismatchError(reason, where=f"operator {self.op}")
        self._requirements.append(Requirement(predicate, reason))

    def require_equal(self, left: Expr, right: Expr, reason: str) -> None:
        """Require that two dimensions are equal; ``reason`` gets their values appended."""
        if left is right:
            return
        self.require(eq(left, right), f"{reason}: {to_text(left)} and {to_text(right)}")
