"""Problems of a launch: whether the kernels of a program can be launched on a target.

They are found from loop IR by the first passes of lowering, which decide the threads of the launch,
and the scope and the size of each temporary. The rest of lowering is not executed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Final

from ..ir.graph.nodes import GraphFunc
from ..ir.kernel_errors import (
    KernelProgramError,
    KernelStatementError,
    LaunchLimitError,
    MemoryScopeError,
    MissingDTypeError,
    MissingInstructionError,
    ShaderError,
    SharedMemoryError,
    ThreadAxisError,
    UnboundKernelError,
    WarpError,
)
from ..ir.loop.nodes import INTRINSIC, Buffer, For, PrimFunc
from ..ir.loop.visit import children, walk
from ..target.effective import effective_target, merged_target
from ..target.gpus import BLOCK_AXES, THREAD_AXES
from ..target.host import with_level
from ..target.target import Target
from .apply import Primitive, check
from .handles import BlockRef, BufferRef, FunctionRef, Handle, LoopRef, refs_of
from .launch.compact_thread_buffers import compacted_buffers
from .launch.launch_axes import launch_axes
from .launch.launch_limits import check_axis, check_threads
from .launch.passes import PREPARATION
from .launch.shared_memory import check_shared, shared_memory
from .launch.threads import Threads
from .launch.worker_buffers import may_share_buffers, worker_buffers
from .primitives.annotate.unannotate import Unannotate
from .primitives.layout.set_scope import SetScope
from .primitives.loops.bind import Bind
from .problem import ParameterError, Problem, Problems
from .requirement import Requirement
from .state import State
from .suggest_names import unknown

_SCHEDULED: Final = ("scheduled", True)


class Launchable(Requirement):
    """The requirements of a launch."""

    INSTRUCTION = "the target has the instruction of each tensorized block"
    DTYPE = "threads update atomically, and exchange, only elements of a dtype with a machine type"
    BOUND = (
        "a loop of the kernel is bound to a block axis or a thread axis, and each parameter is "
        "written inside of the loops that are bound to block axes"
    )
    THREAD_AXIS = (
        "all loops bound to one axis have the same extent, which is a constant for a thread axis "
        "and a term over the symbols of the function for a block axis"
    )
    LAUNCH_LIMIT = (
        "the extent of each axis and the number of threads per thread block are within the limits "
        "of the target"
    )
    SHARED_MEMORY = "the shared memory of a thread block is within the limit of the target"
    MEMORY_SCOPE = (
        "each temporary is visible to all threads that access it, and has a constant size in "
        "registers or shared memory; no thread block needs a result of another one, and no "
        "iteration of a parallel loop an element of a temporary that another one may write"
    )
    WARP = (
        "all threads of a warp execute a warp-level instruction, and ``threadIdx.x`` has the "
        "extent of a warp"
    )
    SHADER = "the shading language of the target can express the kernel"
    STATEMENT = (
        "each reduction over threads is a commutative update whose partial results can be "
        "combined, and no loop is parallel"
    )


REQUIREMENTS: Final[dict[type[KernelProgramError], Launchable]] = {
    MissingInstructionError: Launchable.INSTRUCTION,
    MissingDTypeError: Launchable.DTYPE,
    UnboundKernelError: Launchable.BOUND,
    ThreadAxisError: Launchable.THREAD_AXIS,
    LaunchLimitError: Launchable.LAUNCH_LIMIT,
    SharedMemoryError: Launchable.SHARED_MEMORY,
    MemoryScopeError: Launchable.MEMORY_SCOPE,
    WarpError: Launchable.WARP,
    KernelStatementError: Launchable.STATEMENT,
    ShaderError: Launchable.SHADER,
}
"""The requirement that an error of lowering violates."""

LAUNCH_ERRORS: Final = frozenset(REQUIREMENTS)
"""The errors of lowering that the problems of a launch replace."""


def launchable(
    state: State,
    target: Target | None = None,
    function: FunctionRef | str | None = None,
    *,
    fixes: bool = True,
) -> Problems:
    """Return the problems of launching kernels on a target; without any, lowering accepts them.

    Parameters
    ----------
    state : State
        The program.
    target : Target, optional
        The target; by default the effective target of each function, or the host CPU.
    function : FunctionRef or str, optional
        The kernel to check. By default all scheduled loop-level functions are checked: one without
        a schedule gets its default schedule when the program is compiled.
    fixes : bool
        Whether to look for legal steps that remove a problem, which takes longer than the check.

    Returns
    -------
    Problems
        For CPU targets, the instructions that the target lacks, and a temporary that the workers of
        a parallel loop cannot share. For GPUs, further the violated requirements of
        :class:`Launchable`. At most one problem of a function is reported if it
        prevents the computation of the threads and temporaries.

    Raises
    ------
    ParameterError
        If no loop-level function has the name.

    Examples
    --------
    >>> from ..ir.script import parse
    >>> module = parse('''
    ... @prim_func(scheduled=True)
    ... def f(x: Buffer[(2048,), f32], y: Out[(2048,), f32]):
    ...     for i in thread(2048, "threadIdx.x"):
    ...         y[i] = x[i]
    ... ''')
    >>> for problem in launchable(State.start(module), Target("cuda", arch="sm_80")):
    ...     print(problem.requirement.key, problem.numbers)
    launch_limit {'axis': 'threadIdx.x', 'extent': 2048, 'limit': 1024}
    launch_limit {'threads': 2048, 'limit': 1024}

    A kernel whose first loop is not bound, and the step that binds it:

    >>> module = parse('''
    ... @prim_func(scheduled=True)
    ... def f(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    ...     for i in range(8):
    ...         y[i] = x[i]
    ... ''')
    >>> state = State.start(module)
    >>> [problem] = launchable(state, Target("cuda", arch="sm_80"))
    >>> problem.requirement.key, problem.fixes[0].title()
    ('bound', "bind(loop=i, thread='blockIdx.x')")
    """
    found: list[Problem] = []
    for func in _kernels(state, function):
        chosen = _target_of(state, func, target)
        errors = launch_errors(func, chosen)
        found += [_problem(state, func, chosen, error, fixes=fixes) for error in errors]
    return Problems(found, state.module)


def _kernels(state: State, function: FunctionRef | str | None) -> Iterator[PrimFunc]:
    if function is None:
        yield from (f for f in state.module.prims if _SCHEDULED in f.attributes)
        return
    name = function.function if isinstance(function, FunctionRef) else function
    found = state.module.functions.get(name)
    if found is None or isinstance(found, GraphFunc):
        names = [f.name for f in state.module.prims]
        raise ParameterError(unknown("loop-level function", name, names, "the module"))
    yield found


def _target_of(state: State, func: PrimFunc, target: Target | None) -> Target:
    """Return the target of a function: the given one with the options that the function states."""
    if target is None:
        return state.target_of(func.name) or with_level(effective_target(None, {}))
    merged = target if func.target is None else merged_target(target, func.target)
    return with_level(merged or target)


@lru_cache(maxsize=512)
def launch_errors(func: PrimFunc, target: Target) -> tuple[KernelProgramError, ...]:
    """Return the errors that lowering raises for the launch of a function; results are cached."""
    try:
        if not target.is_gpu:
            _check_on_cpu(func, target)
            return ()
        for one in PREPARATION:
            if one.applies_to(target):
                func = one.run(func, target)
        buffers = compacted_buffers(func)
    except KernelProgramError as error:
        return (_detached(error),)
    return tuple(_limits_exceeded(func, buffers, target))


def _check_on_cpu(func: PrimFunc, target: Target) -> None:
    """Run the passes that raise the errors of a launch on a CPU."""
    first, *others = (one for one in PREPARATION if one.applies_to(target))
    func = first.run(func, target)
    if may_share_buffers(func):
        for one in others:
            func = one.run(func, target)
        worker_buffers(func)


def _limits_exceeded(
    func: PrimFunc, buffers: tuple[Buffer, ...], target: Target
) -> Iterator[KernelProgramError]:
    axes, _ = launch_axes(func)
    threads = Threads(tuple(a for a in axes if a.tag in THREAD_AXES), target.is_cuda)
    checks: list[Callable[[], None]] = [
        *(partial(check_axis, func.name, axis, target) for axis in axes),
        partial(check_threads, func.name, axes, target),
        lambda: check_shared(func.name, shared_memory(func, buffers, threads, target), target),
    ]
    for run in checks:
        try:
            run()
        except KernelProgramError as error:
            yield _detached(error)


def _detached(error: KernelProgramError) -> KernelProgramError:
    """Return an error without the frames in which it was raised."""
    return error.with_traceback(None)


def _problem(
    state: State, func: PrimFunc, target: Target, error: KernelProgramError, *, fixes: bool
) -> Problem:
    requirement = REQUIREMENTS[type(error)]
    where = tuple(_named(state, func, error.parts)) or (FunctionRef(func.name),)
    known = tuple(_fixes(state, func, target, error, where)) if fixes else ()
    return Problem(requirement, error.message, where, error.details, fixes=known)


def _named(state: State, func: PrimFunc, names: tuple[str, ...]) -> Iterator[Handle]:
    """Yield the loops, blocks and buffers of a function by name, and the loops of thread axes."""
    tree = state.tree(func.name)
    nodes = (
        *(x for x in tree.loops.values() if x.var.name in names or x.thread in names),
        *(x for x in tree.blocks.values() if x.name in names),
        *(x for x in tree.buffers.values() if x.name in names),
    )
    yield from refs_of(func.name, *nodes)


def _fixes(
    state: State,
    func: PrimFunc,
    target: Target,
    error: KernelProgramError,
    where: tuple[Handle, ...],
) -> Iterator[Primitive]:
    """Yield the legal steps that remove a problem and cause no other one of the function."""
    before = len(launch_errors(func, target))
    for step in _candidates(func, error, where):
        if any(check(state, step)):
            continue
        after = launch_errors(step.made(state).module.prim(func.name), target)
        if len(after) < before and type(error) not in {type(e) for e in after}:
            yield step


def _candidates(
    func: PrimFunc, error: KernelProgramError, where: tuple[Handle, ...]
) -> Iterator[Primitive]:
    loops = [x for x in where if isinstance(x, LoopRef)]
    buffers = [x for x in where if isinstance(x, BufferRef)]
    match error:
        case MissingInstructionError():
            yield from (Unannotate(x, INTRINSIC) for x in where if isinstance(x, BlockRef))
        case UnboundKernelError():
            bound = [x.thread for x in walk(func.body) if isinstance(x, For) and x.thread]
            axes = [a for a in BLOCK_AXES if a in bound] or ["blockIdx.x", "threadIdx.x"]
            unbound = [LoopRef(func.name, x.uid, x.var.name) for x in _serial(func)]
            yield from (Bind(x, a) for x in (loops and unbound) or unbound for a in axes)
        case SharedMemoryError():
            yield from (SetScope(x, "local") for x in buffers)
            yield from (SetScope(x, "global") for x in buffers)
        case MemoryScopeError():
            yield from (SetScope(x, "shared") for x in buffers)
        case _:
            return


def _serial(func: PrimFunc) -> Iterator[For]:
    """Yield the outermost serial loops of a function."""
    pending = [func.body]
    while pending:
        top = pending.pop(0)
        if isinstance(top, For) and top.kind == "serial":
            yield top
        else:
            pending += children(top)
