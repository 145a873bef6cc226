"""Drivers that end long loops: how they are found, and the record of the kernels they end."""

from __future__ import annotations

import struct
from typing import Any, Final

from ....errors import TilewrightError
from ...wgsl.loop_guards import guarded

PROBED: Final = 70_000
"""The iterations of the loop by which a driver is probed; llvmpipe ends it after 65,535."""

_PROBE: Final = """\
@group(0) @binding(0) var<storage, read_write> counts: array<u32, 2>;

@compute @workgroup_size(1)
fn main() {
    var found = 0u;
    for (var k = 0u; k < counts[0]; k++) {
        found++;
    }
    counts[1] = found;
}
"""


class LoopEndedError(TilewrightError):
    """A kernel with more iterations of loops than the driver executes."""

    title = "Loop ended by the driver"


def ends_loops(module: Any, device: Any) -> bool:
    """Return whether a driver ends a loop of many iterations before its condition does."""
    usage = module.BufferUsage
    counts = device.create_buffer_with_data(
        data=struct.pack("<2I", PROBED, 0), usage=usage.STORAGE | usage.COPY_SRC
    )
    shader = device.create_shader_module(label="loops", code=_PROBE)
    pipeline = device.create_compute_pipeline(
        label="loops", layout="auto", compute={"module": shader, "entry_point": "main"}
    )
    group = device.create_bind_group(
        layout=pipeline.get_bind_group_layout(0),
        entries=[{"binding": 0, "resource": {"buffer": counts, "offset": 0, "size": 8}}],
    )
    encoder = device.create_command_encoder()
    recorded = encoder.begin_compute_pass()
    recorded.set_pipeline(pipeline)
    recorded.set_bind_group(0, group)
    recorded.dispatch_workgroups(1)
    recorded.end()
    device.queue.submit([encoder.finish()])
    _, found = struct.unpack("<2I", bytes(device.queue.read_buffer(counts)))
    counts.destroy()
    return found != PROBED


class LoopRecord:
    """The word in which kernels record that the driver ended one of their loops.

    Parameters
    ----------
    module : module
        The package ``wgpu``.
    device : GPUDevice
        The device.
    name : str
        The name of the adapter.
    """

    def __init__(self, module: Any, device: Any, name: str) -> None:
        """Create the word."""
        usage = module.BufferUsage
        self.buffer: Any = device.create_buffer(
            size=4, usage=usage.STORAGE | usage.COPY_DST | usage.COPY_SRC
        )
        self._queue = device.queue
        self._name = name
        self._kernels: list[str] = []

    def guarded(self, kernel: str, text: str, binding: int) -> str:
        """Return a shader that records a loop that the driver ends."""
        self._kernels.append(kernel.partition("$")[0])
        return guarded(text, binding, len(self._kernels))

    def check(self) -> None:
        """Raise if a kernel that has finished recorded a loop, and clear the record.

        Raises
        ------
        LoopEndedError
            If there is one.
        """
        (number,) = struct.unpack("<I", bytes(self._queue.read_buffer(self.buffer)))
        if not number:
            return
        self._queue.write_buffer(self.buffer, 0, bytes(4))
        kernel = self._kernels[number - 1]
        raise LoopEndedError(
            f"{self._name} ended a loop of kernel {kernel!r}, so its results are incomplete: the "
            "driver executes at most 65,535 iterations of all loops of an invocation",
            where=f"kernel {kernel!r}",
            hint="bind more loops to threads or unroll the innermost one, use smaller sizes, or "
            "run the kernel on a GPU",
            details={"kernel": kernel, "limit": 65_535},
        )
