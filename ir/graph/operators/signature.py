"""What an operator accepts: its operands and attributes, checked before anything else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from ...dtype import DType, dtype as dtype_named
from ...loop.nodes import Attribute, Attributes
from ..nodes import ConstantRef, Dims, Operand, ScalarLiteral, TensorInfo, Value
from .errors import OperandError, OperatorAttributeError

OperandKind: TypeAlias = Literal["tensor", "number", "dims"]
DTypeClass: TypeAlias = Literal["any", "number", "float", "integer", "bool"]
AttributeType: TypeAlias = Literal["int", "float", "bool", "str", "ints", "dtype"]

_KIND_WORDS = {"tensor": "a tensor", "number": "a number", "dims": "a tuple of integers"}


@dataclass(frozen=True, slots=True)
class OperandSpec:
    """One operand: its name, what it may be, and which dtypes it may have."""

    name: str
    kinds: tuple[OperandKind, ...] = ("tensor",)
    dtypes: DTypeClass = "any"
    optional: bool = False
    variadic: bool = False


@dataclass(frozen=True, slots=True)
class AttributeSpec:
    """One attribute; a default of None means that it has to be given."""

    name: str
    type: AttributeType
    default: Attribute | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Signature:
    """The operands in order, then the attributes by name."""

    operands: tuple[OperandSpec, ...]
    attributes: tuple[AttributeSpec, ...] = ()

    def spec(self, position: int) -> OperandSpec:
        """Give the specification of the operand at a position; the last one may repeat."""
        return self.operands[min(position, len(self.operands) - 1)]

    def operand_name(self, position: int) -> str:
        """Name an operand: its own name, numbered where it repeats."""
        spec = self.spec(position)
        return f"{spec.name}{position - len(self.operands) + 1}" if spec.variadic else spec.name


def dtype_is(dtype: DType, wanted: DTypeClass) -> bool:
    """Whether a dtype belongs to a class of dtypes."""
    match wanted:
        case "any":
            return True
        case "number":
            return dtype.is_float or dtype.is_integer
        case "float":
            return dtype.is_float
        case "integer":
            return dtype.is_integer
        case "bool":
            return dtype.kind == "bool"


def kind_of(operand: Operand) -> OperandKind:
    """Tell which kind of operand this is."""
    match operand:
        case Dims():
            return "dims"
        case ScalarLiteral():
            return "number"
        case Value() | ConstantRef():
            return "tensor"


def tensor_info(operand: Operand) -> TensorInfo | None:
    """Give the annotation of a tensor operand, None for everything else."""
    if isinstance(operand, Value | ConstantRef) and isinstance(operand.info, TensorInfo):
        return operand.info
    return None


def _check_count(op: str, signature: Signature, count: int) -> None:
    specs = signature.operands
    least = sum(not s.optional for s in specs)
    most = None if specs and specs[-1].variadic else len(specs)
    if count < least or (most is not None and count > most):
        names = ", ".join(f"{s.name}..." if s.variadic else s.name for s in specs)
        allowed = f"{least}" if most == least else f"{least} to {most or 'any number'}"
        raise OperandError(
            f"{op} takes {allowed} operands, {count} given",
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
        raise OperandError(f"expected a tensor, got {operand!r}", where=where)
    if info.shape is None:
        raise OperandError(
            "the shape of this tensor is unknown", where=where, hint="match_cast it to a shape"
        )
    if not dtype_is(info.dtype, spec.dtypes):
        raise OperandError(f"dtype {info.dtype} is not {spec.dtypes}", where=where)


def check_operands(op: str, signature: Signature, args: Sequence[Operand]) -> None:
    """Check number, kinds, known shapes and dtypes of the operands.

    Raises
    ------
    OperandError
        At the first operand that does not fit, naming it and what would.
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
    """The attributes of one call with defaults filled in, read by name and type.

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
                    f"attribute {spec.name!r} is missing", where=self.where
                )
            self._values[spec.name] = value

    @property
    def where(self) -> str:
        """The place that errors name."""
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
                f"attribute {name!r} has to be of type {spec.type}, got {value!r}", where=self.where
            )
        if spec.choices and value not in spec.choices:
            raise OperatorAttributeError(
                f"attribute {name!r} is {value!r}",
                where=self.where,
                hint=f"legal values are {', '.join(spec.choices)}",
            )

    def integer(self, name: str) -> int:
        """Read an integer."""
        return cast("int", self._values[name])

    def number(self, name: str) -> float:
        """Read a number."""
        return float(cast("float", self._values[name]))

    def flag(self, name: str) -> bool:
        """Read a truth value."""
        return bool(self._values[name])

    def text(self, name: str) -> str:
        """Read a word."""
        return str(self._values[name])

    def integers(self, name: str) -> tuple[int, ...]:
        """Read a tuple of integers."""
        return cast("tuple[int, ...]", self._values[name])

    def dtype(self, name: str) -> DType:
        """Read an element type."""
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
        """Read an axis of a tensor of that rank, counted from the front."""
        return self._axis(name, self.integer(name), rank)

    def axes(self, name: str, rank: int) -> tuple[int, ...]:
        """Read several distinct axes, counted from the front."""
        values = tuple(self._axis(name, v, rank) for v in self.integers(name))
        if len(set(values)) != len(values):
            raise OperatorAttributeError(f"{name} {values} repeats an axis", where=self.where)
        return values
