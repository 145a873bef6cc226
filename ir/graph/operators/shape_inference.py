"""Shape inference: the annotation of a call's result and its requirements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from sys import float_info

from ....errors import ShapeMismatchError
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
from .errors import OperandError
from .signature import AttributeValues, Signature, check_operands, tensor_info

MAX_ELEMENTS = 64
"""The maximum number of elements of integer tensors with symbolic element values."""

MOST_BITS = 64
"""The number of bits of an integer above which messages state the number of bits instead."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A predicate that a call requires and that is neither proved nor refuted.

    ``reason`` becomes the origin of the fact that the run-time check establishes.
    """

    predicate: Bool
    reason: str


@dataclass(frozen=True, slots=True)
class Inferred:
    """The annotation of a result, and the requirements to be checked at run time."""

    info: Info
    requirements: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class Tensor:
    """The shape, dtype and symbolic element values of a tensor operand."""

    shape: tuple[Expr, ...]
    dtype: DType
    elements: tuple[Expr, ...] | None

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)


def shape_text(dims: Sequence[Expr]) -> str:
    """Return a shape as text.

    Examples
    --------
    >>> shape_text((as_expr(2), as_expr(3)))
    '(2, 3)'
    """
    inner = ", ".join(to_text(d) for d in dims)
    return f"({inner},)" if len(dims) == 1 else f"({inner})"


class CallFacts:
    """One call with checked operands and attributes; it collects the requirements of the call.

    Raises
    ------
    OperandError, OperatorAttributeError
        If operands or attributes do not match the signature.
    """

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
        """The requirements that are not proved."""
        return tuple(self._requirements)

    def name(self, position: int) -> str:
        """Return the name of an operand."""
        return self._signature.operand_name(position)

    def has(self, position: int) -> bool:
        """Return whether an optional operand is present."""
        return position < len(self.args)

    def tensor(self, position: int) -> Tensor:
        """Return the annotation of a tensor operand."""
        info = tensor_info(self.args[position])
        if info is None or info.shape is None:
            raise self.error(position, "expected a tensor of known shape")
        return Tensor(info.shape, info.dtype, info.elements)

    def tensors(self) -> tuple[Tensor, ...]:
        """Return the annotations of all operands, which must be tensors."""
        return tuple(self.tensor(k) for k in range(len(self.args)))

    def dims(self, position: int) -> tuple[Expr, ...]:
        """Return an operand that is a tuple of integers."""
        operand = self.args[position]
        if not isinstance(operand, Dims):
            raise self.error(position, "expected a tuple of integers")
        return operand.dims

    def literal(self, position: int) -> ScalarLiteral:
        """Return an operand that is a number."""
        operand = self.args[position]
        if not isinstance(operand, ScalarLiteral):
            raise self.error(position, "expected a number")
        return operand

    def require_number(self, position: int, dtype: DType) -> None:
        """Require that a number operand is a value of a dtype."""
        value = self.literal(position).value
        known = isinstance(value, bool) if dtype.kind == "bool" else True
        if not known or (isinstance(value, float) and not dtype.is_inexact):
            raise self._other_number(position, dtype)
        self.require_in_range(position, dtype)

    def require_in_range(self, position: int, dtype: DType) -> None:
        """Require that a number operand is in the range of a dtype.

        Floats may round to infinity, but not to NaN for lack of it.

        Python converts no larger integer than the largest f64 to a float.
        """
        value = self.literal(position).value
        if dtype.is_inexact and isinstance(value, int) and abs(value) > float_info.max:
            raise self._other_number(position, dtype, "it is larger than the largest f64")
        if dtype.rounds_to_nan(value):
            raise self._other_number(position, dtype, f"its largest value is {dtype.largest}")
        if dtype.is_integer and not (dtype.lowest - 1 < value < dtype.highest + 1):
            limits = f"its values are {dtype.lowest} to {dtype.highest}"
            raise self._other_number(position, dtype, limits)

    def _other_number(self, position: int, dtype: DType, reason: str = "") -> OperandError:
        """Return the error of a number that is not a value of a dtype."""
        value = self.literal(position).value
        long = isinstance(value, int) and value.bit_length() > MOST_BITS
        number = f"of {int(value).bit_length()} bits" if long else repr(value)
        message = f"number {number} is not a value of dtype {dtype}"
        hint = f"pass a value of dtype {dtype}, or cast the tensor operand"
        return self.error(position, f"{message}: {reason}" if reason else message, hint)

    def elements(self, position: int) -> tuple[Expr, ...] | None:
        """Return the symbolic element values of an integer operand, or None if unknown."""
        operand = self.args[position]
        if isinstance(operand, ScalarLiteral):
            exact = not isinstance(operand.value, float)
            return (as_expr(int(operand.value)),) if exact else None
        return self.tensor(position).elements

    def error(self, position: int, message: str, hint: str = "") -> OperandError:
        """Return an error about one operand."""
        where = f"operand {self.name(position)!r} of {self.op}"
        return OperandError(message, where=where, hint=hint)

    def require_rank(self, position: int, minimum: int, maximum: int | None = None) -> Tensor:
        """Return a tensor operand after checking ``minimum <= rank <= maximum``."""
        tensor = self.tensor(position)
        if tensor.rank < minimum or (maximum is not None and tensor.rank > maximum):
            wanted = f"at least {minimum}" if maximum is None else f"{minimum} to {maximum}"
            wanted = f"{minimum}" if maximum == minimum else wanted
            found = f"rank {tensor.rank} (shape {shape_text(tensor.shape)})"
            raise self.error(position, f"expected rank {wanted}, got {found}")
        return tensor

    def require_same_dtype(self, positions: Sequence[int]) -> DType:
        """Return the common dtype of operands.

        Raises
        ------
        OperandError
            If the dtypes differ.
        """
        first = self.tensor(positions[0])
        for k in positions[1:]:
            if self.tensor(k).dtype != first.dtype:
                message = f"dtype {self.tensor(k).dtype} differs from dtype {first.dtype}"
                of_first = f"of operand {self.name(positions[0])!r}"
                raise self.error(k, f"{message} {of_first}", hint="cast one of the operands")
        return first.dtype

    def require(self, predicate: Bool, reason: str, origin: str = "") -> None:
        """Require a predicate: if it is not proved, it becomes a run-time check.

        ``reason`` is the message if the predicate is proved false; ``origin``, by default the
        same text, is the origin of the fact that the run-time check establishes.

        Raises
        ------
        ShapeMismatchError
            If the predicate is false for all values of the symbols.
        """
        if predicate == TRUE or is_proved(predicate, self.facts):
            return
        if predicate == FALSE or is_proved(negate(predicate), self.facts):
            raise ShapeMismatchError(reason, where=f"operator {self.op}")
        self._requirements.append(Requirement(predicate, origin or reason))

    def require_equal(self, left: Expr, right: Expr, reason: str) -> None:
        """Require that two dimensions are equal; they are appended to ``reason``."""
        if left is right:
            return
        a, b = to_text(left), to_text(right)
        self.require(eq(left, right), f"{reason}: {a} != {b}", f"{self.op} requires {a} == {b}")
