"""The GPU of a page as the device of an executable."""

from __future__ import annotations

import weakref
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Literal

from numpy.typing import NDArray

from ...codegen.artifact import Artifact
from ...codegen.errors import OutOfMemoryError
from ...codegen.rtlib import layout
from ...codegen.runtime.device_tensor import DeviceTensor, Owner
from ...codegen.runtime.webgpu.device import WebGpuDevice
from ...codegen.runtime.webgpu.kernel import WebGpuKernel
from ...codegen.sandbox.random_inputs import ArrayRecipe
from ...ir.sizes import storage_bytes
from ...target.target import Target
from ...target.webgpu import FEATURES, LANGUAGE_FEATURES
from ..protocol_gpu import GpuDraw
from .channel import PageChannel
from .drawing import draw, is_drawn_in_page
from .gpu import Item, PageGpu

Array = NDArray[Any]

RECORD: Final = 32
"""The bytes of the record of the failed checks of a launch."""

MOST_CHECKED: Final = 1024
"""The number of launches with checks whose records are read together."""


class PageDevice(WebGpuDevice):
    """A GPU of a page.

    The records of failed checks are read at the end of a call, as each read waits for the page.
    """

    def __init__(self, gpu: PageGpu) -> None:
        """Reserve memory for the records of checks."""
        super().__init__(gpu, gpu)
        self.page = gpu
        self._checked: list[WebGpuKernel] = []
        self._log: Any = None

    @classmethod
    def opened(cls, channel: PageChannel, module: str, target: Target) -> PageDevice:
        """Open the GPU of a page for a target.

        Raises
        ------
        TilewrightError
            If the page has no GPU, its GPU lacks a feature of the target, or it does not answer.
        """
        features = [FEATURES[f] for f in target.features if f in FEATURES]
        language = [LANGUAGE_FEATURES[f] for f in target.features if f in LANGUAGE_FEATURES]
        return cls(PageGpu.opened(channel, module, features, language))

    def load(self, artifact: Artifact) -> Mapping[str, int]:
        """Load an artifact's kernels, and compile their shaders in the page at the same time."""
        handles = super().load(artifact)
        with self._entered():
            for handle in handles.values():
                self._kernels[handle].pipeline()
            self.page.flush()
        return handles

    def argument(self, recipe: ArrayRecipe, seed: int) -> DeviceTensor:
        """Return a random array on the device, drawn in the page or sent to it."""
        if not is_drawn_in_page(recipe):
            return self.upload(draw(recipe, seed))
        tensor = self._allocated(recipe)
        with self._entered():
            self.redraw(tensor, recipe, seed)
        return tensor

    def redraw(self, tensor: DeviceTensor, recipe: ArrayRecipe, seed: int) -> None:
        """Write the elements of a recipe that the page draws."""
        block, start = self._at(tensor.address)
        count = tensor.nbytes // recipe.dtype.width
        dtype: Literal["f32", "i32"] = "f32" if recipe.dtype.is_float else "i32"
        if count:
            self._submit()
            number, limits = block.buffer.number, (recipe.low, recipe.high)
            self.page.add(GpuDraw("draw", number, start, count, dtype, seed, *limits))

    def _allocated(self, recipe: ArrayRecipe) -> DeviceTensor:
        size = storage_bytes(recipe.size // recipe.dtype.width, recipe.dtype)
        address = self._allocate(size, layout.ALIGNMENT)
        if not address:
            raise OutOfMemoryError(
                f"cannot allocate {size} bytes on {self.name}",
                where=f"parameter {recipe.name!r}",
                hint="choose smaller sizes",
            )
        owner = Owner()
        weakref.finalize(owner, self._free, address).atexit = False
        return DeviceTensor(address, recipe.shape, recipe.dtype, self, owner)

    def _wait_for_earlier(self) -> None:
        """Do not wait within a call: the page executes a call at once."""

    def begin(self) -> None:
        """Forget the checks of an earlier call that failed."""
        self._checked.clear()

    def _check(self, kernel: WebGpuKernel) -> None:
        """Copy the record of a launch, to be read later."""
        if self._log is None:
            self._log = self._create(RECORD * MOST_CHECKED)
        self._end_pass()
        self._begin()
        at = RECORD * len(self._checked)
        self._encoder.copy(self._record, 0, self._log, at, RECORD, timed=False)
        self._checked.append(kernel)
        if len(self._checked) == MOST_CHECKED:
            self.finish()

    def finish(self) -> None:
        """Execute all launches, and raise the error of the first failed check.

        Raises
        ------
        KernelError
            If a check failed.
        """
        with self._entered():
            self._submit()
            checked, self._checked = self._checked, []
            if not checked:
                self.page.flush()
                return
            records = self.page.read_buffer(self._log, 0, RECORD * len(checked))
            for k, kernel in enumerate(checked):
                error = kernel.failed_check(records[RECORD * k : RECORD * (k + 1)])
                if error is not None:
                    raise error

    @contextmanager
    def recording(self) -> Generator[list[Item]]:
        """Record the launches and copies of calls for :meth:`.PageGpu.time`."""
        with self._entered():
            self._submit()
            self.page.record(on=True)
        yield self.page.recorded
        with self._entered():
            self._submit()
            self.page.record(on=False)
