"""Verification and measurement on the GPU of a page."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ...codegen import Executable
from ...codegen.measure import MeasureOptions
from ...codegen.runtime.device_tensor import DeviceTensor
from ...codegen.runtime.webgpu.pages import used_page
from ...codegen.sandbox.memory_limit import default_memory
from ...codegen.sandbox.random_inputs import RandomInputs
from ...codegen.sandbox.sent_inputs import SHARE, Inputs
from ...ir.interpreter.oracle import compare
from ...ir.module import Function, Module
from ...schedules import State
from ...schedules.history import Node
from ...target.target import Target
from ..assets import STATIC, asset
from ..bench import Bench
from ..given_inputs import GivenInputs
from ..inputs import shapes_text
from ..jobs import Progress
from ..protocol_gpu import GpuClose
from ..protocol_runs import Measurement, Verdict
from ..rates import with_shares
from ..recent_users import RECENT
from ..render import Samples
from .channel import PageChannel, Pages
from .device import PageDevice
from .drawing import drawn, seed_of
from .errors import PageClosedError, PageGpuLostError
from .times import PageTimes, taken_times

Array = NDArray[Any]
R = TypeVar("R")

MODULE: Final = STATIC / "gpu.js"
"""The module that a page loads to run kernels."""


@dataclass(frozen=True, slots=True)
class PageProgram:
    """A program that is loaded in a page, with its history node and compile time in ms."""

    node: str
    executable: Executable
    device: PageDevice
    milliseconds: float

    def call(self, name: str, arguments: Sequence[Any]) -> list[Any]:
        """Return the results of a function on the device, after all checks of kernels."""
        found: Any = self.executable[name].invoke(arguments)
        self.device.finish()
        if isinstance(found, tuple):
            return list(cast("tuple[Any, ...]", found))
        return [] if found is None else [found]


@dataclass(frozen=True, slots=True)
class _Source:
    """A program to run: an entire state, or one of its kernels ``alone``."""

    node: Node
    program: Module | State
    function: Function
    alone: bool = False


class PageBench(Bench):
    """A compiler for browsers, which caches the last program.

    Parameters
    ----------
    target : Target
        A target in a browser.
    pages : Pages
        The pages of the session.
    given : GivenInputs, optional
        Inputs of the user, used at the sizes that they have.
    """

    def __init__(self, target: Target, pages: Pages, given: GivenInputs | None = None) -> None:
        """Start without a page."""
        super().__init__(target, given)
        self._pages = pages
        self._client = ""
        self._loaded: PageProgram | None = None
        self._device: tuple[str, PageDevice] | None = None

    @property
    def target_text(self) -> str:
        """The target as text."""
        return " · ".join(("webgpu", "this browser", *self.target.features))

    def use_page(self, client: str) -> None:
        """Run the next job in the page of a client; the GPU of another page is closed."""
        if self._device is not None and self._device[0] != client:
            self._close_device()
        self._client = client

    def close(self) -> None:
        """Close the GPU of the page, without waiting for it."""
        self._close_device()
        super().close()

    def _close_device(self) -> None:
        self._loaded = None
        if self._device is not None:
            client, self._device = self._device[0], None
            self._pages.of(client).post(GpuClose("close"))

    def _open_device(self, channel: PageChannel, progress: Progress) -> PageDevice:
        """Return the GPU of the page, opened for the first run."""
        if self._device is None:
            progress(-1.0, "opening the GPU of the page")
            device = PageDevice.opened(channel, asset(MODULE), self.target)
            self._device = (self._client, device)
        return self._device[1]

    def _program(self, source: _Source, progress: Progress) -> PageProgram:
        """Return a loaded program; only one of an entire state is cached."""
        channel = self._pages.of(self._client)
        device = self._open_device(channel, progress)
        node, alone = source.node, source.alone
        if not alone and self._loaded is not None and self._loaded.node == node.id:
            return self._loaded
        started = time.perf_counter()
        executable = self._compile(source.program, progress)
        progress(-1.0, "compiling shaders in the page")
        with used_page(device):
            loaded = executable.device
        milliseconds = (time.perf_counter() - started) * 1e3
        found = PageProgram(node.id, executable, cast("PageDevice", loaded), milliseconds)
        if not alone:
            self._loaded = found
        return found

    def _run(self, work: Callable[[PageChannel], R], progress: Progress) -> R:
        """Run work in the page, and forget its GPU if the page lost it, or does not answer."""
        channel = self._pages.of(self._client)
        with RECENT.using(self), channel.job(progress):
            try:
                return work(channel)
            except (PageClosedError, PageGpuLostError):
                self._loaded = self._device = None
                raise
            except BaseException:
                if progress.canceled:  # the page may still run kernels
                    self._close_device()
                raise

    def _arguments(self, device: PageDevice, inputs: Inputs) -> list[Any]:
        """Return the arguments of a call on the device."""
        if isinstance(inputs, RandomInputs):
            inputs.require_memory(int(default_memory() * SHARE))
            return [
                a if isinstance(a, int) else device.argument(a, seed_of(k, inputs.seed))
                for k, a in enumerate(inputs.arguments)
            ]
        return [device.upload(a) if isinstance(a, np.ndarray) else a for a in inputs]

    def _verify(
        self, node: Node, root: Module, name: str, samples: Samples, progress: Progress
    ) -> Verdict:
        def work(_channel: PageChannel) -> Verdict:
            function = node.state.module.functions[name]
            program = self._program(_Source(node, node.state, function), progress)
            inputs = self._inputs(node, function, samples)
            progress(-1.0, f"running {name} in the page")
            arguments = self._arguments(program.device, inputs)
            results = [_on_host(r) for r in program.call(name, arguments)]
            if isinstance(inputs, RandomInputs):
                inputs = drawn(inputs.arguments, inputs.seed)
            source = root if name in root.functions else node.state.module
            exact = self._exact(source, name, inputs, progress)
            progress(-1.0, "comparing")
            return self._verdict(node, samples, compare(results, exact.exact()))

        return self._run(work, progress)

    def measure(
        self,
        node: Node,
        name: str,
        samples: Samples,
        progress: Progress,
        options: MeasureOptions | None = None,
    ) -> Measurement:
        """Measure the entire compiled state and its kernels in the page."""
        whole = _Source(node, node.state, node.state.module.functions[name])
        return self._measured(whole, samples, progress, options)

    def measure_kernel(
        self,
        node: Node,
        name: str,
        samples: Samples,
        progress: Progress,
        options: MeasureOptions | None = None,
    ) -> Measurement:
        """Measure one kernel of a state in the page, compiled in isolation."""
        function = node.state.module.prim(name)
        alone = _Source(node, Module().with_functions(function), function, alone=True)
        return self._measured(alone, samples, progress, options)

    def _measured(
        self,
        source: _Source,
        samples: Samples,
        progress: Progress,
        options: MeasureOptions | None,
    ) -> Measurement:
        node, function = source.node, source.function
        chosen = options or MeasureOptions()
        self.check(chosen)

        def work(channel: PageChannel) -> Measurement:
            program = self._program(source, progress)
            inputs = self._inputs(node, function, samples)
            progress(-1.0, f"running {function.name} in the page")
            arguments = self._arguments(program.device, inputs)
            program.call(function.name, arguments)  # the memory plan of these sizes
            with program.device.recording():
                kept = program.call(function.name, arguments)
            times = taken_times(program.device.page, chosen.budget, progress)
            del kept  # its memory was written by each sample
            own = self.given is not None and self.given.fit(function, samples)
            words = [times.clock_text, f"at most {chosen.budget:g} s"]
            words += ["the page was hidden, so the browser may slow it down"] * channel.hidden
            words += ["given inputs"] * own
            return _measurement(program, function.name, samples, times, ", ".join(words))

        return self._run(work, progress)


def _measurement(
    program: PageProgram, name: str, samples: Samples, times: PageTimes, conditions: str
) -> Measurement:
    facts = program.device.page.facts
    found = Measurement(
        state=program.node,
        function=name,
        shapes=shapes_text(samples),
        samples=[round(x, 3) for x in times.samples],
        median=times.median,
        low=times.low,
        high=times.high,
        compile_ms=program.milliseconds,
        kernels=list(times.kernels),
        conditions=conditions,
        alone=True,
        emulated=False,
        total=0.0,
        outside=0.0,
        machine={
            "gpu": facts.name + (" (on the processor)" if facts.software else ""),
            "browser": facts.browser,
            "clock": times.clock_text,
            "calls_per_sample": str(times.repeats),
        },
    )
    return with_shares(found)


def _on_host(result: Any) -> Array:
    """Return a result as an array."""
    return result.numpy() if isinstance(result, DeviceTensor) else np.asarray(result)
