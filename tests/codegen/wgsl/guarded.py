"""A WebGPU device whose bindings reach into guard words, so that wrong accesses change them.

A shader accesses no memory outside of its bindings, so a write beyond a tensor is not visible. Here
each buffer has ``GUARD`` bytes before and after it, which belong to its bindings.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np

from tilewright.codegen.runtime.webgpu import device as devices
from tilewright.codegen.runtime.webgpu.adapter import request_adapter, wgpu_module
from tilewright.codegen.runtime.webgpu.device import WebGpuDevice
from tilewright.codegen.runtime.webgpu.kernel import Bound

if TYPE_CHECKING:
    from collections.abc import Generator

    from tilewright.codegen.runtime.webgpu.memory import Block

GUARD = 256
"""The bytes before and after a buffer: a multiple of the alignment of bindings."""

PATTERN = 0xA5
"""The value of the bytes around a tensor."""


class GuardedDevice(WebGpuDevice):
    """A device that checks the bytes around all tensors that were allocated."""

    def __init__(self) -> None:
        """Open the adapter of this machine."""
        self.exact: dict[int, int] = {}
        self.zeros: dict[int, int] = {}
        self.edits: list[tuple[str, str]] = []
        """Replacements in the text of shaders, for mutants."""
        self.edited = 0
        self._damaged: list[str] = []
        super().__init__(wgpu_module(), request_adapter())
        self.guard_loops()

    def _create(self, size: int) -> Any:
        return super()._create(size + 2 * GUARD)

    def _allocate(self, size: int, alignment: int) -> int:
        address = super()._allocate(size, alignment)
        if address:
            with self._entered():
                self._submit()
                block, _ = self._at(address)
                fill = bytes([PATTERN]) * (block.size + 2 * GUARD)
                self._device.queue.write_buffer(block.buffer, 0, fill)
            self.exact[address], self.zeros[address] = size, 0
        return address

    def _free(self, address: int) -> None:
        if address in self.exact:
            with self._entered():
                self._inspect(address)
            del self.exact[address]
        super()._free(address)

    def _at(self, address: int) -> tuple[Block, int]:
        block, offset = super()._at(address)
        return block, offset + GUARD

    def _write(self, target: int, source: int, size: int) -> None:
        super()._write(target, source, size)
        block, _ = self._at(target)
        end = target - block.address + size
        if size and end == self.exact.get(block.address):
            self.zeros[block.address] = -size % 4  # the rest of the last word

    def bind(self, kernel: str, address: int, size: int) -> Bound:
        """Return a binding with the guard words."""
        found = super().bind(kernel, address, size)
        if size <= 0:
            return found
        own = -(-(4 * found.word + size) // 4) * 4
        word = found.word + GUARD // 4
        return Bound(found.block, found.start - GUARD, own + 2 * GUARD, word)

    def pipeline(self, name: str, text: str, bindings: int) -> tuple[Any, Any]:
        """Return the pipeline of a shader after the edits of a mutant."""
        for old, new in self.edits:
            self.edited += text.count(old)
            text = text.replace(old, new)
        return super().pipeline(name, text, bindings)

    def damage(self) -> list[str]:
        """Return the damaged bytes around all tensors since the last call."""
        with self._entered():
            for address in self.exact:
                self._inspect(address)
        found, self._damaged = self._damaged, []
        return found

    def _inspect(self, address: int) -> None:
        """Note the damaged bytes around a tensor."""
        size = self.exact[address]
        self._submit()
        block, _ = self._at(address)
        data = bytes(self._device.queue.read_buffer(block.buffer))
        wanted = np.full(block.size + 2 * GUARD, PATTERN, np.uint8)
        end = GUARD + size
        wanted[end : end + self.zeros[address]] = 0
        actual = np.frombuffer(data, np.uint8)[: wanted.size]
        differs = actual != wanted
        differs[GUARD:end] = False
        self._damaged += [
            f"byte {k - GUARD} of a buffer of {size} bytes is {actual[k]}"
            for k in np.flatnonzero(differs)[:3]
        ]


@cache
def _opened() -> GuardedDevice:
    os.environ.setdefault("XDG_RUNTIME_DIR", "/tmp")  # Mesa reports a missing one
    return GuardedDevice()


@contextmanager
def guarded_device(device: GuardedDevice | None = None) -> Generator[GuardedDevice]:
    """Load executables for WebGPU on a guarded device; without one, on that of this process."""
    own = device or _opened()
    with mock.patch.object(devices, "opened_device", return_value=own):
        yield own
