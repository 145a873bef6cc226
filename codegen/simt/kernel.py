"""Run a GPU kernel's thread IR on the CPU, many threads at once, checking what it does."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ...ir.symbolic import Var
from ...ir.thread.nodes import (
    AtomicStore,
    AtomicUpdate,
    Body,
    CompareExchange,
    Gather,
    Load,
    Offset,
    Perform,
    Reg,
    Scatter,
    Stmt,
    Store,
    ThreadFunc,
    Value,
)
from ...ir.thread.types import PointerType, Type
from ...ir.thread.visit import statement_values, walk, walk_values
from ..runtime.errors import LaunchError
from .findings import Findings
from .frame import ALL_CHECKS, Checks, Frame, Geometry, Point
from .memory import Argument, BufferArgument, Memory, as_buffers
from .report import Report
from .shadow import Order
from .sites import NO_STEPS, Sites, Steps
from .statements import Statements, Step
from .terms import Environment, Terms
from .traffic import Traffic

BATCH: Final = 4096
"""Threads that run together: enough to pay for an array operation, few enough for its cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """A kernel ready to run: what its statements are, and what they need.

    Parameters
    ----------
    run : Step
        The body.
    statements : Statements
        What compiled it: variables, sites, the least element accessed through each pointer.
    written : frozenset of Reg
        Pointers that something is written through; with None among them: through any.
    """

    run: Step
    statements: Statements
    written: frozenset[Reg | None]

    @property
    def terms(self) -> Terms:
        """Where variables lie."""
        return self.statements.terms


_COMPILED: WeakKeyDictionary[ThreadFunc, tuple[Steps, Compiled]] = WeakKeyDictionary()


def compiled(function: ThreadFunc, steps: Steps = NO_STEPS) -> Compiled:
    """Compile a kernel, once for the same steps."""
    found = _COMPILED.get(function)
    if found is not None and found[0] == steps:
        return found[1]
    granules, written = _accesses(function.body)
    statements = Statements(Terms(), Sites(steps), granules)
    made = _compile(function, statements, written)
    _COMPILED[function] = (steps, made)
    return made


def compile_like(function: ThreadFunc, like: ThreadFunc, steps: Steps = NO_STEPS) -> Compiled:
    """Compile a kernel that shares statements with another one: only the others are compiled.

    Both access the same memory through the same registers with the same element types. Sites of
    shared statements keep the ordinals they have in the other kernel.
    """
    base = compiled(like, steps)
    made = _compile(function, base.statements, base.written)
    _COMPILED[function] = (steps, made)
    return made


def _compile(
    function: ThreadFunc, statements: Statements, written: frozenset[Reg | None]
) -> Compiled:
    for param in function.params:
        if isinstance(param, Var):
            statements.terms.slot(param)
    for axis in () if function.launch is None else function.launch.axes:
        statements.terms.slot(axis.var)
    return Compiled(statements.body(function.body), statements, written)


# ---------------------------------------------------------------- pointers


def root(value: Value) -> Reg | None:
    """Give the register that an address starts from, where it is known."""
    while isinstance(value, Offset):
        value = value.base
    return value if isinstance(value, Reg) else None


def _width(of: Type) -> int:
    return 8 if isinstance(of, PointerType) else of.dtype.bytes


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
    if isinstance(statement, Perform):
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
        case Perform(operation=operation, args=args):
            effects = (e for e in operation.effects if e.action == "write")
            return [(args[e.operand], 2) for e in effects]
        case _:
            return []


def _accesses(body: Body) -> tuple[dict[Reg, int], frozenset[Reg | None]]:
    """Find the least element accessed through each pointer, and the pointers written through."""
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


# ---------------------------------------------------------------- running


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
    """Execute a kernel for a grid of blocks, and tell what is wrong with it.

    Parameters
    ----------
    function : ThreadFunc
        The kernel, with a launch.
    grid, block : tuple of int
        Blocks, and threads of a block, along x, y and z.
    arguments : sequence
        One a parameter: arrays (in row-major order, written in place) or
        :class:`~tilewright.codegen.simt.memory.BufferArgument` for pointers, integers for symbols.
    checks : Checks
        What to look for; all by default.
    steps : Steps
        The schedule that findings are traced back to.
    batch : int
        Threads that run together.

    Returns
    -------
    Report
        Findings, counters of memory traffic, and how much was executed.

    Raises
    ------
    LaunchError
        If arguments, grid or block do not fit the kernel.

    Examples
    --------
    >>> from ...ir.dtype import f32
    >>> from ...ir.symbolic import as_expr, var
    >>> from ...ir.thread import nodes, types
    >>> out, x = nodes.Reg("out", types.GLOBAL_POINTER), var("x", lower=0, upper=31)
    >>> value = nodes.Cast(types.VectorType(f32), nodes.Index(x))
    >>> store = nodes.Store(nodes.Address(out, x * 4, 4), value)
    >>> launch = nodes.Launch((nodes.ThreadAxis("threadIdx.x", x, as_expr(32)),))
    >>> kernel = nodes.ThreadFunc("number", (out,), (store,), launch=launch)
    >>> y = np.zeros(32, np.float32)
    >>> report = run_kernel(kernel, (1, 1, 1), (32, 1, 1), [y])
    >>> report.findings, y[:4].tolist()
    ((), [0.0, 1.0, 2.0, 3.0])
    """
    began = time.perf_counter()
    kernel = compiled(function, steps)
    geometry = Geometry(grid, block)
    _check(function, geometry, arguments)
    order = Order(geometry.padded, geometry.blocks)
    memory = Memory(order, races=checks.races, definedness=checks.definedness)
    records = Findings(function.name), Traffic()
    launch = _Launch(function, kernel, geometry, memory, records=records, checks=checks)
    launch.globals(as_buffers(arguments))
    together = max(1, batch // geometry.padded)
    with np.errstate(all="ignore"):
        for first in range(0, geometry.blocks, together):
            last = min(first + together, geometry.blocks)
            launch.run(np.arange(first, last, dtype=np.int64))
    return Report(
        function.name,
        grid,
        block,
        records[0].all(),
        tuple(records[1].counters.values()),
        tuple(launch.executed),
        time.perf_counter() - began,
    )


class _Launch:
    """One launch: what does not change from one set of blocks to the next."""

    def __init__(
        self,
        function: ThreadFunc,
        kernel: Compiled,
        geometry: Geometry,
        memory: Memory,
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

    def globals(self, arguments: Sequence[BufferArgument | int]) -> None:
        """Bind parameters: buffers to pointers, integers to symbols."""
        written = self.kernel.written
        for param, given in zip(self.function.params, arguments, strict=True):
            if isinstance(param, Var):
                self.environment[self.kernel.terms.slot(param)] = given
            elif isinstance(given, BufferArgument):
                granule = self.kernel.statements.granules.get(param, given.element)
                touched = param in written or None in written
                segment = self.memory.add_global(param.name, given, granule, written=touched)
                self.registers[param] = segment.pointer
        for name, constant in self.kernel.statements.values.data.items():
            data = np.frombuffer(bytearray(constant.content), np.uint8)
            given = BufferArgument(data, 1, data.shape, writable=False)
            self.constants[name] = self.memory.add_global(name, given, 1, written=False)
        self.kept = len(self.memory.segments)

    def run(self, blocks: NDArray[np.int64]) -> None:
        """Run some blocks together."""
        frame = Frame(
            self.geometry, blocks, self.memory, list(self.environment),
            records=self.records, checks=self.checks,
        )  # fmt: skip
        frame.registers |= self.registers
        frame.allocated |= self.constants
        frame.executed = self.executed
        self._axes(frame)
        self.kernel.run(frame)
        self.memory.truncate(self.kept)

    def _axes(self, frame: Frame) -> None:
        """Bind the launch's axes to the index of every thread."""
        launch = self.function.launch
        local = frame.number % self.geometry.padded
        of_block = frame.threads // self.geometry.padded
        for axis in () if launch is None else launch.axes:
            level, letter = axis.tag.split(".")
            extents = self.geometry.block if level == "threadIdx" else self.geometry.grid
            numbers = local if level == "threadIdx" else of_block.astype(np.int64)
            index = _coordinate(numbers, extents, "xyz".index(letter))
            # Padding threads compute what the last real thread does, and it is thrown away.
            index = np.minimum(index, extents["xyz".index(letter)] - 1)
            alike = len(frame.blocks) == 1 and level == "blockIdx"
            frame.environment[self.kernel.terms.slot(axis.var)] = int(index[0]) if alike else index


def _coordinate(numbers: NDArray[np.int64], extents: Point, axis: int) -> NDArray[np.int64]:
    below = 1
    for extent in extents[:axis]:
        below *= extent
    rest = numbers // below
    return rest if axis == 2 else rest % extents[axis]


def _check(function: ThreadFunc, geometry: Geometry, arguments: Sequence[Argument]) -> None:
    """Compare a launch with its kernel."""
    where = f"kernel {function.name!r}"
    if function.launch is None:
        raise LaunchError("the function is no kernel: it has no launch", where=where)
    if min(*geometry.grid, *geometry.block) < 1:
        raise LaunchError(
            f"grid {geometry.grid} of blocks {geometry.block} has no thread", where=where
        )
    if len(arguments) != len(function.params):
        raise LaunchError(
            f"{len(function.params)} parameters, {len(arguments)} arguments", where=where
        )
    for param, given in zip(function.params, arguments, strict=True):
        if isinstance(param, Var) != isinstance(given, int | np.integer):
            kind = "an integer" if isinstance(param, Var) else "an array"
            raise LaunchError(f"parameter {param.name!r} takes {kind}", where=where)
        if isinstance(given, np.ndarray) and not given.flags.c_contiguous:
            raise LaunchError(f"parameter {param.name!r} takes a compact array", where=where)
