"""The ordered list of passes from scheduled loop IR to thread IR."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from ...errors import TilewrightError
from ...ir.analysis.bounds import kernel_checked
from ...ir.analysis.unrolled import MOST_COPIES, copied_stores, most_copied, product_text
from ...ir.dtype import i32
from ...ir.interpreter.reducer_properties import warn_of_reducers
from ...ir.kernel_errors import UnrolledCodeError, shown_in
from ...ir.loop.nodes import Buffer, BufferParam, PrimFunc
from ...ir.symbolic import Expr, Var, var
from ...ir.symbolic.assumptions import Assumptions
from ...ir.thread.function import ThreadFunc
from ...ir.thread.nodes import Const, Reg, Return
from ...ir.thread.types import POINTER, VectorType
from ...polling import poll
from ...schedules.launch.lowering_pass import Pass, ThreadPass
from ...schedules.launch.passes import LAUNCH_PASSES
from ...target.target import Target
from ..llvm.processor import resolve
from ..wgsl import NATIVE
from .analysis.cost_estimate import estimated_work
from .passes.compact_buffers import CompactBuffers
from .passes.guard_single_thread import GuardSingleThread
from .passes.lift_tail_guards import LiftTailGuards
from .passes.lift_uniform_guards import LiftUniformGuards
from .passes.mark_disjoint_writes import MarkDisjointWrites
from .passes.pad_vector_rows import PadVectorRows
from .passes.prune_branches import PruneBranches
from .passes.strip_mine import StripMine
from .passes.sum_in_blocks import SumInBlocks
from .passes.tighten_loop_bounds import TightenLoopBounds
from .passes.vectorize_accumulators import VectorizeAccumulators
from .thread_passes.check_launch import CheckLaunch
from .thread_passes.insert_barriers import InsertBarriers
from .thread_passes.narrow_indices import NarrowIndices
from .thread_passes.prefetch_streams import PrefetchStreams
from .thread_passes.widen_strided_accesses import WidenStridedAccesses
from .to_thread.buffer_addresses import BufferAddresses
from .to_thread.context import LoweringContext
from .to_thread.gpu_kernel import lower_threads
from .to_thread.scratch import Scratch, ScratchTemporary
from .to_thread.statements import StatementLowering

PASSES: Final[tuple[Pass, ...]] = (
    *LAUNCH_PASSES,
    CompactBuffers(),
    GuardSingleThread(),
    MarkDisjointWrites(),
    StripMine(),
    PadVectorRows(),
    TightenLoopBounds(),
    PruneBranches(),
    VectorizeAccumulators(),
    LiftTailGuards(),
    LiftUniformGuards(),
    SumInBlocks(),
)
"""Passes from loop IR to loop IR, in order; each keeps the results of the program."""


THREAD_PASSES: Final[tuple[type[ThreadPass], ...]] = (
    CheckLaunch,
    WidenStridedAccesses,
    PrefetchStreams,
    InsertBarriers,
    NarrowIndices,
)
"""Passes on the thread IR of kernels, in order."""


DEBUG_PASSES: Final = (
    "check_instructions",
    "split_complex",
    "decompose_reductions",
    "realize_blocks",
    "compact_buffers",
)
"""The passes that debug mode runs on a CPU: those that lowering requires."""


TO_THREAD: Final = "to_thread"
"""The name of the translation of loop IR to thread IR."""


@dataclass(frozen=True, slots=True)
class LoweredKernel:
    """A lowered kernel and how to call it.

    Parameters
    ----------
    name : str
        The symbol: ``i32 name(ptr table, ptr buffer..., i64 symbol..., [ptr scratch])``; on a GPU
        ``name(ptr buffer..., i64 symbol..., [ptr scratch])`` with a launch.
    function : ThreadFunc
        The thread IR to generate code from.
    buffers : tuple of Buffer
        The buffer parameters, in order.
    symbols : tuple of Var
        The integer parameters, in order.
    scratch : Expr or None
        The size of the scratch argument in bytes, in terms of ``symbols`` and ``threads``; None if
        the kernel has no such argument.
    threads : Var
        The symbol in ``scratch`` for the number of workers that a parallel region may use.
    parallel : bool
        Whether the kernel has parallel regions.
    temporaries : tuple of ScratchTemporary
        The temporaries in the scratch argument, with their offsets.
    work : Expr or None
        The estimated number of instructions of a launch for WebGPU; None for other targets.
    """

    name: str
    function: ThreadFunc
    buffers: tuple[Buffer, ...]
    symbols: tuple[Var, ...]
    scratch: Expr | None
    threads: Var
    parallel: bool
    temporaries: tuple[ScratchTemporary, ...] = ()
    work: Expr | None = None


def lower_kernel(func: PrimFunc, target: Target, *, debug: bool = False) -> LoweredKernel:
    """Lower a scheduled function to thread IR.

    Parameters
    ----------
    func : PrimFunc
        A loop-level function, with or without a schedule.
    target : Target
        The target, which determines vector widths and whether the kernel is a grid of threads.
    debug : bool
        Check every access against the shape of its buffer. Vectorized loops become scalar loops, so
        the first invalid element is reported. GPU kernels are not checked; run them on the ``simt``
        target instead. Declared reducers are checked on random values; those without a property
        that they declare are reported by a warning.

    Returns
    -------
    LoweredKernel
        The thread IR and its calling convention.

    Raises
    ------
    MissingInstructionError
        If a block is tensorized with an instruction that the target lacks.

    Examples
    --------
    >>> from ...ir.dtype import f32
    >>> from ...ir.loop.builder import Builder
    >>> b = Builder("copy")
    >>> x, y = b.param("x", (8,), f32), b.param("y", (8,), f32, "out")
    >>> b.compute(y, lambda i: b.load(x, i))
    >>> [buffer.name for buffer in lower_kernel(b.finish(), Target("cpu")).buffers]
    ['x', 'y']
    """
    if debug:
        warn_of_reducers(func)
    results = [made for _, made in after_each_pass(func, target, debug=debug)]
    return next(made for made in reversed(results) if isinstance(made, LoweredKernel))


def after_each_pass(
    func: PrimFunc, target: Target, *, debug: bool = False
) -> Iterator[tuple[str, PrimFunc | LoweredKernel]]:
    """Yield the name and the result of each pass, in order.

    ``to_thread`` is the name of the translation of loop IR to thread IR.

    Examples
    --------
    >>> from ...ir.dtype import f32
    >>> from ...ir.loop.builder import Builder
    >>> b = Builder("copy")
    >>> x, y = b.param("x", (8,), f32), b.param("y", (8,), f32, "out")
    >>> b.compute(y, lambda i: b.load(x, i))
    >>> [name for name, _ in after_each_pass(b.finish(), Target("cpu"), debug=True)][-2:]
    ['prefetch_streams', 'narrow_indices']
    """
    source = func
    for one in PASSES:
        if one.applies_to(target) and (not debug or target.is_gpu or one.name in DEBUG_PASSES):
            poll()
            with _in_pass(one.name), shown_in(source):
                func = one.run(func, target)
            yield one.name, func
    with _in_pass(TO_THREAD), shown_in(source):
        _check_copies(func)
        native = NATIVE if target.kind == "webgpu" else frozenset[str]()
        start = LoweringContext(Assumptions.of(func.facts), scheduled=source, native=native)
        if target.is_gpu:
            kernel = _gpu_kernel(func, target, start)
            if target.kind == "webgpu":
                kernel = replace(kernel, work=estimated_work(func.body))
        else:
            kernel = _cpu_kernel(func, target, start, debug=debug)
    yield TO_THREAD, kernel
    for kind in THREAD_PASSES:
        if kind.applies_to(target):
            thread_pass = kind.for_function(func)
            with _in_pass(thread_pass.name), shown_in(source):
                function = thread_pass.run(kernel.function, target)
            kernel = replace(kernel, function=function)
            yield thread_pass.name, kernel


@contextmanager
def _in_pass(name: str) -> Generator[None]:
    """Add the name of a pass to the details and the notes of its errors."""
    try:
        yield
    except TilewrightError as error:
        error.details["pass"] = name
        error.add_note(f"in pass {name!r}; tilewright.lower(..., stop_after=...) shows its input")
        raise


def _check_copies(func: PrimFunc) -> None:
    """Raise an error if the code of unrolled loops would be too large."""
    loops, stores = most_copied(func.body), copied_stores(func.body)
    if loops and stores > MOST_COPIES:
        raise UnrolledCodeError(
            f"unrolled loops {', '.join(x.var.name for x in loops)} make {product_text(loops)} "
            f"copies of a store; the function would have {stores:,} stores, at most "
            f"{MOST_COPIES:,} are legal",
            where=f"function {func.name!r}",
            hint="use range instead of unrolled for the outer loops",
            parts=tuple(x.var.name for x in loops),
        )


def _cpu_kernel(
    func: PrimFunc, target: Target, context: LoweringContext, *, debug: bool
) -> LoweredKernel:
    symbols = kernel_symbols(func)
    memory, table = BufferAddresses(), Reg("table", POINTER)
    pointers = tuple(memory.add(b) for b in func.buffer_params)
    scratch = Scratch(func, memory)
    lowering = StatementLowering(
        memory, resolve(target), table, scratch, debug=debug, checked=kernel_checked(func)
    )
    statements = lowering.body(func.body, context)
    params = (table, *pointers, *symbols, *((scratch.pointer,) if scratch.size else ()))
    done = Return(Const(0, VectorType(i32)))
    function = ThreadFunc(
        func.name,
        params,
        (*scratch.shared(), *statements, done),
        VectorType(i32),
        distinct=(*pointers, scratch.pointer),
    )
    return LoweredKernel(
        func.name,
        function,
        func.buffer_params,
        symbols,
        scratch.size,
        scratch.threads,
        lowering.parallel,
        scratch.temporaries,
    )


def _gpu_kernel(func: PrimFunc, target: Target, context: LoweringContext) -> LoweredKernel:
    symbols = kernel_symbols(func)
    made = lower_threads(func, symbols, kernel_checked(func), context, target)
    kernel, scratch, temporaries = made
    return LoweredKernel(
        func.name,
        kernel,
        func.buffer_params,
        symbols,
        scratch,
        var("threads", lower=1),
        parallel=False,
        temporaries=temporaries,
    )


def kernel_symbols(func: PrimFunc) -> tuple[Var, ...]:
    """Return the integer parameters of a kernel: the symbols in its parameters, in order."""
    found: dict[Var, None] = {}
    for param in func.params:
        terms = param.buffer.shape if isinstance(param, BufferParam) else (param.var,)
        if isinstance(param, BufferParam) and param.buffer.strides is not None:
            terms = (*terms, *param.buffer.strides)
        for term in terms:
            found.update(dict.fromkeys(sorted(term.free, key=lambda v: v.serial)))
    return tuple(found)
