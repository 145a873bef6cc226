"""From a module to an executable: plan what is left, lower, generate, load."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from ..ir.errors import TilewrightError
from ..ir.graph.memory import Launch
from ..ir.graph.nodes import GraphFunc
from ..ir.graph.plan import plan_memory
from ..ir.graph.visit import inner_bindings
from ..ir.module import Module
from ..ir.target import Target, as_target
from ..schedules.rules import finished
from .artifact import Artifact
from .llvm import emit_module
from .lower.flow import FlowFunctions, Kernel, lower_graph
from .lower.host import lower_host
from .lower.pipeline import lower_kernel
from .lower.wrap import wrap_functional, wrap_into
from .runtime.build import build_objects
from .runtime.cache import DiskCache
from .runtime.executable import Executable
from .runtime.table import RuntimeTable, available_threads
from .runtime.workers import DEFAULT_TIMEOUT, Cancellation, Pool, default_pool

if TYPE_CHECKING:
    from ..schedules import Schedule, State

Progress: TypeAlias = Callable[[str, int, int], None]


class NothingToCompileError(TilewrightError):
    """A module without functions."""

    title = "Nothing to compile"


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How machine code is made.

    ``debug`` guards every access; ``workers`` are processes (the shared ones if 0); ``timeout``
    is in seconds a kernel; ``store`` is the cache (the user's if None); ``progress(name, ready,
    total)`` is told of every object; ``cancel`` stops from another thread.
    """

    debug: bool = False
    workers: int = 0
    timeout: float = DEFAULT_TIMEOUT
    store: DiskCache | None = None
    progress: Progress | None = None
    cancel: Cancellation | None = None


def _bindings_launching(func: GraphFunc) -> Iterator[Launch]:
    pending = list(func.bindings)
    while pending:
        right = pending.pop().right
        if isinstance(right, Launch):
            yield right
        for inner in inner_bindings(right):
            pending.extend(inner)


def _launched(func: GraphFunc) -> set[str]:
    launches = list(_bindings_launching(func))
    return {n for x in launches for n in (x.function, *(v.function for v in x.versions))}


def _entries(module: Module) -> tuple[GraphFunc, ...]:
    """Plan the graph functions, and wrap the kernels that none of them launches."""
    graphs = tuple(plan_memory(module, f) for f in module.graphs)
    used = {name for f in graphs for name in _launched(f)}
    wrapped: list[GraphFunc] = []
    for func in module.prims:
        if func.name not in used:
            functional = wrap_functional(func)
            wrapped += [wrap_into(func), *([functional] if functional is not None else [])]
    return (*graphs, *wrapped)


def _host_text(flows: tuple[FlowFunctions, ...], target: Target) -> str:
    return emit_module([lower_host(f) for flow in flows for f in flow.functions], target)


def build(module: Module, target: Target, options: BuildOptions) -> Artifact:
    """Make the artefact of a module whose functions are all lowered; nothing is loaded.

    The same module and target give the same bytes.
    """
    if not module.functions:
        raise NothingToCompileError("the module has no functions", hint="add one, then compile")
    pool = Pool(options.workers) if options.workers else default_pool()
    pool.warm()
    try:
        return _build(module, target, options, pool)
    finally:
        if options.workers:
            pool.close()


def _build(module: Module, target: Target, options: BuildOptions, pool: Pool) -> Artifact:
    entries = _entries(module)
    threads = target.threads or available_threads()
    kernels: dict[str, Kernel] = {}
    texts: dict[str, str] = {}
    for name in sorted({n for f in entries for n in _launched(f)}):
        lowered = lower_kernel(module.prim(name), target, debug=options.debug)
        kernels[name] = Kernel(lowered.symbols, lowered.scratch, lowered.threads)
        texts[name] = emit_module([lowered.function], target)
    flows = tuple(lower_graph(module, f, kernels, threads) for f in entries)
    texts[""] = _host_text(flows, target)
    named = [(name or "host flow", text) for name, text in texts.items()]
    objects = build_objects(
        named, target, store=options.store, pool=pool, timeout=options.timeout,
        cancel=options.cancel, progress=options.progress,
    )  # fmt: skip
    return Artifact(
        target,
        threads,
        tuple(flow.spec for flow in flows),
        MappingProxyType(dict(zip(texts, objects, strict=True))),
        MappingProxyType({n: zlib.compress(t.encode(), 1) for n, t in texts.items()}),
    )


def compile(  # noqa: A001  # the public face names it so
    program: Module | Schedule | State,
    target: str | Target | None = None,
    *,
    debug: bool = False,
    progress: Progress | None = None,
    workers: int | None = None,
    cancel: Cancellation | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    table: RuntimeTable | None = None,
) -> Executable:
    """Compile a module, or what a schedule has made of it.

    Parameters
    ----------
    program : Module, Schedule or State
        What to compile; default steps are added where it is not scheduled yet.
    target : str or Target, optional
        The machine; the processor of this process if not given.
    debug : bool
        Check every access; a bad one is a :class:`KernelError` with the place and the index.
    progress : callable, optional
        Called with ``(name, ready, total)``, from several threads.
    workers : int, optional
        Compile processes of this call alone; the shared ones if not given.
    cancel : Cancellation, optional
        Stops the compilation from another thread.
    timeout : float
        Seconds that one kernel may take.
    table : RuntimeTable, optional
        Where the executable gets memory and threads.

    Returns
    -------
    Executable
        Ready to call.

    Raises
    ------
    CompileError
        If code generation fails, times out or is cancelled; the message names the kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from ..ir.dtype import f32
    >>> from ..ir.loop.builder import Builder
    >>> from ..ir.symbolic import var
    >>> from ..ir.loop.nodes import Binary
    >>> n, b = var("n", lower=0), Builder("double")
    >>> x, y = b.param("x", (n,), f32), b.param("y", (n,), f32, "out")
    >>> b.compute(y, lambda i: Binary("add", b.load(x, i), b.load(x, i)))
    >>> exe = compile(Module().with_functions(b.finish()), "cpu")
    >>> exe(np.arange(3, dtype="float32"))
    array([0., 2., 4.], dtype=float32)
    """
    chosen = as_target(target)
    module = finished(program, chosen)
    options = BuildOptions(
        debug=debug, workers=workers or 0, timeout=timeout, progress=progress, cancel=cancel
    )
    artifact = build(module, chosen, options)
    return Executable(artifact, module.constants, table=table)


