"""The ordered list of passes from a scheduled loop-level function to a thread-level one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from ...ir.dtype import i32
from ...ir.loop.decompose import decomposed
from ...ir.loop.nodes import Buffer, BufferParam, PrimFunc, Stmt
from ...ir.symbolic import Expr, Var, var
from ...ir.target import Target
from ...ir.thread.nodes import Const, Reg, Return, ThreadFunc
from ...ir.thread.types import POINTER, VectorType
from ..cpu import resolve
from ..processors import Cpu
from .gpu.across import combine_threads
from .gpu.apart import mark_apart
from .gpu.axes import guard_single, unify_axes
from .gpu.blocks import check_blocks
from .gpu.compact import compact_for_threads
from .gpu.kernel import lower_threads
from .gpu.machine import THREAD
from .gpu.tails import lift_uniform
from .gpu.virtual import distribute_virtual
from .instructions import check_instructions
from .kernel.context import Context
from .kernel.memory import Memory
from .kernel.scratch import Scratch
from .kernel.statements import StatementLowering
from .loops.accumulators import accumulate
from .loops.blocks import realize_blocks
from .loops.compact import compact_buffers
from .loops.initials import hoist_initials
from .loops.known import Known
from .loops.prune import prune
from .loops.strips import strip_mine
from .loops.tails import lift_tails
from .loops.tighten import tighten_loops

Pass = Callable[[PrimFunc, Cpu], PrimFunc]

ANY: Final = ("cpu", "gpu")
CPU: Final = ("cpu",)
GPU: Final = ("gpu",)


@dataclass(frozen=True, slots=True)
class Step:
    """One pass: its name, what it does, and the machines it is for."""

    name: str
    run: Pass
    machines: tuple[str, ...] = ANY


def _on_body(change: Callable[[Stmt, Known], Stmt]) -> Pass:
    """Make a pass of a change of the body alone."""

    def run(func: PrimFunc, _cpu: Cpu) -> PrimFunc:
        return replace(func, body=change(func.body, Known.of(func.facts)))

    return run


PASSES: tuple[Step, ...] = (
    Step("combine_threads", lambda func, _: combine_threads(func), GPU),
    Step("decompose_reductions", lambda func, _: decomposed(func)),
    Step("realize_blocks", _on_body(lambda body, _known: realize_blocks(body))),
    Step("hoist_initials", _on_body(lambda body, _known: hoist_initials(body))),
    Step("distribute_virtual", lambda func, _: distribute_virtual(func), GPU),
    Step("unify_axes", lambda func, _: unify_axes(func), GPU),
    Step("check_blocks", lambda func, _: check_blocks(func), GPU),
    Step("compact_buffers", lambda func, _: compact_buffers(func), CPU),
    Step("compact_for_threads", lambda func, _: compact_for_threads(func), GPU),
    Step("guard_single", lambda func, _: guard_single(func), GPU),
    Step("mark_apart", lambda func, _: mark_apart(func), GPU),
    Step("strip_mine", lambda func, cpu: replace(func, body=strip_mine(func.body, cpu))),
    Step("tighten_loops", _on_body(tighten_loops), CPU),
    Step("prune", _on_body(prune)),
    Step("accumulate", accumulate, CPU),
    Step("lift_tails", _on_body(lift_tails), CPU),
    Step("lift_uniform", lambda func, _: lift_uniform(func), GPU),
)
"""Loop level to loop level, in order; each keeps what the program computes."""

DEBUG_PASSES: Final = (
    "decompose_reductions",
    "realize_blocks",
    "hoist_initials",
    "compact_buffers",
)
"""Those without which nothing can be lowered; debug mode does no others, to check what is left."""


@dataclass(frozen=True, slots=True)
class KernelArtifact:
    """A lowered kernel and how to call it.

    Parameters
    ----------
    name : str
        The symbol: ``i32 name(ptr table, ptr buffer..., i64 symbol..., [ptr scratch])``; on a GPU
        ``name(ptr buffer..., i64 symbol..., [ptr scratch])`` with a launch.
    function : ThreadFunc
        What the generator turns into code.
    buffers : tuple of Buffer
        The buffer parameters, in order.
    symbols : tuple of Var
        The integer parameters, in order.
    scratch : Expr or None
        Bytes of the scratch argument, in terms of ``symbols`` and ``threads``; None: no argument.
    threads : Var
        Stands in ``scratch`` for the number of workers a parallel region may use.
    parallel : bool
        Whether the kernel has parallel regions.
    """

    name: str
    function: ThreadFunc
    buffers: tuple[Buffer, ...]
    symbols: tuple[Var, ...]
    scratch: Expr | None
    threads: Var
    parallel: bool


def lower_kernel(func: PrimFunc, target: Target, *, debug: bool = False) -> KernelArtifact:
    """Lower a scheduled function to thread level.

    Parameters
    ----------
    func : PrimFunc
        Loops, blocks, predicates and scopes as the schedule left them.
    target : Target
        Decides vector widths, and whether the kernel runs in a grid of threads.
    debug : bool
        Check every access against its buffer; vectors become scalars, so the first bad element is
        the one reported. A GPU's kernels are checked by running them on the ``simt`` target.

    Returns
    -------
    KernelArtifact
        The thread-level function and its calling convention.

    Raises
    ------
    MissingInstructionError
        If the target lacks an instruction that the function was tensorized with.

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
    check_instructions(func, target)
    if target.is_gpu:
        return _lower_for_gpu(func, target)
    cpu = resolve(target)
    for step in PASSES:
        if "cpu" in step.machines and (not debug or step.name in DEBUG_PASSES):
            func = step.run(func, cpu)
    symbols = kernel_symbols(func)
    memory, table = Memory(), Reg("table", POINTER)
    pointers = tuple(memory.add(b) for b in func.buffer_params)
    scratch = Scratch(func, memory)
    lowering = StatementLowering(memory, cpu, table, scratch, debug=debug)
    statements = lowering.body(func.body, Context(Known.of(func.facts)))
    params = (table, *pointers, *symbols, *((scratch.pointer,) if scratch.size else ()))
    done = Return(Const(0, VectorType(i32)))
    function = ThreadFunc(
        func.name,
        params,
        (*scratch.shared(), *statements, done),
        VectorType(i32),
        distinct=(*pointers, scratch.pointer),
    )
    return KernelArtifact(
        func.name,
        function,
        func.buffer_params,
        symbols,
        scratch.size,
        scratch.threads,
        lowering.parallel,
    )


def _lower_for_gpu(func: PrimFunc, target: Target) -> KernelArtifact:
    symbols = kernel_symbols(func)
    for step in PASSES:
        if "gpu" in step.machines:
            func = step.run(func, THREAD)
    kernel, scratch = lower_threads(func, target, symbols)
    return KernelArtifact(
        func.name,
        kernel,
        func.buffer_params,
        symbols,
        scratch,
        var("threads", lower=1),
        parallel=False,
    )


def kernel_symbols(func: PrimFunc) -> tuple[Var, ...]:
    """Give the integer parameters of a kernel: free symbols by first occurrence in parameters."""
    found: dict[Var, None] = {}
    for param in func.params:
        terms = param.buffer.shape if isinstance(param, BufferParam) else (param.var,)
        if isinstance(param, BufferParam) and param.buffer.strides is not None:
            terms = (*terms, *param.buffer.strides)
        for term in terms:
            found.update(dict.fromkeys(sorted(term.free, key=lambda v: v.serial)))
    return tuple(found)
