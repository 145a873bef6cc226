"""The ordered list of passes from a scheduled loop-level function to a thread-level one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from ...ir.dtype import i32
from ...ir.loop.decompose import decomposed
from ...ir.loop.nodes import Buffer, BufferParam, PrimFunc, Stmt
from ...ir.symbolic import Expr, Var
from ...ir.target import Target
from ...ir.thread.nodes import Const, Reg, Return, ThreadFunc
from ...ir.thread.types import POINTER, VectorType
from ..cpu import Cpu, resolve
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


def _on_body(change: Callable[[Stmt, Known], Stmt]) -> Pass:
    """Make a pass of a change of the body alone."""

    def run(func: PrimFunc, _cpu: Cpu) -> PrimFunc:
        return replace(func, body=change(func.body, Known.of(func.facts)))

    return run


PASSES: tuple[tuple[str, Pass], ...] = (
    ("decompose_reductions", lambda func, _cpu: decomposed(func)),
    ("realize_blocks", _on_body(lambda body, _known: realize_blocks(body))),
    ("hoist_initials", _on_body(lambda body, _known: hoist_initials(body))),
    ("compact_buffers", lambda func, _cpu: compact_buffers(func)),
    ("strip_mine", lambda func, cpu: replace(func, body=strip_mine(func.body, cpu))),
    ("tighten_loops", _on_body(tighten_loops)),
    ("prune", _on_body(prune)),
    ("accumulate", accumulate),
    ("lift_tails", _on_body(lift_tails)),
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
        The symbol: ``i32 name(ptr table, ptr buffer..., i64 symbol..., [ptr scratch])``.
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
        Decides vector widths.
    debug : bool
        Check every access against its buffer; vectors become scalars, so the first bad element is
        the one reported.

    Returns
    -------
    KernelArtifact
        The thread-level function and its calling convention.

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
    cpu = resolve(target)
    for name, step in PASSES:
        if not debug or name in DEBUG_PASSES:
            func = step(func, cpu)
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
