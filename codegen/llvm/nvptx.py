"""NVIDIA GPU kernels: launch axes as special registers, shared memory as module globals."""

from __future__ import annotations

from typing import Final

from ...errors import TilewrightError
from ...ir.symbolic import const_value
from ...ir.thread.function import LaunchGrid, ThreadFunc
from ...target.gpus import resolve_gpu
from ...target.target import Target
from ..nvidia import SharedLayout, shared_layout
from .emitter import Emitter

_REGISTERS: Final = {"threadIdx": "tid", "blockIdx": "ctaid"}
_AXES: Final = ("x", "y", "z")


class LaunchAxisError(TilewrightError):
    """A launch axis that the hardware does not have, or whose extent is not a constant."""

    title = "Invalid launch axis"


def open_kernel(em: Emitter, launch: LaunchGrid) -> None:
    """Bind the launch axes and declare the shared memory of the kernel."""
    for axis in launch.axes:
        kind, _, name = axis.tag.partition(".")
        if kind not in _REGISTERS or name not in _AXES:
            raise LaunchAxisError(
                f"{axis.tag!r} is not a launch axis", where=f"function {em.function.name!r}",
                hint="the axes are blockIdx and threadIdx with .x, .y, or .z",
            )  # fmt: skip
        register = f"llvm.nvvm.read.ptx.sreg.{_REGISTERS[kind]}.{name}"
        em.module.declare(register, f"i32 @{register}()")
        extent = const_value(axis.extent)
        within = "" if extent is None or extent < 1 else f"range(i32 0, {extent}) "
        index = em.op(f"call {within}i32 @{register}()")
        if axis.var in em.narrow:
            em.bind(axis.var, index, short=True)
        else:
            em.bind(axis.var, em.op(f"zext nneg i32 {index} to i64"))
    _declare_shared(em, shared_layout(em.function))


def _declare_shared(em: Emitter, layout: SharedLayout) -> None:
    if not layout.offsets:
        return
    name = f"@{em.function.name}__shared"
    extent = 0 if layout.dynamic else layout.size
    linkage, initial = ("external", "") if layout.dynamic else ("internal", " undef")
    # ldmatrix and 128-bit accesses require the alignment of the whole allocation.
    alignment = max(layout.alignment, 16)
    em.module.globals[name] = (
        f"{name} = {linkage} addrspace(3) global [{extent} x i8]{initial}, align {alignment}"
    )
    for reg, offset in layout.offsets.items():
        moved = f"getelementptr (i8, ptr addrspace(3) {name}, i64 {offset})"
        em.fixed[reg] = moved if offset else name


def block_extents(launch: LaunchGrid, name: str) -> tuple[int, int, int]:
    """Return the number of threads of a block along x, y, and z."""
    sizes = {"x": 1, "y": 1, "z": 1}
    for axis in launch.axes:
        kind, _, along = axis.tag.partition(".")
        if kind == "threadIdx":
            extent = const_value(axis.extent)
            if extent is None or along not in sizes:
                raise LaunchAxisError(
                    f"{axis.tag} has extent {axis.extent}, which is not a constant",
                    where=f"function {name!r}",
                    hint="bind a loop of constant extent",
                )  # fmt: skip
            sizes[along] = extent
    return sizes["x"], sizes["y"], sizes["z"]


def kernel_attributes(function: ThreadFunc, launch: LaunchGrid, target: Target) -> str:
    """Return the attributes of a kernel: the GPU, its features, and the threads per block."""
    gpu = resolve_gpu(target)
    threads = ",".join(map(str, block_extents(launch, function.name)))
    return (
        f'nounwind "target-cpu"="{gpu.name}" "target-features"="{gpu.features}" '
        f'"nvvm.maxntid"="{threads}"'
    )
