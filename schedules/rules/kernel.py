"""Default schedule of a kernel: the rule of its kind."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from ...ir.loop.nodes import For, PrimFunc
from ...ir.loop.visit import walk
from ...ir.symbolic import const_value
from ..apply import Composite
from ..composite import composite
from ..convolutions import convolution_of
from ..handles import FunctionRef, Handle, block_ref, buffer_ref
from ..patterns import Elementwise, Matmul, Other, Pattern, Rows, classify
from ..primitives.caching.cache_write import CacheWrite
from ..problem import StepError
from ..schedule import Schedule
from ..state import State
from ..windows import windows_of
from .attention import is_attention, schedule_attention
from .columns import schedule_columns
from .convolution import schedule_convolution
from .elementwise import schedule_elementwise
from .gpu.loops import schedule_gpu_loops
from .gpu.matmul import schedule_gpu_matmul
from .gpu.nests import schedule_gpu_nests
from .gpu.rows import schedule_gpu_rows
from .gpu.scan_runs import schedule_gpu_scan_runs
from .gpu.scans import schedule_gpu_scans
from .gpu.serial import schedule_gpu_serial
from .matmul import schedule_matmul
from .nests import schedule_nests
from .rows import schedule_rows
from .scans import has_scans, schedule_scans
from .windows import schedule_windows


class DefaultRuleFailedWarning(UserWarning):
    """A kernel that was left unscheduled because the default rule of its kind failed.

    The results are correct, but the kernel may be slow. Please report it as a bug.
    """


def _suggested(state: State, selection: Handle) -> Iterator[Composite]:
    if isinstance(selection, FunctionRef):
        found = state.module.functions.get(selection.function)
        if isinstance(found, PrimFunc) and not is_scheduled(found):
            yield schedule_kernel(selection)


def is_scheduled(function: PrimFunc) -> bool:
    """Return whether a step has already changed a function."""
    return ("scheduled", True) in function.attributes


@composite(suggest=_suggested, always_legal=True)
def schedule_kernel(sch: Schedule, function: FunctionRef) -> None:
    """Apply the default rule of a kernel's kind, unless the kernel is already scheduled.

    Before::

        for i in range(n):
            y[i] = x[i] + 1.0

    After::

        for i_0 in parallel(ceildiv(n, 16)):
            for i_1 in vectorized(16):
                if i_0 * 16 + i_1 < n:
                    y[i_0 * 16 + i_1] = x[i_0 * 16 + i_1] + 1.0

    Parameters
    ----------
    function : FunctionRef
        The kernel: a loop-level function. Any other function is not changed.

    Notes
    -----
    For a CPU ``schedule_attention``, ``schedule_matmul``, ``schedule_convolution``,
    ``schedule_windows``, ``schedule_columns``, ``schedule_rows`` or ``schedule_elementwise``, by
    the kind of the kernel, or ``schedule_scans`` if it contains scans; ``schedule_nests`` if the
    kernel is of no kind, or if dependences between its blocks forbid the rule of its kind. For a
    GPU the first that applies of ``schedule_gpu_scans``, ``schedule_gpu_scan_runs``,
    ``schedule_gpu_matmul``, ``schedule_gpu_rows``, ``schedule_gpu_loops``, ``schedule_gpu_nests``
    and ``schedule_gpu_serial``. If no rule of a CPU applies, a warning is issued and the kernel is
    left unscheduled.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(64,), f32], y: Out[(64,), f32]):
    ...     for i in range(64):
    ...         with block("add"):
    ...             vi = spatial(i)
    ...             y[vi] = x[vi] + 1.0
    ... ''')
    >>> sch = tw.Schedule(module, tw.Target("cpu", features=("avx512",)))
    >>> sch.schedule_kernel("f")
    >>> [group.op for group in sch.trace.groups]
    ['schedule_kernel', 'schedule_elementwise', 'vectorize_nest', 'vectorize_inner']
    """
    found = sch.module.functions.get(function.function)
    if not isinstance(found, PrimFunc) or is_scheduled(found):
        return
    target = sch.state.target_of(function.function)
    if target is not None and target.is_gpu:
        _schedule_for_gpu(sch, function)
    else:
        _schedule_for_cpu(sch, function)


def _schedule_for_cpu(sch: Schedule, function: FunctionRef) -> None:
    """Apply the first rule that applies; warn and leave the kernel unscheduled if none does."""
    if is_attention(sch.module.prim(function.function)):
        _apply_or_warn(sch, function, schedule_attention(function))
        return
    while True:
        before = sch.module.prim(function.function)
        if convolution_of(before) is not None and _applies(sch, schedule_convolution(function)):
            return
        pattern = classify(before)
        if isinstance(pattern, Other) and _has_kinds(before):
            return
        windows = not isinstance(pattern, Matmul) and windows_of(before) is not None
        if windows and _applies(sch, schedule_windows(function)):
            return
        if isinstance(pattern, Rows):
            sch.inline_elementwise(function)
            if sch.module.prim(function.function) is not before:
                continue  # inlining may have changed the kind
        *attempts, last = _cpu_rules(sch, function, pattern, scans=has_scans(before))
        if not any(_applies(sch, rule) for rule in attempts):
            _apply_or_warn(sch, function, last)
        return


def _cpu_rules(
    sch: Schedule, function: FunctionRef, pattern: Pattern, *, scans: bool
) -> Iterator[Composite]:
    """Yield the rules for a kernel of a kind; the last one is expected to apply.

    The rule of a kind moves blocks, or needs independent iterations. Dependences between blocks
    can forbid both, for example an update in place; then the nests are scheduled one by one.
    """
    match pattern:
        case Matmul() if pattern.block.writes[0].buffer.dtype.is_packed:
            yield schedule_nests(function)  # a register tile has no packed accumulators
            return
        case Matmul() if any(const_value(v.extent) == 0 for v in pattern.block.iters):
            yield schedule_nests(function)  # a panel has no columns
            return
        case Matmul() if not _is_tileable(sch, function, pattern):
            yield schedule_nests(function)
            return
        case Matmul():
            yield schedule_matmul(function)
        case Elementwise():
            yield schedule_elementwise(function)
        case Rows() if pattern.complete or len(pattern.blocks) > 1:
            yield schedule_columns(function)
            yield schedule_rows(function)
        case Rows() | Other():
            pass
    if scans:
        yield schedule_scans(function)
    alone = isinstance(pattern, Matmul) and not (pattern.prologue or pattern.epilogue)
    if not (alone or (isinstance(pattern, Rows) and pattern.complete and len(pattern.blocks) == 1)):
        yield schedule_nests(function)


def _is_tileable(sch: Schedule, function: FunctionRef, pattern: Matmul) -> bool:
    """Return whether the tiles of a product can be copied from registers to its result.

    They are not boxes of the result if its indices are, for example, quotients and remainders.
    """
    if pattern.epilogue:
        return True
    name, block = function.function, pattern.block
    result = buffer_ref(name, block.writes[0].buffer)
    return not sch.check(CacheWrite(block_ref(name, block), result))


def _has_kinds(function: PrimFunc) -> bool:
    """Return whether the program states how some loops run, such as in parallel."""
    return any(isinstance(s, For) and s.kind != "serial" for s in walk(function.body))


def _applies(sch: Schedule, rule: Composite) -> bool:
    """Apply a rule; return whether it was legal."""
    try:
        sch.apply(rule)
    except StepError:
        return False
    return True


def _apply_or_warn(sch: Schedule, function: FunctionRef, rule: Composite) -> None:
    try:
        sch.apply(rule)
    except StepError as error:
        message = f"kernel {function.function!r} was left unscheduled (default rule failed): "
        warnings.warn(DefaultRuleFailedWarning(message + str(error)), stacklevel=2)


def _schedule_for_gpu(sch: Schedule, function: FunctionRef) -> None:
    """Bind the loops of a kernel to thread blocks and threads, by the first rule that applies."""
    sch.inline_elementwise(function)
    for rule in _gpu_rules(sch, function):
        if _applies(sch, rule):
            return


def _gpu_rules(sch: Schedule, function: FunctionRef) -> Iterator[Composite]:
    found = sch.module.prim(function.function)
    if has_scans(found):
        yield schedule_gpu_scans(function)
        yield schedule_gpu_scan_runs(function)
    match classify(found):
        case Matmul():
            yield schedule_gpu_matmul(function)
            yield schedule_gpu_rows(function)
        case Rows():
            yield schedule_gpu_rows(function)
        case Elementwise() | Other():
            pass
    yield schedule_gpu_loops(function)
    yield schedule_gpu_nests(function)
    yield schedule_gpu_serial(function)
