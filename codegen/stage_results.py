"""The functions of a program after each stage of the compiler, computed on demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Literal, TypeAlias

from ..errors import TilewrightError
from ..ir import script
from ..ir.graph.nodes import GraphFunc
from ..ir.graph.plan import plan_memory
from ..ir.loop.nodes import PrimFunc
from ..ir.module import Module
from ..ir.thread.function import ThreadFunc
from ..ir.thread.text import to_text as thread_text
from ..schedules.launch.annotations import with_block_names
from ..target.host import available_threads
from ..target.target import Target
from .build.build_objects import host_job, host_target
from .build.worker_pool import CancelToken, CompileJob, default_pool
from .compiler import check_functions, default_scheduled
from .entry_names import public_name
from .llvm import emit_module
from .lower.host.devices import host_kernel
from .lower.host.entry_wrappers import launched
from .lower.host.function import FlowFunctions, HostKernel, lower_to_host
from .lower.host.text import host_text
from .lower.host.to_thread import lower_host
from .lower.pipeline import LoweredKernel, after_each_pass
from .lower.shaders import kernel_shaders
from .nvidia import Image, disassemble
from .stages import (
    ASSEMBLY,
    LLVM,
    LLVM_OPTIMIZED,
    SASS,
    SCHEDULED,
    Stage,
    find_stage,
    stage_before,
    stages_of,
)

Form: TypeAlias = "PrimFunc | GraphFunc | ThreadFunc | FlowFunctions | str"
"""A function at a stage: loop IR, graph IR, thread IR, host IR, or a text of generated code."""


class StageResults:
    """The functions of one program after each stage, computed when they are first required.

    Parameters
    ----------
    module : Module
        The program.
    target : Target
        The target.
    cancel : CancelToken, optional
        Token that stops the compile workers.
    """

    def __init__(self, module: Module, target: Target, cancel: CancelToken | None = None) -> None:
        """Apply the default schedules."""
        check_functions(module)
        self.given = module
        self.target = target
        self.cancel = cancel
        self.module, _ = default_scheduled(module, target)
        self._kernels: dict[str, dict[str, PrimFunc | LoweredKernel]] = {}
        self._runs: dict[str, Iterator[tuple[str, PrimFunc | LoweredKernel]]] = {}
        self._texts: dict[tuple[str, str], str] = {}

    @cached_property
    def kernels(self) -> tuple[str, ...]:
        """The names of the kernels that graph functions launch, in the order of the module."""
        used = {name for f in self._planned.values() for name in launched(f)}
        return tuple(f.name for f in self.module.prims if f.name in used)

    @cached_property
    def _planned(self) -> Mapping[str, GraphFunc]:
        return {f.name: plan_memory(self.module, f) for f in self.module.graphs}

    @cached_property
    def _host_kernels(self) -> Mapping[str, HostKernel]:
        return {name: host_kernel(self.lowered(name)) for name in self.kernels}

    def names(self, stage: Stage) -> tuple[str, ...]:
        """Return the names of the functions at a stage, in the order of the module."""
        kernels = self.kernels if stage.has_kernels else ()
        graphs = tuple(self._planned) if stage.has_host_code else ()
        if stage.name == SCHEDULED:
            graphs = tuple(
                n for n in self._planned if n == public_name(n) or n in self.given.functions
            )
        return kernels + graphs

    def after(self, name: str, stage: str) -> PrimFunc | LoweredKernel:
        """Return a kernel after a pass."""
        if stage == SCHEDULED:
            return self.module.prim(name)
        done = self._kernels.setdefault(name, {})
        if name not in self._runs:
            self._runs[name] = after_each_pass(self.module.prim(name), self.target)
        while stage not in done:
            try:
                passed, result = next(self._runs[name])
            except BaseException as error:
                del self._runs[name]  # The next call starts again, and fails with the same error.
                if isinstance(error, TilewrightError):
                    self._locate(error, len(done))
                raise
            done[passed] = result
        return done[stage]

    def _locate(self, error: TilewrightError, passed: int) -> None:
        """Add the pass that failed to the location of its error; ``passed`` ones succeeded."""
        passes = [s.name for s in stages_of(self.target) if s.level in ("loop", "thread")]
        failed = passes[passed + 1]
        error.where = ", ".join(filter(None, (error.where, f"pass {failed!r}")))
        error.details["pass"] = failed

    def lowered(self, name: str) -> LoweredKernel:
        """Return a kernel after all passes."""
        last = [s.name for s in stages_of(self.target) if s.level == "thread"][-1]
        result = self.after(name, last)
        if isinstance(result, PrimFunc):
            raise TypeError(f"pass {last!r} returned loop IR")
        return result

    def flow(self, name: str) -> FlowFunctions:
        """Return the host functions of a graph function."""
        threads = self.target.threads or available_threads()
        func = self._planned[name]
        return lower_to_host(self.module, func, self._host_kernels, threads, self.target)

    def function(self, name: str, stage: Stage) -> Form:
        """Return a function at a stage."""
        if stage.level in ("loop", "thread"):
            if name in self._planned:
                return self.module.functions[name]
            result = self.after(name, stage.name)
            return result.function if isinstance(result, LoweredKernel) else result
        return self.flow(name) if stage.level == "host" else self.text(name, stage)

    def text(self, name: str, stage: Stage) -> str:
        """Return the text of a function at a stage."""
        key = (name, stage.name)
        if key not in self._texts:
            self._texts[key] = self._text(name, stage)
        return self._texts[key]

    def _text(self, name: str, stage: Stage) -> str:
        if stage.level == "wgsl":
            shaders = kernel_shaders(self.lowered(name), self.target)
            return "\n".join(shader.text for shader in shaders)
        if stage.level in ("llvm", "assembly"):
            return self._generated(name, stage.name)
        match self.function(name, stage):
            case ThreadFunc() as function:
                return thread_text(function)
            case FlowFunctions() as flow:
                return host_text(flow)
            case PrimFunc() as function if stage.name != SCHEDULED:
                return script.to_text(with_block_names(function), lowered=True) + "\n"
            case PrimFunc() | GraphFunc() as function:
                return script.to_text(function, module=self.module) + "\n"
            case str() as text:
                return text

    def _generated(self, name: str, stage: str) -> str:
        """Return LLVM IR or assembly, which a compile worker makes."""
        if stage == LLVM:
            return self._llvm(name)
        llvm = self.text(name, find_stage(LLVM, self.target))
        output: Literal["optimized", "assembly", "image"]
        match stage:
            case str() if stage == LLVM_OPTIMIZED:
                output = "optimized"
            case str() if stage == ASSEMBLY:
                output = "assembly"
            case _:
                output = "image"
        job = CompileJob(name, llvm, self.target, output)
        if name in self._planned and output != "image":
            job = host_job(llvm, self.target, output, name=name)
        made = default_pool().run(job, cancel=self.cancel)
        if stage == SASS:
            return disassemble(Image.from_bytes(made).machine_code())
        return made.decode()

    def _llvm(self, name: str) -> str:
        if name in self._planned:
            functions = [lower_host(f) for f in self.flow(name).functions]
            return emit_module(functions, host_target(self.target))
        return emit_module(self.lowered(name).function.versions, self.target)

    def before(self, name: str, stage: Stage) -> str:
        """Return the text that a stage transforms; empty if the default rules made the function."""
        previous = stage_before(stage, self.target)
        if previous is not None:
            return self.text(name, previous)
        if name not in self.given.functions:
            return ""
        return script.to_text(self.given.functions[name], module=self.given) + "\n"
