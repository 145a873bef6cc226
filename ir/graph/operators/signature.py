"""Operator signatures: operands, attributes and their checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from ...dtype import DType, dtype as dtype_named
from ...loop.nodes import Attribute, Attributes
from ..nodes import ConstantRef, Dims, Operand, ScalarLiteral, TensorInfo, Value
from .errors import OperandError, OperatorAttributeError

OperandKind: TypeAlias = Literal["tensor", "number", "dims"]
DTypeClass: TypeAlias = Literal[
    "any", "field", "number", "inexact", "float", "integer", "bool", "complex", "part"
]
"""A class of dtypes: ``field`` are real and complex numbers, ``number`` real numbers, ``inexact``
floats and complex numbers, and ``part`` the floats of the parts of complex numbers."""

AttributeType: TypeAlias = Literal["int", "float", "bool", "str", "ints", "dtype"]

_KIND_WORDS = {"tensor": "a tensor", "number": "a number", "dims": "a tuple of integers"}
_DTYPE_WORDS: dict[DTypeClass, str] = {
    "any": "any dtype",
    "field": "a numeric dtype",
    "number": "a dtype of real numbers",
    "inexact": "a floating-point or complex dtype",
    "float": "a floating-point dtype",
    "integer": "an integer dtype",
    "bool": "dtype bool",
    "complex": "a complex dtype",
    "part": "dtype f32 or f64",
}
_TYPE_WORDS: dict[AttributeType, str] = {
    "int": "an int",
    "float": "a float",
    "bool": "a bool",
    "str": "a string",
    "ints": "a tuple of ints",
    "dtype": "the name of a dtype",
}


@dataclass(frozen=True, slots=True)
class OperandSpec:
    """The specification of one operand.

    Parameters
    ----------
    name : str
        The name in messages and lowered functions.
    kinds : tuple of str
        The accepted kinds: ``"tensor"``, ``"number"`` (a scalar literal) or ``"dims"`` (a tuple of
        symbolic integers).
    dtypes : str
        The accepted class of dtypes of a tensor.
    optional : bool
        Whether the operand can be omitted.
    variadic : bool
        Whether the operand, which must be the last one, can be repeated.
    """

    name: str
    kinds: tuple[OperandKind, ...] = ("tensor",)
    dtypes: DTypeClass = "any"
    optional: bool = False
    variadic: bool = False


@dataclass(frozen=True, slots=True)
class AttributeSpec:
    """The specification of one attribute.

    Parameters
    ----------
    name : str
        The name.
    type : str
        The type of the value.
    default : Attribute, optional
        The default value; None if the attribute is required.
    choices : tuple of str
        The legal values of a string; empty if any string is legal.
    """

    name: str
    type: AttributeType
    default: Attribute | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Signature:
    """The operands of an operator in order, and its attributes by name."""

    operands: tuple[OperandSpec, ...]
    attributes: tuple[AttributeSpec, ...] = ()

    def spec(self, position: int) -> OperandSpec:
        """Return the specification of the operand at a position."""
        return self.operands[min(position, len(self.operands) - 1)]

    def operand_name(self, position: int) -> str:
        """Return the name of an operand, with a number if the operand is variadic."""
        spec = self.spec(position)
        return f"{spec.name}{position - len(self.operands) + 1}" if spec.variadic else spec.name


def dtype_is(dtype: DType, wanted: DTypeClass) -> bool:
    """Return whether a dtype belongs to a class of dtypes."""
    match wanted:
        case "any":
            return True
        case "field":
            return dtype.is_inexact or dtype.is_integer
        case "number":
            return dtype.is_float or dtype.is_integer
        case "inexact":
            return dtype.is_inexact
        case "complex":
            return dtype.is_complex
        case "part":
            return dtype.paired is not None
        case "float":
            return dtype.is_float
        case "integer":
            return dtype.is_integer
        case "bool":
            return dtype.kind == "bool"


def kind_of(operand: Operand) -> OperandKind:
    """Return the kind of an operand."""
    match operand:
        case Dims():
            return "dims"
        case ScalarLiteral():
            return "number"
        case Value() | ConstantRef():
            return "tensor"


def tensor_info(operand: Operand) -> TensorInfo | None:
    """Return the annotation of a tensor operand; None for other operands."""
    if isinstance(operand, Value | ConstantRef) and isinstance(operand.info, TensorInfo):
        return operand.info
    return None


def _check_count(op: str, signature: Signature, count: int) -> None:
    specs = signature.operands
    minimum = sum(not s.optional for s in specs)
    maximum = None if specs and specs[-1].variadic else len(specs)
    if count < minimum or (maximum is not None and count > maximum):
        names = ", ".join(f"{s.name}..." if s.variadic else s.name for s in specs)
        if maximum is None:
            allowed = f"at least {minimum}"
        else:
            allowed = f"{minimum}" if maximum == minimum else f"{minimum} to {maximum}"
        noun = "operand" if minimum == 1 and maximum in (None, 1) else "operands"
        raise OperandError(
            f"expected {allowed} {noun}, got {count}",
            where=f"operator {op}",
            hint=f"operands are ({names})",
        )


def _check_operand(op: str, signature: Signature, position: int, operand: Operand) -> None:
    spec = signature.spec(position)
    where = f"operand {signature.operand_name(position)!r} of {op}"
    kind = kind_of(operand)
    if kind not in spec.kinds:
        wanted = " or ".join(_KIND_WORDS[k] for k in spec.kinds)
        raise OperandError(f"expected {wanted}, got {_KIND_WORDS[kind]}", where=where)
    if kind != "tensor":
        return
    info = tensor_info(operand)
    if info is None:
        found = type(operand.info).__name__ if isinstance(operand, Value) else "unknown"
        message = f"expected a tensor, got a value of kind {found.removesuffix('Info')}"
        raise OperandError(message, where=where)
    if info.shape is None:
        raise OperandError(
            "the shape of the tensor is unknown",
            where=where,
            hint="refine the annotation with match_cast",
        )
    if not dtype_is(info.dtype, spec.dtypes):
        raise OperandError(f"expected {_DTYPE_WORDS[spec.dtypes]}, got {info.dtype}", where=where)


def check_operands(op: str, signature: Signature, args: Sequence[Operand]) -> None:
    """Check the number of operands, their kinds and dtypes, and that their shapes are known.

    Raises
    ------
    OperandError
        If an operand is invalid.
    """
    _check_count(op, signature, len(args))
    for position, operand in enumerate(args):
        _check_operand(op, signature, position, operand)


def _has_type(value: Attribute, wanted: AttributeType) -> bool:
    match wanted:
        case "bool":
            return isinstance(value, bool)
        case "int":
            return isinstance(value, int) and not isinstance(value, bool)
        case "float":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "str" | "dtype":
            return isinstance(value, str)
        case "ints":
            return isinstance(value, tuple) and all(isinstance(v, int) for v in value)


class AttributeValues:
    """The attribute values of one call, including defaults.

    Raises
    ------
    OperatorAttributeError
        If an attribute is unknown, missing, or of the wrong type.
    """

    def __init__(
        self, op: str, signature: Signature, given: Attributes | Mapping[str, Attribute]
    ) -> None:
        """Check the given attributes against the signature."""
        self._op = op
        specs = {s.name: s for s in signature.attributes}
        named = dict(given)
        for name, value in named.items():
            self._check(specs, name, value)
        self._values: dict[str, Attribute] = {}
        for spec in specs.values():
            value = named.get(spec.name, spec.default)
            if value is None:
                raise OperatorAttributeError(
                    f"required attribute {spec.name!r} is missing", where=self.where
                )
            self._values[spec.name] = value

    @property
    def where(self) -> str:
        """The location in errors."""
        return f"operator {self._op}"

    def _check(self, specs: Mapping[str, AttributeSpec], name: str, value: Attribute) -> None:
        spec = specs.get(name)
        if spec is None:
            known = ", ".join(specs) or "none"
            raise OperatorAttributeError(
                f"no attribute {name!r}", where=self.where, hint=f"attributes are {known}"
            )
        if not _has_type(value, spec.type):
            raise OperatorAttributeError(
                f"attribute {name!r} must be {_TYPE_WORDS[spec.type]}, got {value!r}",
                where=self.where,
            )
        if spec.choices and value not in spec.choices:
            raise OperatorAttributeError(
                f"attribute {name!r} does not accept {value!r}",
                where=self.where,
                hint=f"legal values are {', '.join(spec.choices)}",
            )

    def integer(self, name: str) -> int:
        """Return the value of an integer attribute."""
        return cast("int", self._values[name])

    def number(self, name: str) -> float:
        """Return the value of a float attribute."""
        return float(cast("float", self._values[name]))

    def flag(self, name: str) -> bool:
        """Return the value of a bool attribute."""
        return bool(self._values[name])

    def text(self, name: str) -> str:
        """Return the value of a string attribute."""
        return str(self._values[name])

    def integers(self, name: str) -> tuple[int, ...]:
        """Return the value of a tuple attribute."""
        return cast("tuple[int, ...]", self._values[name])

    def dtype(self, name: str) -> DType:
        """Return the value of a dtype attribute."""
        return dtype_named(self.text(name))

    def _axis(self, name: str, value: int, rank: int) -> int:
        if not -rank <= value < rank:
            raise OperatorAttributeError(
                f"{name} {value} is out of range for rank {rank}",
                where=self.where,
                hint=f"legal axes are {-rank} to {rank - 1}" if rank else "a scalar has no axes",
            )
        return value % rank

    def axis(self, name: str, rank: int) -> int:
        """Return an axis attribute as a non-negative axis of a tensor of this rank."""
        return self._axis(name, self.integer(name), rank)

    def axes(self, name: str, rank: int) -> tuple[int, ...]:
        """Return an axes attribute as distinct non-negative axes of a tensor of this rank."""
        values = tuple(self._axis(name, v, rank) for v in self.integers(name))
        if len(set(values)) != len(values):
            raise OperatorAttributeError(
                f"{name} {values} contains an axis twice", where=self.where
            )
        return values
