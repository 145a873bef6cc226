"""From a module to an executable: plan what is left, lower, generate, load."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeAlias

from ..ir.errors import TilewrightError
from ..ir.graph.nodes import GraphFunc
from ..ir.graph.plan import plan_memory
from ..ir.module import Constant, Module
from ..ir.structural import structural_hash
from ..ir.target import Target, as_target
from ..schedules import Schedule, State
from ..schedules.rules import apply_defaults
from .artifact import Artifact
from .cpu import with_level
from .llvm import emit_module
from .lower.flow import FlowFunctions, Kernel, kernel_spec, lower_graph
from .lower.host import lower_host
from .lower.pipeline import lower_kernel
from .lower.wrap import launched, public_name, with_entries, with_in_place
from .manifest import KernelSpec
from .nvidia import dynamic_bytes
from .reads import Reads, content
from .runtime.build import Task, build_tasks, host_target, source_version, target_key
from .runtime.cache import DiskCache, default_cache
from .runtime.executable import Executable
from .runtime.table import RuntimeTable, available_threads
from .runtime.workers import DEFAULT_TIMEOUT, Cancellation, Pool, default_pool
from .simt.program import Program, step_texts, steps_of

Progress: TypeAlias = Callable[[float, str], None]
"""Told how far a compilation is (0 to 1) and what it does, on its thread; may raise to stop it."""

SCHEDULED = 0.2
LOWERED = 0.5
"""How far a compilation is when everything is scheduled, and lowered."""


class NotAProgramError(TilewrightError):
    """What is to be compiled is neither a module nor a schedule."""

    title = "Not a program"


class NothingToCompileError(TilewrightError):
    """A module without functions."""

    title = "Nothing to compile"


class FunctionNameError(TilewrightError):
    """A function has a name that machine code cannot bear."""

    title = "Function name"


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How machine code is made.

    ``debug`` guards every access; ``workers`` are processes (the shared ones if 0); ``timeout``
    is in seconds a kernel; ``store`` is the cache (the user's if None); ``progress`` is told how
    far it is; ``cancel`` stops from another thread; ``steps`` are those of the schedule, by the
    uids that they are about, for a target that tells them.
    """

    debug: bool = False
    workers: int = 0
    timeout: float = DEFAULT_TIMEOUT
    store: DiskCache | None = None
    progress: Progress | None = None
    cancel: Cancellation | None = None
    steps: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))

    def tell(self, fraction: float, message: str) -> None:
        """Stop here if somebody asked to; else tell how far it is."""
        if self.cancel is not None:
            self.cancel.check()
        if self.progress is not None:
            self.progress(fraction, message)


def _host_text(flows: tuple[FlowFunctions, ...], target: Target) -> str:
    functions = [lower_host(f) for flow in flows for f in flow.functions]
    return emit_module(functions, host_target(target))


@dataclass(frozen=True, slots=True)
class _Lowered:
    """The kernels of a module: what a launch needs, LLVM text, thread-level functions."""

    kernels: Mapping[str, Kernel]
    texts: Mapping[str, str]
    programs: Mapping[str, Program]
    specs: tuple[KernelSpec, ...]


def build(module: Module, target: Target, options: BuildOptions) -> tuple[Artifact, int]:
    """Make the artefact of a module whose functions are all lowered; nothing is loaded.

    The same module and target give the same bytes. The second result is how many objects LLVM
    had to make, the others being in the cache.
    """
    if not module.functions:
        raise NothingToCompileError("the module has no functions", hint="add one, then compile")
    foreign = dict.fromkeys(public_name(n) for n in module.functions if not n.isascii())
    if foreign:
        raise FunctionNameError(
            f"functions are called {', '.join(map(repr, foreign))} in machine code, which has "
            "ASCII letters, digits and underscores",
            hint="call them otherwise; loops, blocks and buffers may have any name",
        )
    pool = Pool(options.workers) if options.workers else default_pool()
    pool.warm()
    try:
        return _build(module, target, options, pool)
    finally:
        if options.workers:
            pool.close()


def _build(
    module: Module, target: Target, options: BuildOptions, pool: Pool
) -> tuple[Artifact, int]:
    entries = tuple(plan_memory(module, f) for f in module.graphs)
    threads = target.threads or available_threads()
    lowered = _kernels(module, entries, target, options)
    flows = tuple(lower_graph(module, f, lowered.kernels, threads, target) for f in entries)
    texts = {**lowered.texts, "": _host_text(flows, target)}
    tasks = [
        Task(name or "host flow", text, target if name else host_target(target),
             "image" if name and target.is_gpu else "object")
        for name, text in texts.items()
    ]  # fmt: skip

    def made(name: str, ready: int, total: int) -> None:
        options.tell(LOWERED + (1 - LOWERED) * ready / total, f"compiled {name}")

    built = build_tasks(
        tasks, store=options.store, pool=pool, timeout=options.timeout, cancel=options.cancel,
        progress=made,
    )  # fmt: skip
    parts = dict(zip(texts, built.objects, strict=True))
    remote = {name for name in parts if name and target.is_gpu}
    return Artifact(
        target,
        threads,
        tuple(flow.spec for flow in flows),
        MappingProxyType({n: part for n, part in parts.items() if n not in remote}),
        MappingProxyType({n: zlib.compress(t.encode(), 1) for n, t in texts.items()}),
        images=MappingProxyType({n: part for n, part in parts.items() if n in remote}),
        kernel_specs=lowered.specs,
        programs=lowered.programs,
    ), built.compiled


def _kernels(
    module: Module, entries: tuple[GraphFunc, ...], target: Target, options: BuildOptions
) -> _Lowered:
    """Lower every kernel that is launched, and write its LLVM text unless it is emulated."""
    kernels: dict[str, Kernel] = {}
    texts: dict[str, str] = {}
    programs: dict[str, Program] = {}
    specs: list[KernelSpec] = []
    names = sorted({n for f in entries for n in launched(f)})
    for k, name in enumerate(names):
        options.tell(SCHEDULED + (LOWERED - SCHEDULED) * k / len(names), f"lowering {name}")
        source = module.prim(name)
        lowered = lower_kernel(source, target, debug=options.debug)
        function = lowered.function
        kernels[name] = Kernel(
            lowered.symbols, lowered.scratch, lowered.threads, function.launch,
            dynamic_bytes(function),
        )  # fmt: skip
        if function.launch is not None:
            specs.append(kernel_spec(source, lowered, function.launch))
        if target.kind == "simt":
            symbols = tuple(s.name for s in lowered.symbols)
            steps = steps_of(source, options.steps)
            programs[name] = Program(source, lowered, symbols, steps, options.debug)
        else:
            texts[name] = emit_module([function], target)
    return _Lowered(kernels, texts, MappingProxyType(programs), tuple(specs))


# ---------------------------------------------------------------- whole modules


def _names(module: Module) -> str:
    """List what an artefact says of a module beyond its structure: names and origins."""
    words: list[str] = []
    for function in module:
        words.append(function.name)
        if isinstance(function, GraphFunc):
            words += [p.value.name for p in function.params]
            words += [str(p.value.info) for p in function.params]
            words += [f"{b.value.name} {sorted(b.origins)}" for b in function.bindings]
            words += [*function.result_names, *map(str, function.facts)]
        else:
            words += [b.name for b in function.buffer_params]
            words += [v.name for v in function.scalar_params]
    return "\n".join(words)


def _module_key(module: Module, target: Target, options: BuildOptions) -> str:
    """Digest what determines an artefact: program, machine, options, and this compiler."""
    threads = target.threads or available_threads()
    steps = sorted(options.steps.items()) if target.kind == "simt" else []
    return DiskCache.key(
        f"module {source_version()}; {target_key(target)}; {threads} {options.debug}".encode(),
        json.dumps(steps).encode(),
        str(target).encode(),
        structural_hash(module).encode(),
        _names(module).encode(),
    )


def _made_constants(before: Module, after: Module, artifact: Artifact) -> Mapping[str, Constant]:
    """Give the constants that compiling made, without those that are prepared at load time."""
    used = {key for spec in artifact.functions for key in spec.constants}
    prepared = {r.name for s in artifact.functions if s.prepares for r in s.results}
    return MappingProxyType(
        {
            key: after.constants[key]
            for key in sorted((used - prepared) & after.constants.keys())
            if before.constants.get(key) is not after.constants[key]
        }
    )


def make(module: Module, target: Target, options: BuildOptions) -> tuple[Artifact, int]:
    """Schedule what is not scheduled yet, and build; or take the artefact from the cache.

    What the module's key leads to is which constants are looked into on the way; their content
    then is the other half of the artefact's own key.
    """
    store = options.store or default_cache()
    key = _module_key(module, target, options)
    read = store.get(key)
    kept = None if read is None else store.get(_content_key(key, module, json.loads(read)))
    if kept is not None:
        options.tell(1.0, "from the cache")
        return Artifact.from_bytes(kept), 0
    options.tell(0.0, "scheduling")
    reads = Reads(module)
    machine = target if target.is_gpu else with_level(target)
    schedule = Schedule(with_entries(reads.module), machine)
    apply_defaults(schedule)
    ready = with_in_place(reads.module, schedule.module)
    known = {**options.steps, **step_texts([schedule.state])}
    artifact, compiled = build(ready, target, replace(options, steps=known))
    made = _made_constants(reads.module, ready, artifact)
    artifact = replace(artifact, constants=made)
    names = sorted(reads.names)
    store.put(_content_key(key, module, names), artifact.to_bytes())
    store.put(key, json.dumps(names).encode())
    return artifact, compiled


def _content_key(key: str, module: Module, names: Sequence[str]) -> str:
    return DiskCache.key(key.encode(), content(module, names))


def module_of(program: object) -> Module:
    """Give the module that a person means.

    Raises
    ------
    NotAProgramError
        If it is neither a module nor a schedule.
    """
    if isinstance(program, Module):
        return program
    if isinstance(program, Schedule | State):
        return program.module
    raise NotAProgramError(
        f"a module, a schedule or its state is compiled, not {type(program).__name__}",
        hint="parse(text), from_exported_program(program) and from_onnx(path) make modules",
    )


def own_target(program: Module | Schedule | State) -> Target | None:
    """Give the machine that a schedule was made for."""
    if isinstance(program, Module):
        return None
    return program.state.target if isinstance(program, Schedule) else program.target


def _own_steps(program: Module | Schedule | State) -> Mapping[int, str]:
    if isinstance(program, Module):
        return {}
    return step_texts([program.state if isinstance(program, Schedule) else program])


def compile(
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
        Called with a fraction from 0 to 1 and a message, on this thread; what it raises stops
        the compilation and is raised here.
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
    module = module_of(program)
    if target is None:
        target = own_target(program)
    options = BuildOptions(
        debug=debug, workers=workers or 0, timeout=timeout, progress=progress, cancel=cancel,
        steps=_own_steps(program),
    )  # fmt: skip
    artifact, compiled = make(module, as_target(target), options)
    return Executable(artifact, module.constants, table=table, compiled=compiled)
