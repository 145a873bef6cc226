"""The base class of operators and the operator registry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, TypeAlias, TypeVar

from ....nearest import nearest
from ...loop.nodes import Attribute, Attributes
from ...symbolic import Facts
from ..nodes import Call, Info, Operand
from .composition import Composer
from .errors import DuplicateOperatorError, OperatorDefinitionError, UnknownOperatorError
from .evaluation import Array, Evaluation, ReferenceArg
from .gradients import GradientCall
from .lowering import LoweredGraph, LoweredOperator, Lowering
from .shape_inference import CallFacts, Inferred
from .signature import Signature

Lowered: TypeAlias = "LoweredOperator | LoweredGraph"


class Operator(ABC):
    """The base class of graph-level operators.

    The docstring of a subclass documents calls of the operator: *Parameters* lists its operands,
    then its attributes; shapes are tuples such as ``(m, k)``, and ``...`` is any number of leading
    dimensions.

    Attributes
    ----------
    name : str
        The name in programs.
    signature : Signature
        The operands and attributes.
    is_view : bool
        Whether the result has the elements of the first operand in the same row-major order under
        another shape, so that memory planning can use the same storage.
    is_transfer : bool
        Whether the result is the first operand in the memory of another device, so that memory
        planning copies it.
    is_update : bool
        Whether the result is the first operand with some elements replaced, so that it can be
        lowered to an update of this operand in place.

    Notes
    -----
    All operators raise `OperandError` for operands and `OperatorAttributeError` for attributes that
    do not match the signature, and `ShapeMismatchError` for shapes that are proved to be illegal.
    Requirements on symbolic shapes that are neither proved nor refuted become run-time checks.
    """

    name: str
    signature: Signature
    is_view: ClassVar[bool] = False
    is_transfer: ClassVar[bool] = False
    is_update: ClassVar[bool] = False

    @abstractmethod
    def deduce(self, call: CallFacts) -> Info:
        """Return the annotation of the result; add its requirements to ``call``."""

    @abstractmethod
    def evaluate(self, run: Evaluation) -> Array | tuple[Array, ...]:
        """Compute the result with NumPy."""

    def define(self, low: Lowering) -> None:
        """Define the computation in loop-level IR.

        An operator that does not is lowered to its decomposition.
        """
        raise OperatorDefinitionError(
            "the operator has no definition in loop-level IR, only a decomposition",
            where=f"operator {low.call.op}",
        )

    def decompose(self, call: CallFacts, graph: Composer) -> tuple[Operand, ...] | None:
        """Compute the fields of the result by other operators and library calls, in a builder.

        The result is None if the operator has no decomposition.
        """
        del call, graph
        return None

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand | None:
        """Compute the cotangent of one floating-point operand by other operators, in a builder.

        The cotangent has the shape of the operand, or one that the operand broadcasts to; it is
        summed over the dimensions that broadcast. The result is None if the operator has no
        gradient. An operator that does not override this method has the gradient of its
        decomposition.
        """
        del call, position, graph
        return None

    @property
    def needs_kernel(self) -> bool:
        """Whether calls are lowered; memory planning implements views and transfers."""
        return not (self.is_view or self.is_transfer)

    @property
    def has_gradient(self) -> bool:
        """Whether the operator defines its gradient."""
        return type(self).gradient is not Operator.gradient

    @property
    def is_decomposable(self) -> bool:
        """Whether the operator has a decomposition."""
        return type(self).decompose is not Operator.decompose

    def infer(
        self, args: tuple[Operand, ...], attributes: Attributes = (), facts: Facts | None = None
    ) -> Inferred:
        """Check a call and infer the annotation of its result.

        Raises
        ------
        OperandError, OperatorAttributeError, ShapeMismatchError
            If an operand, an attribute or a shape is illegal.
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
        """Compute a call with NumPy; all float results are float64 if ``wide``."""
        return self.evaluate(Evaluation(self.name, self.signature, args, attributes, wide=wide))

    def canceled(self, operands: tuple[ReferenceArg, ...]) -> Array | None:
        """Return the largest intermediate values whose rounding the results keep.

        An operator is backward stable unless it overrides this method: a computed result is the
        exact result for slightly perturbed operands.
        """
        del operands
        return None

    def lower(
        self,
        name: str,
        args: tuple[Operand, ...],
        attributes: Attributes,
        info: Info,
        facts: Facts | None = None,
        *,
        in_place: bool = False,
    ) -> Lowered:
        """Lower a call to a loop-level function with this name, or to bindings.

        With ``in_place``, the call of an update operator updates its first operand.
        """
        checked = CallFacts(
            self.name, self.signature, args, attributes, Facts() if facts is None else facts
        )
        if not self.is_defined:
            found = self.decomposed(checked)
            if found is None:
                raise OperatorDefinitionError(
                    "the operator has neither a definition in loop-level IR nor a decomposition",
                    where=f"operator {self.name}",
                    hint="override define or decompose",
                )
            return found
        low = Lowering(name, checked, info, in_place=in_place and self.is_update)
        self.define(low)
        return low.finish()

    @property
    def is_defined(self) -> bool:
        """Whether the operator has a definition in loop-level IR."""
        return type(self).define is not Operator.define

    def decomposed(self, call: CallFacts) -> LoweredGraph | None:
        """Return the bindings of the decomposition of a call; None if it has none."""
        from ..builder import GraphBuilder  # the builder imports the operators

        graph = GraphBuilder(self.name, facts=call.facts)
        results = self.decompose(call, graph)
        if results is None:
            return None
        return LoweredGraph(graph.finish(results).bindings, results, graph.facts)


_OPERATORS: dict[str, Operator] = {}

OPERATORS: Mapping[str, Operator] = MappingProxyType(_OPERATORS)
"""Every registered operator, by name."""

_CUSTOM: dict[str, Operator] = {}

CUSTOM_OPERATORS: Mapping[str, Operator] = MappingProxyType(_CUSTOM)
"""The operators that users registered in this process, by name."""


def register_custom(operator_: Operator) -> None:
    """Register the operator of a user; it replaces an earlier one of this name."""
    _CUSTOM[operator_.name] = operator_


_O = TypeVar("_O", bound=Operator)


def register(operator_: Operator) -> Operator:
    """Register an operator under its name.

    Raises
    ------
    DuplicateOperatorError
        If the name is already registered.
    """
    known = _OPERATORS.get(operator_.name)
    if known is not None:
        raise DuplicateOperatorError(
            f"operator {operator_.name!r} is registered twice",
            where=f"classes {type(known).__qualname__} and {type(operator_).__qualname__}",
            hint="choose another name",
        )
    _OPERATORS[operator_.name] = operator_
    return operator_


def operator(class_: type[_O]) -> type[_O]:
    """Register an instance of an operator class (a class decorator)."""
    register(class_())
    return class_


def get_operator(name: str) -> Operator:
    """Return the operator with this name.

    Raises
    ------
    UnknownOperatorError
        If the name is not registered; the hint lists similar names.

    Examples
    --------
    >>> get_operator("matmul").name
    'matmul'
    """
    found = _OPERATORS.get(name) or _CUSTOM.get(name)
    if found is None:
        near = nearest(name, [*_OPERATORS, *_CUSTOM], count=5)
        kind, names = ("similar", near) if near else ("known", sorted(_OPERATORS))
        hint = f"{kind} operators are {', '.join(names)}"
        same = [o.name for o in _OPERATORS.values() if f"``{name}``" in (type(o).__doc__ or "")]
        if same:  # the documentation states the names in NumPy and ONNX
            hint = f"write {' or '.join(same)}"
        raise UnknownOperatorError(f"no operator {name!r}", hint=hint)
    return found


def infer_call(
    op: str, args: tuple[Operand, ...], attributes: Attributes = (), facts: Facts | None = None
) -> Inferred:
    """Infer the annotation of the result of an operator call.

    Parameters
    ----------
    op : str
        The name of the operator.
    args : tuple of Operand
        The operands: tensors, numbers and tuples of integers.
    attributes : Attributes
        Pairs of name and value; omitted attributes have their default values.
    facts : Facts, optional
        Facts about the symbols of the operands.

    Returns
    -------
    Inferred
        The annotation of the result, and the requirements to be checked at run time.

    Raises
    ------
    UnknownOperatorError
        If the operator is not registered.
    OperandError, OperatorAttributeError, ShapeMismatchError
        If an operand, an attribute or a shape is illegal.

    Examples
    --------
    >>> from ...symbolic import as_expr
    >>> from ..nodes import Dims
    >>> found = infer_call("arange", (Dims((as_expr(0), as_expr(6), as_expr(2))),))
    >>> found.info.shape, found.requirements
    ((3,), ())
    """
    return get_operator(op).infer(args, attributes, facts)


def lower_call(
    call: Call, info: Info, name: str, facts: Facts | None = None, *, in_place: bool = False
) -> Lowered:
    """Lower an operator call to a loop-level function, or to bindings.

    Parameters
    ----------
    call : Call
        The call.
    info : Info
        The annotation of its result.
    name : str
        The name of the new function.
    facts : Facts, optional
        Facts of the caller; those about symbols of the call become facts of the function.
    in_place : bool
        Whether an update operator updates its first operand.

    Returns
    -------
    LoweredOperator or LoweredGraph
        The function and the operands of its ``CallTIR``, or bindings without loop-level functions.

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
    chosen = get_operator(call.op)
    return chosen.lower(name, call.args, call.attributes, info, facts, in_place=in_place)


def decompose_call(call: Call, facts: Facts | None = None) -> LoweredGraph | None:
    """Replace an operator call by bindings of other operators and of library functions.

    Parameters
    ----------
    call : Call
        The call.
    facts : Facts, optional
        Facts of the caller.

    Returns
    -------
    LoweredGraph or None
        The bindings, or None if the operator has no decomposition.

    Examples
    --------
    >>> from ...dtype import f32
    >>> from ...symbolic import as_expr
    >>> from ..nodes import TensorInfo, Value
    >>> info = TensorInfo((as_expr(4),), f32)
    >>> decomposed = decompose_call(Call("silu", (Value(1, "x", info),)))
    >>> [binding.right.op for binding in decomposed.bindings]
    ['sigmoid', 'multiply']
    """
    facts = Facts() if facts is None else facts
    chosen = get_operator(call.op)
    return chosen.decomposed(
        CallFacts(chosen.name, chosen.signature, call.args, call.attributes, facts)
    )
