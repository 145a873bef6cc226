"""Compilation of modules to executables: default schedules, lowering, code generation."""

from __future__ import annotations

import functools
import json
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ParamSpec, TypeVar, cast

from ..calls import checked_call
from ..errors import TilewrightError
from ..ir.graph.nodes import GraphFunc
from ..ir.graph.plan import plan_memory
from ..ir.kernel_errors import shown_in
from ..ir.module import Constant, Module
from ..ir.structural_hash import structural_hash
from ..polling import polled
from ..progress import ProgressOption, Report as Progress, progress_of
from ..schedules import Schedule, State
from ..schedules.rules import apply_defaults
from ..schedules.step_watcher import watching
from ..schedules.targets import program_target
from ..target.host import available_threads, with_level
from ..target.target import Target
from .artifact import Artifact, ArtifactError
from .build.build_objects import Build, host_job, host_target, source_version, target_key
from .build.object_cache import DiskCache, default_cache
from .build.worker_pool import DEFAULT_TIMEOUT, CancelToken, CompileJob, WorkerPool, default_pool
from .build_log import BuildLog, counted, verbose_log
from .constant_dependencies import ConstantDependencies, content_digest
from .entry_names import public_name
from .errors import CompileTimeoutError, ProgramDepthError
from .kernel_facts import kernel_facts, with_lowering, with_steps_of
from .llvm import emit_module
from .lower.host.devices import host_kernel, kernel_spec
from .lower.host.entry_wrappers import launched, with_entries, with_in_place
from .lower.host.function import FlowFunctions, HostKernel, lower_to_host
from .lower.host.index_limits import kernel_limits
from .lower.host.storage import temporary_texts
from .lower.host.to_thread import lower_host
from .lower.pipeline import lower_kernel
from .lower.shaders import kernel_shaders
from .manifest import KernelSpec
from .program import convention_of, module_of, state_of
from .program_checks import checked_program
from .program_key import program_words
from .runtime.executable import Executable
from .runtime.table import RuntimeTable
from .simt.program import SimtProgram, step_texts, steps_of
from .wgsl import Shader, to_bytes as shader_bytes

P = ParamSpec("P")
R = TypeVar("R")

SCHEDULED = 0.2
LOWERED = 0.5
"""The progress of a compilation after scheduling, and after lowering."""


class NothingToCompileError(TilewrightError):
    """A module without functions."""

    title = "Empty module"


class CompileOptionError(TilewrightError):
    """An option of a compilation with a value that is not legal."""

    title = "Invalid compile option"


class FunctionNameError(TilewrightError):
    """A function name that is not a valid symbol."""

    title = "Invalid function name"


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """Options of a compilation.

    Parameters
    ----------
    debug : bool
        Check every memory access at run time.
    workers : int
        Number of separate compile processes; 0 means the shared pool.
    timeout : float
        Time limit per kernel, in seconds.
    store : DiskCache, optional
        The cache; by default the user's cache.
    progress : Progress, optional
        Progress callback.
    cancel : CancelToken, optional
        Token that cancels the compilation from another thread.
    steps : Mapping of int to str
        Texts of schedule steps by the uids they affect, for the findings of target ``simt``.
    log : BuildLog
        The log of phases and kernels; by default nothing is written.
    sized_by_runtime : bool
        Reserve scratch for the threads that the runtime table states at each call, unless the
        target has a number of threads. Otherwise for the cores of this machine.
    host : Target, optional
        The CPU that runs the host flow; by default that of the target, or this machine for a GPU.
    """

    debug: bool = False
    workers: int = 0
    timeout: float = DEFAULT_TIMEOUT
    store: DiskCache | None = None
    progress: Progress | None = None
    cancel: CancelToken | None = None
    steps: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    log: BuildLog = field(default_factory=BuildLog)
    sized_by_runtime: bool = False
    host: Target | None = None

    def __post_init__(self) -> None:
        """Check the types and ranges of the values.

        Raises
        ------
        CompileOptionError
            If a value is not legal.
        """
        workers, timeout = cast("object", self.workers), cast("object", self.timeout)
        if not isinstance(workers, int) or isinstance(workers, bool) or workers < 0:
            raise _invalid("workers", workers, "a number of processes", "omit it, or pass 4")
        number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
        if not (number and self.timeout > 0 and _is_float(self.timeout)):
            raise _invalid("timeout", timeout, "a positive number of seconds", "pass 120")
        if self.progress is not None and not callable(self.progress):
            usage = "pass lambda fraction, message: print(fraction, message)"
            raise _invalid("progress", self.progress, "a function", usage)
        if self.cancel is not None and not isinstance(cast("object", self.cancel), CancelToken):
            raise _invalid("cancel", self.cancel, "a CancelToken", "pass CancelToken()")

    def report(self, fraction: float, message: str) -> None:
        """Raise an error if the compilation is canceled; otherwise report its progress."""
        if self.cancel is not None:
            self.cancel.check()
        if self.progress is not None:
            self.progress(fraction, message)

    def limit(self, task: str) -> Callable[[], None]:
        """Return a check that ends work of this thread on cancellation and at the time limit.

        Parameters
        ----------
        task : str
            The work that starts now, such as ``lowering of kernel 'f'``.
        """
        end = time.monotonic() + self.timeout

        def check() -> None:
            if self.cancel is not None:
                self.cancel.check()
            if time.monotonic() > end:
                raise CompileTimeoutError(
                    f"{task} exceeded the time limit of {self.timeout:g} s",
                    hint="pass a longer timeout to compile",
                )

        return check


def _is_float(value: float) -> bool:
    """Return whether a number can be converted to a float; an integer may be too large."""
    try:
        float(value)
    except OverflowError:
        return False
    return True


def _invalid(name: str, value: object, expected: str, usage: str) -> CompileOptionError:
    return CompileOptionError(
        f"expected {expected}, got {value!r}", where=f"option {name!r} of compile", hint=usage
    )


def _host_text(flows: tuple[FlowFunctions, ...], host: Target) -> str:
    functions = [lower_host(f) for flow in flows for f in flow.functions]
    return emit_module(functions, host)


@dataclass(frozen=True, slots=True)
class _LoweredKernels:
    """The lowered kernels of a module: launch data, LLVM texts, shaders, programs, facts."""

    kernels: Mapping[str, HostKernel]
    texts: Mapping[str, str]
    shaders: Mapping[str, tuple[Shader, ...]]
    programs: Mapping[str, SimtProgram]
    specs: tuple[KernelSpec, ...]


def check_functions(module: Module) -> None:
    """Check that a module has functions, and that their names are valid symbols.

    Raises
    ------
    NothingToCompileError
        If the module is empty.
    FunctionNameError
        If a name contains characters that are not allowed in symbols.
    """
    if not module.functions:
        raise NothingToCompileError("the module has no functions", hint="add a function")
    invalid = dict.fromkeys(public_name(n) for n in module.functions if not n.isascii())
    if invalid:
        raise FunctionNameError(
            f"function name {', '.join(map(repr, invalid))} is not a valid symbol: expected ASCII "
            "letters, digits and underscores",
            hint="rename the function; loops, blocks and buffers may have any name",
        )


def build(module: Module, target: Target, options: BuildOptions) -> tuple[Artifact, int]:
    """Compile a module, all of whose functions are scheduled, to an artifact without loading it.

    Returns
    -------
    artifact : Artifact
        The artifact; equal modules and targets have equal bytes.
    compiled : int
        Number of objects that were compiled and not found in the cache.
    """
    check_functions(module)
    pool = WorkerPool(options.workers) if options.workers else default_pool()
    try:
        pool.warm()
        return _build(module, target, options, pool)
    finally:
        if options.workers:
            pool.close()


def _build(
    module: Module, target: Target, options: BuildOptions, pool: WorkerPool
) -> tuple[Artifact, int]:
    entries = tuple(plan_memory(module, f) for f in module.graphs)
    threads, host = _threads(target, options), options.host or host_target(target)

    def compiled(name: str, ready: int, total: int) -> None:
        options.report(LOWERED + (1 - LOWERED) * ready / total, f"compiled {name}")

    with pool.batch(timeout=options.timeout, cancel=options.cancel) as batch:
        objects = Build(batch, options.store)
        with options.log.phase("lowering") as phase:
            lowered = _kernels(module, entries, target, options, objects)
            phase.note = counted(len(lowered.kernels), "kernel")
        with options.log.phase("lowering of the host flow"):
            flows = tuple(
                lower_to_host(module, f, lowered.kernels, threads, target) for f in entries
            )
            texts = {**lowered.texts, "": _host_text(flows, host)}
        with options.log.phase("code generation") as phase:
            objects.add(host_job(texts[""], host))
            result = objects.finish(compiled, options.log)
            if not result.compiled:
                options.report(1.0, "all objects from the cache")
            known = len(texts) - result.compiled
            phase.note = f"{counted(result.compiled, 'object')} compiled, {known} in the cache"
    parts = dict(zip(texts, result.objects, strict=True))
    gpu_kernels = {name for name in parts if name and target.is_gpu}
    images = {n: part for n, part in parts.items() if n in gpu_kernels}
    for name, shaders in lowered.shaders.items():
        images[name] = shader_bytes(shaders)
        texts[name] = "\n".join(s.text for s in shaders)
    return Artifact(
        target,
        threads,
        tuple(flow.spec for flow in flows),
        MappingProxyType({n: part for n, part in parts.items() if n not in gpu_kernels}),
        MappingProxyType({n: zlib.compress(t.encode(), 1) for n, t in texts.items()}),
        images=MappingProxyType(images),
        kernel_specs=lowered.specs,
        programs=lowered.programs,
        limits=kernel_limits(lowered.kernels),
        temporaries=temporary_texts(lowered.kernels),
    ), result.compiled


def _kernels(
    module: Module,
    entries: tuple[GraphFunc, ...],
    target: Target,
    options: BuildOptions,
    objects: Build,
) -> _LoweredKernels:
    """Lower every launched kernel, and start the compilation of each unless it is emulated."""
    kernels: dict[str, HostKernel] = {}
    texts: dict[str, str] = {}
    shaders: dict[str, tuple[Shader, ...]] = {}
    programs: dict[str, SimtProgram] = {}
    specs: list[KernelSpec] = []
    names = sorted({n for f in entries for n in launched(f)})
    for k, name in enumerate(names):
        options.report(SCHEDULED + (LOWERED - SCHEDULED) * k / len(names), f"lowering {name}")
        source = module.prim(name)
        check = options.limit(f"lowering of kernel {name!r}")
        with options.log.timed("lowering", name), polled(check):
            lowered = lower_kernel(source, target, debug=options.debug)
        function = lowered.function
        kernels[name] = host_kernel(lowered)
        if function.launch is not None:
            specs.append(kernel_spec(source, lowered, function.launch))
        if target.kind == "simt":
            symbols = tuple(s.name for s in lowered.symbols)
            steps = steps_of(source, options.steps)
            programs[name] = SimtProgram(source, lowered, symbols, steps, options.debug)
        elif target.kind == "webgpu":
            with polled(check), shown_in(source):
                shaders[name] = kernel_shaders(lowered, target)
        else:
            texts[name] = emit_module(function.versions, target)
            output = "image" if target.is_gpu else "object"
            objects.add(CompileJob(name, texts[name], target, output))
    return _LoweredKernels(kernels, texts, shaders, MappingProxyType(programs), tuple(specs))


def _threads(target: Target, options: BuildOptions) -> int:
    """Return the number of threads to reserve scratch for; 0: that of the runtime table."""
    return target.threads or (0 if options.sized_by_runtime else available_threads())


def _module_key(module: Module, target: Target, options: BuildOptions) -> str:
    """Return the cache key of a module: a digest of program, target, options and compiler."""
    threads = _threads(target, options)
    steps = sorted(options.steps.items()) if target.kind == "simt" else []
    return DiskCache.key(
        f"module {source_version()}; {target_key(target)}; {threads} {options.debug}; "
        f"{options.host}".encode(),
        json.dumps(steps).encode(),
        str(target).encode(),
        structural_hash(module).encode(),
        program_words(module).encode("utf-8", "surrogatepass"),
    )


def _new_constants(before: Module, after: Module, artifact: Artifact) -> Mapping[str, Constant]:
    """Return the constants that the compilation created, without results of ``prepare``."""
    used = {key for spec in artifact.functions for key in spec.constants}
    prepared = {r.name for s in artifact.functions if s.prepares for r in s.results}
    return MappingProxyType(
        {
            key: after.constants[key]
            for key in sorted((used - prepared) & after.constants.keys())
            if before.constants.get(key) is not after.constants[key]
        }
    )


def default_scheduled(module: Module, target: Target) -> tuple[Module, State]:
    """Return the module with entry functions and default schedules, and the scheduled state.

    Raises
    ------
    IllFormedProgramError
        If the module violates a well-formedness rule.
    UnprovedAccessError
        If a divisor, a clamped range, or a declared range is neither proved nor checked at entry.
    """
    module = checked_program(module)
    schedule = Schedule(with_entries(module), with_level(target))
    apply_defaults(schedule)
    return with_in_place(module, schedule.module), schedule.state


def _report_depth(function: Callable[P, R]) -> Callable[P, R]:
    """Raise the error of a program that is nested too deeply instead of ``RecursionError``."""

    @functools.wraps(function)
    def reported(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except RecursionError as error:
            raise ProgramDepthError(
                "the statements or terms of the program are nested too deeply to compile",
                hint="store intermediate values in temporaries, and use fewer nested loops",
            ) from error

    return reported


@_report_depth
def compile_artifact(module: Module, target: Target, options: BuildOptions) -> tuple[Artifact, int]:
    """Apply default schedules and build the artifact, or return it from the cache.

    The cache has two levels. The key of the module maps to the names of the constants that its
    compilation reads. The key of the artifact is a digest of the key of the module and the content
    of these constants.

    Returns
    -------
    artifact : Artifact
        The artifact.
    compiled : int
        Number of objects that were compiled and not found in the cache.
    """
    store = options.store or default_cache()
    key = _module_key(module, target, options)
    stored = _stored_artifact(store, key, module)
    if stored is not None:
        options.report(1.0, "from the cache")
        options.log.line("all machine code is in the cache")
        return stored, 0
    options.report(0.0, "scheduling")
    recorder = ConstantDependencies(module)
    with options.log.phase("scheduling") as phase:
        with watching(_scheduling(options)):
            ready, state = default_scheduled(recorder.module, target)
        phase.note = counted(len(state.trace), "step")
    steps = {**options.steps, **step_texts([state])}
    artifact, compiled = build(ready, target, replace(options, steps=steps))
    constants = _new_constants(recorder.module, ready, artifact)
    known = kernel_facts(recorder.module, ready, state, debug=options.debug)
    facts = with_lowering(known, artifact.limits, artifact.temporaries)
    artifact = replace(artifact, constants=constants, facts=facts)
    names = sorted(recorder.names)
    store.put(_artifact_key(key, module, names), artifact.to_bytes())
    store.put(key, json.dumps(names).encode())
    return artifact, compiled


def _stored_artifact(store: DiskCache, key: str, module: Module) -> Artifact | None:
    """Return the artifact of a module in the cache; entries that are not valid are removed."""
    dependencies = store.get(key)
    if dependencies is None:
        return None
    try:
        names: object = json.loads(dependencies)
    except (ValueError, RecursionError):
        names = None
    known = cast("list[object]", names) if isinstance(names, list) else [None]
    if not all(isinstance(name, str) and name in module.constants for name in known):
        store.remove(key)
        return None
    second = _artifact_key(key, module, cast("list[str]", known))
    stored = store.get(second)
    if stored is None:
        return None
    try:
        return Artifact.from_bytes(stored)
    except ArtifactError:
        store.remove(second)
        return None


def _scheduling(options: BuildOptions) -> Callable[[Module], None]:
    """Return a function that reports the share of scheduled kernels after each step."""
    most, last, check = 0.0, 0, options.limit("scheduling")

    def moved(module: Module) -> None:
        nonlocal most, last, check
        kernels = module.prims
        ready = sum(("scheduled", True) in f.attributes for f in kernels)
        if ready > last:  # the limit is one per kernel
            last, check = ready, options.limit("scheduling of a kernel")
        check()
        most = max(most, ready / max(len(kernels), 1))
        options.report(SCHEDULED * most, f"scheduled {ready} of {counted(len(kernels), 'kernel')}")

    return moved


def _artifact_key(key: str, module: Module, names: Sequence[str]) -> str:
    return DiskCache.key(key.encode(), content_digest(module, names))


def _own_steps(program: Module | Schedule | State) -> Mapping[int, str]:
    state = state_of(program)
    return {} if state is None else step_texts([state])


@checked_call
def compile(
    program: Module | Schedule | State,
    target: str | Target | None = None,
    *,
    debug: bool = False,
    verbose: bool = False,
    progress: ProgressOption = None,
    workers: int | None = None,
    cancel: CancelToken | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    table: RuntimeTable | None = None,
) -> Executable:
    """Compile a module, or the module of a schedule.

    Parameters
    ----------
    program : Module, Schedule or State
        The program to compile. Unscheduled kernels get the default schedule of their kind.
    target : str or Target, optional
        The target; by default that of the schedule, that of the functions, or the host CPU.
    debug : bool
        Check every memory access at run time; an access out of bounds raises a
        :class:`KernelError` with the buffer and the index.
    verbose : bool
        Write the phases and kernels with their times to standard error, instead of showing a bar.
    progress : bool or callable, optional
        Whether to show a progress bar; by default it appears after one second if standard error is
        a terminal, or in a notebook. ``TILEWRIGHT_PROGRESS=0`` disables it. A function is called
        with a fraction from 0 to 1 and a message, on this thread; if it raises, the compilation
        stops and the error is raised here.
    workers : int, optional
        Number of separate compile processes for this call; by default the shared pool is used.
    cancel : CancelToken, optional
        Token that cancels the compilation from another thread.
    timeout : float
        Time limit per kernel, in seconds.
    table : RuntimeTable, optional
        Provider of memory and threads for the executable.

    Returns
    -------
    Executable
        The compiled functions.

    Raises
    ------
    CompileError
        If code generation fails, times out or is canceled; the message names the kernel.
    TargetMismatchError
        If a function states another target.

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
    chosen = program_target(program, target)
    log = verbose_log() if verbose else BuildLog()
    with progress_of("compiling", False if verbose and progress is None else progress) as report:
        options = BuildOptions(
            debug=debug, workers=workers or 0, timeout=timeout, progress=report, cancel=cancel,
            steps=_own_steps(program), log=log,
        )  # fmt: skip
        with log.phase(f"compilation for {chosen}"):
            artifact, compiled = compile_artifact(module, chosen, options)
            if (state := state_of(program)) is not None:
                artifact = replace(artifact, facts=with_steps_of(artifact.facts, state))
            with log.phase("linking"):
                return Executable(
                    artifact, module.constants,
                    table=table, compiled=compiled, call=convention_of(module),
                )  # fmt: skip
