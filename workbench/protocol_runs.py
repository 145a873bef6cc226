"""Messages about targets, default schedules, measurements, and verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

CostKind: TypeAlias = Literal["flops", "bytes", "memory"]
RuleStatus: TypeAlias = Literal["", "follows", "taken", "left", "compiled"]


@dataclass(frozen=True, slots=True)
class KernelTime:
    """The time of one kernel, summed over its calls, in microseconds.

    ``share`` is its share of :attr:`Measurement.total`. ``gflops`` are the operations on elements
    per nanosecond, and ``gbytes`` the bytes of all arguments per nanosecond; both are absent for
    an emulator and for functions of libraries. ``roof`` is the attained share of the roof, and
    ``bound`` the peak that limits it: ``operations`` or the name of a level. ``instructions`` is
    the estimated number of instructions of a call, of the busiest thread, and ``predicted`` the
    predicted ``gflops``. All four are absent if no roof is known for the kernel, as for one that
    does not compute with 32-bit floats.
    """

    function: str
    calls: int
    microseconds: float
    share: float
    gflops: float | None = None
    gbytes: float | None = None
    roof: float | None = None
    bound: str | None = None
    instructions: float | None = None
    predicted: float | None = None


@dataclass(frozen=True, slots=True)
class RoofLevel:
    """A level of the memory hierarchy, with its bytes per nanosecond.

    ``capacity`` is in bytes; 0 means unlimited.
    """

    name: str
    capacity: int
    gbytes: float


@dataclass(frozen=True, slots=True)
class Roof:
    """The measured peak rates of the machine: operations per nanosecond, and levels from L2 on.

    The operations are those of the widest multiply-add on 32-bit floats, ``instruction``.
    """

    instruction: str
    threads: int
    gflops: float
    levels: list[RoofLevel]


@dataclass(frozen=True, slots=True)
class Measurement:
    """The measured times of one call (all samples, microseconds) and of its kernels.

    Kernels are sorted by time, slowest first. ``state`` is the history node that was measured.
    ``compile_ms`` is not part of the samples. ``conditions`` describes how the samples were taken.
    ``alone`` is false if another measurement ran at the same time. ``emulated`` is true if the time
    is that of an emulator. ``machine`` lists the facts about the machine that affect the times.

    Kernels are timed in calls of their own, so their sum may exceed the median. ``total`` is the
    larger of the two, and ``outside`` the time of the call that no kernel takes.
    """

    state: str
    function: str
    shapes: str
    samples: list[float]
    median: float
    low: float
    high: float
    compile_ms: float
    kernels: list[KernelTime]
    conditions: str
    alone: bool
    emulated: bool
    total: float
    outside: float
    machine: dict[str, str] | None = None
    roof: Roof | None = None


@dataclass(frozen=True, slots=True)
class KernelRate:
    """The rates of a kernel in a measurement, as in :class:`KernelTime`."""

    function: str
    gflops: float
    gbytes: float


@dataclass(frozen=True, slots=True)
class MeasurementRecord:
    """A measurement that the session keeps, by its history node, function, sizes, and conditions.

    ``whole`` is true if the entire program was measured, not one kernel. ``microseconds`` is the
    median of a call. ``kernels`` are the ones with rates.
    """

    key: str
    state: str
    function: str
    shapes: str
    conditions: str
    microseconds: float
    emulated: bool
    whole: bool
    kernels: list[KernelRate]


@dataclass(frozen=True, slots=True)
class MeasurementRecords:
    """All measurements that the session keeps, oldest first."""

    items: list[MeasurementRecord]
    keep: int | None = None
    tail: int | None = None


@dataclass(frozen=True, slots=True)
class Overlay:
    """Numbers of the operations of a graph: ``time``, from the last measurement of an entire call.

    Each of the ``labels`` is a call, with the name of its kernel. Three binary buffers follow, of
    which the fields are the indices: the value of each call (float64), and for each operation its
    uid and the position of its call (int32). ``total`` is the value of the whole graph.
    """

    kind: Literal["time"]
    unit: str
    function: str
    total: float
    labels: list[str]
    values: int = 0
    uids: int = 0
    calls: int = 0


@dataclass(frozen=True, slots=True)
class OperationCost:
    """The cost of one operation of a graph: a term over its symbols, and the value at the sizes.

    The term is empty if no analysis knows the cost; the value is null if it is unknown.
    """

    uid: int
    term: str
    value: float | None


@dataclass(frozen=True, slots=True)
class GraphCosts:
    """The costs of the operations of a graph at a state of the history and at sample sizes.

    ``flops`` are the executed operations on elements, ``bytes`` those of all arguments, and
    ``memory`` the bytes of allocated tensors and temporaries that are live during the operation.
    """

    kind: CostKind
    unit: Literal["FLOP", "B"]
    function: str
    state: str
    sizes: str
    items: list[OperationCost]


@dataclass(frozen=True, slots=True)
class KernelRule:
    """The relation of the open kernel to the default rule of its kind.

    A kernel that ``follows`` the rule is not scheduled, and gets the rule when it is compiled. The
    steps of a rule that was ``taken`` are part of the trace. A kernel that ``left`` its rule has
    another schedule. A ``compiled`` kernel is part of the measured program only. The status is
    empty for a function without a rule.

    ``base`` is the kernel whose rule created this one, if any. ``rule`` is the name of the rule,
    and ``steps`` its number of steps. ``predicted`` is the estimated number of instructions of the
    displayed kernel, divided by that of the kernel with the rule; null while it is computed.
    ``rule_us`` and ``now_us`` are the measured times per call, at equal sizes if both are present.
    ``gflops`` and ``gbytes`` are the predicted rates of the displayed kernel, as in
    :class:`KernelTime`; absent without a roof.
    """

    function: str
    status: RuleStatus
    base: str
    rule: str
    steps: int | None
    predicted: float | None
    rule_us: float | None
    now_us: float | None
    gflops: float | None = None
    gbytes: float | None = None


@dataclass(frozen=True, slots=True)
class SimilarKernel:
    """A kernel to which the steps of another one may apply.

    ``steps`` of them apply in order; ``reason`` is empty if all do.
    """

    function: str
    steps: int
    reason: str


@dataclass(frozen=True, slots=True)
class SimilarKernels:
    """The unscheduled kernels with the steps of ``function`` that they accept at a state."""

    state: str
    function: str
    steps: int
    kernels: list[SimilarKernel]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The comparison of compiled and interpreted results at the sample shapes.

    ``error`` and ``bound`` belong to the element with the largest ratio of the two; ``message``
    identifies this element, ``derivation`` states how the bound was derived.
    """

    state: str
    agrees: bool
    error: float
    bound: float
    shapes: str
    message: str
    derivation: str


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """The options of the next measurement.

    ``threads`` is at most ``max_threads``; 0 means all of them. ``budget`` is in seconds.
    """

    caches: Literal["hot", "cold"]
    threads: int
    max_threads: int
    pin: bool
    budget: float


@dataclass(frozen=True, slots=True)
class SizeSet:
    """A named set of sizes as text, and the time of the program with them at the head, if any.

    ``current`` is true if the sample sizes are those of the set.
    """

    name: str
    sizes: str
    microseconds: float | None
    current: bool


@dataclass(frozen=True, slots=True)
class TargetOption:
    """A target to choose. ``missing`` states why this machine cannot run its code, else empty."""

    key: str
    group: str
    label: str
    missing: str
