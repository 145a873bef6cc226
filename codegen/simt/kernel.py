"""Execution of GPU kernels on the CPU with checks, many threads per array operation."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ...ir.symbolic import Var
from ...ir.thread.function import ThreadFunc
from ...ir.thread.index_width import SUFFIX
from ...ir.thread.nodes import (
    AtomicStore,
    AtomicUpdate,
    Body,
    CompareExchange,
    Gather,
    Load,
    MachineOp,
    Offset,
    Reg,
    Scatter,
    Stmt,
    Store,
    Value,
)
from ...ir.thread.types import PointerType, Type
from ...ir.thread.visit import statement_values, walk, walk_values
from ..errors import LaunchError
from .evaluate_terms import Environment, TermEvaluator
from .findings import Findings
from .frame import ALL_CHECKS, Checks, Frame, Geometry, Point
from .memory_model import Argument, BufferArgument, SimtMemory, as_buffers
from .provenance import NO_STEPS, Sites, Steps
from .race_detector import BarrierOrder
from .report import Report
from .statements import StatementExecutor, Statements
from .traffic import Traffic

BATCH: Final = 4096
"""Threads per batch: enough to amortize an array operation, few enough to fit the cache."""


@dataclass(frozen=True, slots=True, eq=False)
class CompiledKernel:
    """A kernel compiled to Python closures.

    Parameters
    ----------
    run : StatementExecutor
        The body.
    statements : Statements
        The compiler of the statements, with variables, sites, and the size of the smallest element
        accessed through each pointer.
    written : frozenset of Reg
        Pointers that are written through; it contains None if a pointer is unknown.
    """

    run: StatementExecutor
    statements: Statements
    written: frozenset[Reg | None]

    @property
    def terms(self) -> TermEvaluator:
        """The evaluator of terms, with the slots of variables."""
        return self.statements.terms


_COMPILED: WeakKeyDictionary[ThreadFunc, tuple[Steps, CompiledKernel]] = WeakKeyDictionary()


def compile_kernel(function: ThreadFunc, steps: Steps = NO_STEPS) -> CompiledKernel:
    """Compile a kernel; the result is cached for the last steps."""
    found = _COMPILED.get(function)
    if found is not None and found[0] == steps:
        return found[1]
    granules, written = _accesses(function.body)
    terms = TermEvaluator(function.width.proved)
    statements = Statements(terms, Sites(steps), granules)
    kernel = _compile(function, statements, written)
    _COMPILED[function] = (steps, kernel)
    return kernel


def compile_like(function: ThreadFunc, like: ThreadFunc, steps: Steps = NO_STEPS) -> CompiledKernel:
    """Compile a kernel that shares statements with another kernel, and reuse these.

    Both kernels must access the same memory through the same registers with the same element types.
    Sites of shared statements keep their ordinals in the other kernel.
    """
    base = compile_kernel(like, steps)
    kernel = _compile(function, base.statements, base.written)
    _COMPILED[function] = (steps, kernel)
    return kernel


def _compile(
    function: ThreadFunc, statements: Statements, written: frozenset[Reg | None]
) -> CompiledKernel:
    for param in function.params:
        if isinstance(param, Var):
            statements.terms.slot(param)
    for axis in () if function.launch is None else function.launch.axes:
        statements.terms.slot(axis.var)
    return CompiledKernel(statements.body(function.body), statements, written)


def root(value: Value) -> Reg | None:
    """Return the register that an address is derived from; None if it is unknown."""
    while isinstance(value, Offset):
        value = value.base
    return value if isinstance(value, Reg) else None


def _width(of: Type) -> int:
    return 8 if isinstance(of, PointerType) else of.width


def _reads(statement: Stmt) -> list[tuple[Value, int]]:
    found: list[tuple[Value, int]] = []
    for value in walk_values(statement_values(statement)):
        match value:
            case Load(type=of, address=address):
                found.append((address.base, _width(of)))
            case Gather(type=of, base=base):
                found.append((base, _width(of)))
            case _:
                pass
    if isinstance(statement, MachineOp):
        reads = (e for e in statement.operation.effects if e.action == "read")
        found += [(statement.args[e.operand], 2) for e in reads]
    return found


def _writes(statement: Stmt) -> list[tuple[Value, int]]:
    match statement:
        case Store(address=address, value=value):
            return [(address.base, _width(value.type))]
        case Scatter(base=base, value=value):
            return [(base, _width(value.type))]
        case AtomicUpdate(address=address, value=value) | AtomicStore(address=address, value=value):
            return [(address.base, _width(value.type))]
        case CompareExchange(address=address, desired=desired):
            return [(address.base, _width(desired.type))]
        case MachineOp(operation=operation, args=args):
            effects = (e for e in operation.effects if e.action == "write")
            return [(args[e.operand], 2) for e in effects]
        case _:
            return []


def _accesses(body: Body) -> tuple[dict[Reg, int], frozenset[Reg | None]]:
    """Return the smallest element size accessed through each pointer, and the written pointers."""
    granules: dict[Reg, int] = {}
    written: set[Reg | None] = set()
    unknown = 0
    for statement in walk(body):
        writes = _writes(statement)
        written |= {root(base) for base, _ in writes}
        for base, width in (*writes, *_reads(statement)):
            reg = root(base)
            if reg is None:
                unknown = min(unknown or width, width)
            else:
                granules[reg] = min(granules.get(reg, width), width)
    if unknown:
        granules = {reg: min(width, unknown) for reg, width in granules.items()}
    return granules, frozenset(written)


def run_kernel(
    function: ThreadFunc,
    grid: Point,
    block: Point,
    arguments: Sequence[Argument],
    *,
    checks: Checks = ALL_CHECKS,
    steps: Steps = NO_STEPS,
    batch: int = BATCH,
) -> Report:
    """Execute a kernel for a grid of thread blocks, and check it.

    Parameters
    ----------
    function : ThreadFunc
        The kernel, with a launch grid.
    grid, block : tuple of int
        Number of thread blocks, and of threads per block, along x, y and z.
    arguments : sequence
        One argument per parameter. Pointers take arrays in row-major order, which are written in
        place, or a :class:`~tilewright.codegen.simt.memory_model.BufferArgument`; symbols take
        integers.
    checks : Checks
        The checks; all by default.
    steps : Steps
        The schedule steps that findings refer to.
    batch : int
        Maximum number of threads that run at once; at least one block runs.

    Returns
    -------
    Report
        Findings, counters of memory traffic, and counts of executed statements.

    Raises
    ------
    LaunchError
        If arguments, grid or block do not match the kernel.

    Examples
    --------
    >>> from ...ir.dtype import f32
    >>> from ...ir.symbolic import as_expr, var
    >>> from ...ir.thread import function as functions, nodes, types
    >>> out, x = nodes.Reg("out", types.GLOBAL_POINTER), var("x", lower=0, upper=31)
    >>> value = nodes.Cast(types.VectorType(f32), nodes.Index(x))
    >>> store = nodes.Store(nodes.Address(out, x * 4, 4), value)
    >>> launch = functions.LaunchGrid((functions.ThreadAxis("threadIdx.x", x, as_expr(32)),))
    >>> kernel = functions.ThreadFunc("number", (out,), (store,), launch=launch)
    >>> y = np.zeros(32, np.float32)
    >>> report = run_kernel(kernel, (1, 1, 1), (32, 1, 1), [y])
    >>> report.findings, y[:4].tolist()
    ((), [0.0, 1.0, 2.0, 3.0])
    """
    began = time.perf_counter()
    kernel = compile_kernel(function, steps)
    geometry = Geometry(grid, block)
    _check_launch(function, geometry, arguments)
    order = BarrierOrder(geometry.padded, geometry.blocks)
    memory = SimtMemory(order, races=checks.races, definedness=checks.definedness)
    name = function.name.removesuffix(SUFFIX)
    records = Findings(name), Traffic()
    launch = _SimtLaunch(function, kernel, geometry, memory, records=records, checks=checks)
    launch.bind(as_buffers(arguments))
    together = max(1, batch // geometry.padded)
    with np.errstate(all="ignore"):
        for first in range(0, geometry.blocks, together):
            last = min(first + together, geometry.blocks)
            launch.run(np.arange(first, last, dtype=np.int64))
    return Report(
        name,
        grid,
        block,
        records[0].all(),
        tuple(records[1].counters.values()),
        tuple(launch.executed),
        time.perf_counter() - began,
    )


class _SimtLaunch:
    """The state of a launch that all batches of blocks share."""

    def __init__(
        self,
        function: ThreadFunc,
        kernel: CompiledKernel,
        geometry: Geometry,
        memory: SimtMemory,
        *,
        records: tuple[Findings, Traffic],
        checks: Checks,
    ) -> None:
        self.function = function
        self.kernel = kernel
        self.geometry = geometry
        self.memory = memory
        self.records = records
        self.checks = checks
        self.registers: dict[Reg, Any] = {}
        self.constants: dict[Any, Any] = {}
        self.environment: Environment = kernel.terms.environment()
        self.executed = [0] * len(kernel.statements.sites.all)

    def bind(self, arguments: Sequence[BufferArgument | int]) -> None:
        """Bind parameters: pointers to buffers, symbols to integers."""
        written = self.kernel.written
        for param, argument in zip(self.function.params, arguments, strict=True):
            if isinstance(param, Var):
                self.environment[self.kernel.terms.slot(param)] = argument
            elif isinstance(argument, BufferArgument):
                granule = self.kernel.statements.granules.get(param, argument.element)
                may_write = param in written or None in written
                segment = self.memory.add_global(param.name, argument, granule, written=may_write)
                self.registers[param] = segment.pointer
        for name, constant in self.kernel.statements.values.data.items():
            data = np.frombuffer(bytearray(constant.content), np.uint8)
            buffer = BufferArgument(data, 1, data.shape, writable=False)
            self.constants[name] = self.memory.add_global(name, buffer, 1, written=False)
        self.global_count = len(self.memory.segments)

    def run(self, blocks: NDArray[np.int64]) -> None:
        """Run a batch of blocks."""
        frame = Frame(
            self.geometry, blocks, self.memory, list(self.environment),
            records=self.records, checks=self.checks,
        )  # fmt: skip
        frame.registers |= self.registers
        frame.allocated |= self.constants
        frame.executed = self.executed
        self._axes(frame)
        self.kernel.run(frame)
        self.memory.truncate(self.global_count)

    def _axes(self, frame: Frame) -> None:
        """Bind the variables of the thread axes to the indices of every thread."""
        launch = self.function.launch
        threads = frame.thread_index % self.geometry.padded
        blocks = frame.threads // self.geometry.padded
        for axis in () if launch is None else launch.axes:
            level, letter = axis.tag.split(".")
            extents = self.geometry.block if level == "threadIdx" else self.geometry.grid
            numbers = threads if level == "threadIdx" else blocks.astype(np.int64)
            index = _coordinate(numbers, extents, "xyz".index(letter))
            # Padding threads get the index of the last real thread; their results are discarded.
            index = np.minimum(index, extents["xyz".index(letter)] - 1)
            uniform = len(frame.blocks) == 1 and level == "blockIdx"
            slot = self.kernel.terms.slot(axis.var)
            frame.environment[slot] = int(index[0]) if uniform else index


def _coordinate(numbers: NDArray[np.int64], extents: Point, axis: int) -> NDArray[np.int64]:
    below = 1
    for extent in extents[:axis]:
        below *= extent
    rest = numbers // below
    return rest if axis == 2 else rest % extents[axis]


def _check_launch(function: ThreadFunc, geometry: Geometry, arguments: Sequence[Argument]) -> None:
    """Check that a launch matches its kernel."""
    where = f"kernel {function.name!r}"
    if function.launch is None:
        raise LaunchError("the function is not a kernel: it has no launch grid", where=where)
    if min(*geometry.grid, *geometry.block) < 1:
        raise LaunchError(
            f"the launch has no threads: grid {geometry.grid}, block {geometry.block}", where=where
        )
    if len(arguments) != len(function.params):
        raise LaunchError(
            f"expected {len(function.params)} arguments, got {len(arguments)}", where=where
        )
    for param, argument in zip(function.params, arguments, strict=True):
        if isinstance(param, Var) != isinstance(argument, int | np.integer):
            kind = "an integer" if isinstance(param, Var) else "an array"
            raise LaunchError(
                f"parameter {param.name!r}: expected {kind}, got {type(argument).__name__}",
                where=where,
            )
        if isinstance(argument, np.ndarray) and not argument.flags.c_contiguous:
            raise LaunchError(
                f"parameter {param.name!r}: expected a compact row-major array, "
                f"got strides {argument.strides} of shape {argument.shape}",
                where=where,
            )
