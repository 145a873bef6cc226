"""Kernels of NVIDIA GPUs: launch axes as special registers, shared memory as module globals."""

from __future__ import annotations

from typing import Final

from ...ir.errors import TilewrightError
from ...ir.symbolic import const_value
from ...ir.target import Target
from ...ir.thread.nodes import Launch, ThreadFunc
from ..nvidia import SharedLayout, resolve_gpu, shared_layout
from .emitter import Emitter

_REGISTERS: Final = {"threadIdx": "tid", "blockIdx": "ctaid"}
_AXES: Final = ("x", "y", "z")


class LaunchAxisError(TilewrightError):
    """A launch axis that the hardware does not have, or whose extent is not a number."""

    title = "Unknown launch axis"


def open_kernel(em: Emitter, launch: Launch) -> None:
    """Bind the launch's axes, and place the block's shared memory."""
    for axis in launch.axes:
        kind, _, name = axis.tag.partition(".")
        if kind not in _REGISTERS or name not in _AXES:
            raise LaunchAxisError(
                f"no launch axis {axis.tag!r}", where=f"function {em.function.name!r}",
                hint="axes are blockIdx and threadIdx, each .x, .y and .z",
            )  # fmt: skip
        register = f"llvm.nvvm.read.ptx.sreg.{_REGISTERS[kind]}.{name}"
        em.module.declare(register, f"i32 @{register}()")
        extent = const_value(axis.extent)
        within = "" if extent is None or extent < 1 else f"range(i32 0, {extent}) "
        index = em.op(f"call {within}i32 @{register}()")
        em.bind(axis.var, em.op(f"zext nneg i32 {index} to i64"))
    _place_shared(em, shared_layout(em.function))


def _place_shared(em: Emitter, placed: SharedLayout) -> None:
    if not placed.offsets:
        return
    name = f"@{em.function.name}__shared"
    extent = 0 if placed.dynamic else placed.size
    linkage, initial = ("external", "") if placed.dynamic else ("internal", " undef")
    # Rows that ldmatrix reads and 128-bit accesses rest on the alignment of the whole.
    alignment = max(placed.alignment, 16)
    em.module.globals[name] = (
        f"{name} = {linkage} addrspace(3) global [{extent} x i8]{initial}, align {alignment}"
    )
    for reg, offset in placed.offsets.items():
        moved = f"getelementptr (i8, ptr addrspace(3) {name}, i64 {offset})"
        em.fixed[reg] = moved if offset else name


def block_extents(launch: Launch, name: str) -> tuple[int, int, int]:
    """Give the threads of a block along x, y and z."""
    sizes = {"x": 1, "y": 1, "z": 1}
    for axis in launch.axes:
        kind, _, along = axis.tag.partition(".")
        if kind == "threadIdx":
            extent = const_value(axis.extent)
            if extent is None or along not in sizes:
                raise LaunchAxisError(
                    f"{axis.tag} has extent {axis.extent}", where=f"function {name!r}",
                    hint="the threads of a block are a number",
                )  # fmt: skip
            sizes[along] = extent
    return sizes["x"], sizes["y"], sizes["z"]


def kernel_attributes(function: ThreadFunc, launch: Launch, target: Target) -> str:
    """Write the attributes of one kernel: the machine, and the threads of its blocks."""
    gpu = resolve_gpu(target)
    threads = ",".join(map(str, block_extents(launch, function.name)))
    return (
        f'nounwind "target-cpu"="{gpu.name}" "target-features"="{gpu.features}" '
        f'"nvvm.maxntid"="{threads}"'
    )
