"""The base of all operators, and the registry that knows them by name."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, TypeVar

from ...loop.nodes import Attribute, Attributes
from ...symbolic import Facts
from ..nodes import Call, Info, Operand
from .errors import UnknownOperatorError
from .evaluation import Array, Evaluation, ReferenceArg
from .inference import CallFacts, Inferred
from .lowering import Lowered, Lowering
from .signature import Signature


class Operator(ABC):
    """One operator: what it accepts, what it gives, what it computes, and how in loops.

    Attributes
    ----------
    name : str
        The name in programs.
    signature : Signature
        Operands and attributes.
    is_view : bool
        Whether the result is the first operand's elements in the same row-major order under
        another shape, so that memory planning may share the storage.
    """

    name: str
    signature: Signature
    is_view: ClassVar[bool] = False

    @abstractmethod
    def deduce(self, call: CallFacts) -> Info:
        """Give the annotation of the result; require on ``call`` what it rests on."""

    @abstractmethod
    def evaluate(self, run: Evaluation) -> Array | tuple[Array, ...]:
        """Compute the result with NumPy."""

    @abstractmethod
    def define(self, low: Lowering) -> None:
        """State the computation in loops."""

    def infer(
        self, args: tuple[Operand, ...], attributes: Attributes = (), facts: Facts | None = None
    ) -> Inferred:
        """Check a call and deduce its result.

        Raises
        ------
        OperandError, OperatorAttributeError, ShapeMismatchError
            If the call can never be right.
        """
        call = CallFacts(
            self.name, self.signature, args, attributes, Facts() if facts is None else facts
        )
        info = self.deduce(call)
        return Inferred(info, call.requirements)

    def reference(
        self,
        args: Sequence[ReferenceArg],
        attributes: Attributes | Mapping[str, Attribute] = (),
        *,
        wide: bool = False,
    ) -> Array | tuple[Array, ...]:
        """Compute with NumPy; ``wide`` makes every float result float64."""
        return self.evaluate(Evaluation(self.name, self.signature, args, attributes, wide=wide))

    def lower(
        self,
        name: str,
        args: tuple[Operand, ...],
        attributes: Attributes,
        info: Info,
        facts: Facts | None = None,
    ) -> Lowered:
        """Write the call as a loop-level function of that name, and tell how to call it."""
        checked = CallFacts(
            self.name, self.signature, args, attributes, Facts() if facts is None else facts
        )
        low = Lowering(name, checked, info)
        self.define(low)
        return low.finish()


_OPERATORS: dict[str, Operator] = {}

OPERATORS: Mapping[str, Operator] = MappingProxyType(_OPERATORS)
"""Every registered operator, by name."""

_O = TypeVar("_O", bound=Operator)


def register(operator_: Operator) -> Operator:
    """Make an operator known under its name."""
    if operator_.name in _OPERATORS:
        raise UnknownOperatorError(f"operator {operator_.name!r} is registered twice")
    _OPERATORS[operator_.name] = operator_
    return operator_


def operator(class_: type[_O]) -> type[_O]:
    """Register the one instance of an operator class."""
    register(class_())
    return class_


def get_operator(name: str) -> Operator:
    """Look an operator up.

    Raises
    ------
    UnknownOperatorError
        If there is none; the message gives the nearest names.

    Examples
    --------
    >>> get_operator("matmul").name
    'matmul'
    """
    found = _OPERATORS.get(name)
    if found is None:
        near = difflib.get_close_matches(name, _OPERATORS, n=5) or sorted(_OPERATORS)
        raise UnknownOperatorError(f"no operator {name!r}", hint=f"there are {', '.join(near)}")
    return found


def infer_call(
    op: str, args: tuple[Operand, ...], attributes: Attributes = (), facts: Facts | None = None
) -> Inferred:
    """Deduce the result of applying an operator, by its name.

    Parameters
    ----------
    op : str
        The operator's name.
    args : tuple of Operand
        Tensors, numbers and tuples of integers, as the signature says.
    attributes : Attributes
        Pairs of name and value; those left out have their defaults.
    facts : Facts, optional
        What is known of the symbols.

    Returns
    -------
    Inferred
        The annotation of the result, and what only the run can tell.

    Raises
    ------
    OperandError, OperatorAttributeError, ShapeMismatchError
        If the call can never be right.

    Examples
    --------
    >>> from ...symbolic import as_expr
    >>> from ..nodes import Dims
    >>> found = infer_call("arange", (Dims((as_expr(0), as_expr(6), as_expr(2))),))
    >>> found.info.shape, found.requirements
    ((3,), ())
    """
    return get_operator(op).infer(args, attributes, facts)


def lower_call(call: Call, info: Info, name: str, facts: Facts | None = None) -> Lowered:
    """Write one call as a loop-level function.

    Parameters
    ----------
    call : Call
        The operator with its operands.
    info : Info
        The annotation of the call's result.
    name : str
        The function's name.
    facts : Facts, optional
        What the caller knows of the symbols; facts about those of the call become the function's.

    Returns
    -------
    Lowered
        The function, and what ``CallTIR`` needs to call it.

    Examples
    --------
    >>> from ...dtype import f32
    >>> from ...symbolic import as_expr
    >>> from ..nodes import TensorInfo, Value
    >>> info = TensorInfo((as_expr(4),), f32)
    >>> lowered = lower_call(Call("exp", (Value(1, "x", info),)), info, "exp")
    >>> [buffer.name for buffer in lowered.function.buffer_params]
    ['x', 'out']
    """
    return get_operator(call.op).lower(name, call.args, call.attributes, info, facts)
