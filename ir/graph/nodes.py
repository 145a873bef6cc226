"""Graph-level IR: functions over whole tensors with first-class symbolic shapes (Relax §3).

A function is a list of bindings in A-normal form: operands are values, constants or symbolic
shapes, never nested calls. A function is in one of two stages: *dataflow* (pure, unordered) or
*memory* (ordered, with storage).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from ..dtype import DType
from ..identity import NO_ORIGIN, Origins, Uid
from ..loop.nodes import AccessMode, Attributes
from ..printable import Printable, PrintableFunction
from ..symbolic import Bool, Expr, Facts, Var

DEFAULT_DEVICE: Final = "default"
"""The device that the program is compiled for."""


@dataclass(frozen=True, slots=True, repr=False)
class ObjectInfo(Printable):
    """The annotation of a value of any type."""


@dataclass(frozen=True, slots=True, repr=False)
class PrimInfo(Printable):
    """The annotation of a scalar; ``value`` is its symbolic value, or None if unknown."""

    dtype: DType
    value: Expr | None = None


@dataclass(frozen=True, slots=True, repr=False)
class ShapeInfo(Printable):
    """The annotation of a shape; ``dims`` or ``rank`` are None if unknown."""

    dims: tuple[Expr, ...] | None
    rank: int | None

    def __post_init__(self) -> None:
        """Set the rank from the dimensions if they are known."""
        if self.dims is not None:
            object.__setattr__(self, "rank", len(self.dims))


@dataclass(frozen=True, slots=True, repr=False)
class TensorInfo(Printable):
    """The annotation of a tensor.

    ``shape`` or ``rank`` are None if unknown; a ``match_cast`` makes them known. ``device`` is
    the device whose memory contains the tensor (:mod:`.devices`). ``elements`` are the symbolic
    values of a small integer tensor, in row-major order, or None.
    """

    shape: tuple[Expr, ...] | None
    dtype: DType
    device: str = DEFAULT_DEVICE
    elements: tuple[Expr, ...] | None = None
    rank: int | None = None

    def __post_init__(self) -> None:
        """Set the rank from the shape if it is known; the name of a device omits ordinal 0."""
        object.__setattr__(self, "device", self.device.removesuffix(":0"))
        if self.shape is not None:
            object.__setattr__(self, "rank", len(self.shape))


@dataclass(frozen=True, slots=True, repr=False)
class TupleInfo(Printable):
    """The annotation of a tuple."""

    fields: tuple[Info, ...]


@dataclass(frozen=True, slots=True, repr=False)
class CallableInfo(Printable):
    """The annotation of a function."""

    params: tuple[Info, ...]
    result: Info


Info: TypeAlias = "ObjectInfo | PrimInfo | ShapeInfo | TensorInfo | TupleInfo | CallableInfo"


@dataclass(frozen=True, slots=True, repr=False, eq=False, weakref_slot=True)
class Value(Printable):
    """A named value: a parameter or the value of a binding."""

    uid: Uid
    name: str
    info: Info


@dataclass(frozen=True, slots=True, repr=False)
class ConstantRef(Printable):
    """A reference to the constant of the module with this key."""

    key: str
    info: TensorInfo


@dataclass(frozen=True, slots=True, repr=False)
class ScalarLiteral(Printable):
    """A scalar literal; as an operand it takes the dtype of the tensor operands."""

    value: float | int | bool
    dtype: DType


@dataclass(frozen=True, slots=True, repr=False)
class Dims(Printable):
    """A tuple of symbolic integers as an operand: a shape, indices or sizes."""

    dims: tuple[Expr, ...]


Operand: TypeAlias = "Value | ConstantRef | ScalarLiteral | Dims"

DenotedOperand: TypeAlias = Operand
"""An operand that the value of the binding denotes: the same tensor, perhaps annotated more."""

SharedValue: TypeAlias = Value
SharedOperands: TypeAlias = "tuple[Operand, ...]"
"""Operands whose memory contains the value of the binding, or a part of it."""

WrittenValue: TypeAlias = Value
WrittenOperands: TypeAlias = "tuple[Operand, ...]"
"""Operands that a right-hand side writes. Passes read these types of fields, see `visit`."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Call(Printable):
    """A call of a registered operator by name: ``matmul(a, b)``, ``softmax(x, axis=-1)``."""

    op: str
    args: tuple[Operand, ...]
    attributes: Attributes = ()


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class CallTIR(Printable):
    """A call of a loop-level function of the module, which writes the new tensors ``outputs``.

    ``args`` are the arguments of its in, inout and state parameters, in order; ``scalars`` are its
    integers. ``versions`` are equivalent alternatives with guards in the symbols of the caller: the
    first one whose guard is true runs instead of ``function``, with the same arguments.

    ``updates`` are the positions in ``args`` of the arguments of inout and state parameters, in
    increasing order. The call does not change these arguments: its value contains a new tensor for
    each of them, after the outputs (:func:`result_info`). Memory planning decides whether an update
    is in place.
    """

    function: str
    args: tuple[Operand, ...]
    outputs: tuple[TensorInfo, ...]
    scalars: tuple[Expr, ...] = ()
    versions: tuple[KernelVersion, ...] = ()
    updates: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class KernelVersion(Printable):
    """A version of a kernel: ``function`` with ``scalars`` runs if ``guard`` is true."""

    guard: Bool
    function: str
    scalars: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class CallDPSLibrary(Printable):
    """A call of a library function by registered name, in destination-passing style."""

    symbol: str
    args: tuple[Operand, ...]
    outputs: tuple[TensorInfo, ...]
    attributes: Attributes = ()


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class CallGraph(Printable):
    """A call of another graph-level function of the module.

    ``updates`` are the positions in ``args`` of the arguments of out, inout and state parameters;
    the value of the call contains their last values, after the results of the function.
    """

    function: str
    args: tuple[Operand, ...]
    updates: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class MatchCast(Printable):
    """A refinement of an annotation, checked at run time; it may define symbols."""

    value: DenotedOperand
    info: Info


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class MakeTuple(Printable):
    """A tuple of operands."""

    fields: SharedOperands


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class TupleItem(Printable):
    """One field of a tuple."""

    tuple_: SharedValue
    index: int


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Branch(Printable):
    """One branch of an :class:`IfElse`; its bindings may use all values of enclosing scopes."""

    bindings: tuple[Binding, ...]
    results: tuple[Operand, ...]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class IfElse(Printable):
    """A branch on a bool tensor of shape ``()``; both branches have the same result annotations."""

    condition: Operand
    then: Branch
    otherwise: Branch


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class LoopParam(Printable):
    """A value that every iteration of a :class:`Loop` defines.

    For a carried value, ``given`` is its value in the first iteration; for an element, ``given`` is
    the tensor whose slice along axis 0, at the index of the iteration, is the value.
    """

    value: Value
    given: Operand


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Loop(Printable):
    """A loop over carried values: a while loop, a counted loop, or a scan.

    An iteration evaluates the condition, and ends the loop if its result, a bool tensor of shape
    ``()``, is false; then it evaluates the body, which may use the bindings of the condition. The
    results of the body are the next carried values, followed by the slices of the stacked outputs.
    The value of the loop contains the last carried values, followed by the stacked outputs, which
    have the number of completed iterations as their first dimension.

    ``index`` is the number of the iteration, from 0. The loop ends after ``count`` iterations; a
    loop without a count has a condition. Dimensions of carried values that are symbols which no
    enclosing scope defines may differ between iterations; so may, after the loop, dimensions of its
    value.
    """

    index: Var
    count: Expr | None
    carried: tuple[LoopParam, ...]
    elements: tuple[LoopParam, ...]
    condition: Branch | None
    body: Branch

    @property
    def params(self) -> tuple[LoopParam, ...]:
        """The values that every iteration defines."""
        return (*self.carried, *self.elements)

    @property
    def next_values(self) -> tuple[Operand, ...]:
        """The carried values of the next iteration."""
        return self.body.results[: len(self.carried)]

    @property
    def stacked(self) -> tuple[Operand, ...]:
        """The slices of the stacked outputs."""
        return self.body.results[len(self.carried) :]

    @property
    def exact(self) -> bool:
        """Whether the number of iterations is known before the loop."""
        return self.condition is None


Pure: TypeAlias = (
    Call | CallTIR | CallDPSLibrary | CallGraph | MatchCast | MakeTuple | TupleItem | IfElse | Loop
)

# The memory stage: after `plan_memory` a function allocates storage, creates tensors as views of
# it, launches kernels that write these tensors, and frees the storage; sizes are in bytes.


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class AllocStorage(Printable):
    """An allocation of ``size`` bytes of storage of a device, which tensors are views of."""

    size: Expr
    device: str = DEFAULT_DEVICE
    alignment: int = 64
    stream: int = 0

    def __post_init__(self) -> None:
        """Omit ordinal 0 in the name of the device."""
        object.__setattr__(self, "device", self.device.removesuffix(":0"))


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ViewTensor(Printable):
    """A tensor at byte ``offset`` of a storage, or of another tensor (a reshape)."""

    storage: SharedValue
    offset: Expr
    info: TensorInfo


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class LaunchKernel(Printable):
    """A launch of a loop-level function on allocated tensors; out parameters are written in place.

    ``args`` are the arguments of all buffer parameters, in order; ``versions`` are guarded
    alternatives. The kernel runs on the device of its arguments.
    """

    function: str
    args: tuple[Operand, ...]
    scalars: tuple[Expr, ...] = ()
    versions: tuple[KernelVersion, ...] = ()
    stream: int = 0


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class LaunchLibrary(Printable):
    """A launch of a library function on allocated tensors; a workspace is the last output."""

    symbol: str
    args: tuple[Operand, ...]
    outputs: WrittenOperands
    attributes: Attributes = ()


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class CopyTensor(Printable):
    """A copy of a tensor to another one of the same size; ``reason`` states why it is needed.

    The tensors may be on different devices.
    """

    source: Operand
    target: WrittenValue
    reason: str = ""
    stream: int = 0


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class GrowTensor(Printable):
    """A carried value of a loop with more elements at its end, which are not initialized.

    It is in the block of the carried value, which moves if its capacity is exceeded; the new
    capacity is at least twice the old one. The carried value is not used later in the iteration.
    """

    source: SharedValue
    info: TensorInfo


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Kill(Printable):
    """The end of the live range of a storage or tensor."""

    value: Value


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Check(Printable):
    """A run-time check: raise an error unless the predicate is true."""

    predicate: Bool
    message: str


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class VersionCase(Printable):
    """One case of a :class:`VersionSwitch`."""

    guard: Bool
    bindings: tuple[Binding, ...]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class VersionSwitch(Printable):
    """A switch that runs the first case whose guard is true; the last guard is constant True."""

    cases: tuple[VersionCase, ...]


MemoryOp: TypeAlias = (
    AllocStorage
    | ViewTensor
    | LaunchKernel
    | LaunchLibrary
    | CopyTensor
    | GrowTensor
    | Kill
    | Check
    | VersionSwitch
)

Rhs: TypeAlias = "Pure | MemoryOp"


@dataclass(frozen=True, slots=True, repr=False, eq=False, weakref_slot=True)
class Binding(Printable):
    """A binding ``value = right-hand side``; its uid is the uid of the value."""

    value: Value
    right: Rhs
    origins: Origins = NO_ORIGIN
    attributes: Attributes = ()


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class GraphParam(Printable):
    """A parameter and its access mode; a ``state`` parameter persists across calls.

    ``initial`` is the initial value of a state parameter; None is zero.
    """

    value: Value
    access: AccessMode = "in"
    initial: ConstantRef | None = None


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Update(Printable):
    """The last value of an out, inout or state parameter of a graph-level function."""

    param: Value
    value: Operand


Stage: TypeAlias = Literal["dataflow", "memory"]


@dataclass(frozen=True, slots=True, repr=False, eq=False, weakref_slot=True)
class GraphFunc(PrintableFunction):
    """A graph-level function; a call returns a tuple if there is more than one result.

    Symbols are defined by the annotations of parameters and by ``match_cast``. ``facts`` are
    conditions on them. ``hints`` are likely values of symbols, by name, and never used as facts.
    ``result_names`` are the output names of the source model.

    ``updates`` are the last values of out, inout and state parameters; a parameter that is not
    listed keeps its value. The parameters themselves denote the values at entry. In the memory
    stage, launches write the parameters in place, and ``updates`` is empty.
    """

    name: str
    params: tuple[GraphParam, ...]
    bindings: tuple[Binding, ...]
    results: tuple[Operand, ...]
    facts: Facts = field(default_factory=Facts)
    stage: Stage = "dataflow"
    attributes: Attributes = ()
    hints: tuple[tuple[str, tuple[int, ...]], ...] = ()
    result_names: tuple[str, ...] = ()
    updates: tuple[Update, ...] = ()

    @property
    def returned(self) -> tuple[Operand, ...]:
        """The results, followed by the last values of parameters."""
        return (*self.results, *(u.value for u in self.updates))


def operand_info(operand: Operand) -> Info:
    """Return the annotation of an operand."""
    match operand:
        case Value(info=info) | ConstantRef(info=info):
            return info
        case ScalarLiteral(dtype=dtype):
            return TensorInfo((), dtype)
        case Dims(dims=dims):
            return ShapeInfo(dims, len(dims))


def result_info(call: CallTIR | CallDPSLibrary) -> Info:
    """Return the annotation of the value of a call: outputs, then updated arguments.

    A single tensor is not in a tuple.

    Examples
    --------
    >>> from ..dtype import f32
    >>> from ..symbolic import as_expr
    >>> info = TensorInfo((as_expr(8),), f32)
    >>> cache = Value(1, "cache", info)
    >>> print(result_info(CallTIR("append", (cache,), (), updates=(0,))))
    Tensor[(8,), f32]
    >>> print(result_info(CallTIR("append", (cache,), (info,), updates=(0,))))
    Tuple[Tensor[(8,), f32], Tensor[(8,), f32]]
    """
    positions = call.updates if isinstance(call, CallTIR) else ()
    updated = tuple(operand_info(call.args[k]) for k in positions if k < len(call.args))
    fields = (*call.outputs, *updated)
    return fields[0] if len(fields) == 1 else TupleInfo(fields)
