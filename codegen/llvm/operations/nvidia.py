"""Warp shuffles, matrix fragments, tensor cores, and barriers of NVIDIA GPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from ....ir.thread.operations import nvidia as ops
from ....ir.thread.types import ExecutionScope
from ..emitter import Emitter
from .handler import Handler

_ALL: Final = "i32 -1"
"""The mask of all 32 lanes of a warp."""

_CLAMP: Final = {"bfly": 31, "down": 31, "idx": 31}
"""The last lane that a shuffle may read; all lanes of a warp form one segment."""


def _shuffle(mode: str, suffix: str, element: str) -> Handler:
    name = f"llvm.nvvm.shfl.sync.{mode}.{suffix}"

    def write(em: Emitter, args: Sequence[str]) -> Sequence[str]:
        em.module.declare(name, f"{element} @{name}(i32, {element}, i32, i32)")
        value, lane = args
        operands = f"{_ALL}, {element} {value}, i32 {lane}, i32 {_CLAMP[mode]}"
        return (em.op(f"call {element} @{name}({operands})"),)

    return write


def _unpack(em: Emitter, packed: str, of: str, count: int) -> list[str]:
    return [em.op(f"extractvalue {of} {packed}, {k}") for k in range(count)]


def _ldmatrix(count: int, *, transposed: bool) -> Handler:
    kind = f"x{count}{'.trans' if transposed else ''}"
    name = f"llvm.nvvm.ldmatrix.sync.aligned.m8n8.{kind}.b16.p3"
    given = f"{{ {', '.join(['i32'] * count)} }}"

    def write(em: Emitter, args: Sequence[str]) -> Sequence[str]:
        em.module.declare(name, f"{given} @{name}(ptr addrspace(3))")
        (address,) = args
        packed = em.op(f"call {given} @{name}(ptr addrspace(3) {address})")
        words = _unpack(em, packed, given, count)
        return tuple(em.op(f"bitcast i32 {word} to <2 x half>") for word in words)

    return write


def _mma(name: str, result: str, count: int) -> Handler:
    """Return the handler of ``A @ B + C`` with six registers of A and B and ``count`` of C."""
    given = f"{{ {', '.join([result] * count)} }}"
    kinds = ["<2 x half>"] * 6 + [result] * count

    def write(em: Emitter, args: Sequence[str]) -> Sequence[str]:
        em.module.declare(name, f"{given} @{name}({', '.join(kinds)})")
        operands = ", ".join(f"{kind} {arg}" for kind, arg in zip(kinds, args, strict=True))
        return tuple(_unpack(em, em.op(f"call {given} @{name}({operands})"), given, count))

    return write


def _trap(em: Emitter, _args: Sequence[str]) -> Sequence[str]:
    em.module.declare("llvm.trap", "void @llvm.trap()")
    em.line("call void @llvm.trap()")
    return ()


NVIDIA: dict[str, Handler] = {
    ops.SHUFFLE_BUTTERFLY_F32.name: _shuffle("bfly", "f32", "float"),
    ops.SHUFFLE_BUTTERFLY_I32.name: _shuffle("bfly", "i32", "i32"),
    ops.SHUFFLE_DOWN_F32.name: _shuffle("down", "f32", "float"),
    ops.SHUFFLE_DOWN_I32.name: _shuffle("down", "i32", "i32"),
    ops.SHUFFLE_INDEX_F32.name: _shuffle("idx", "f32", "float"),
    ops.SHUFFLE_INDEX_I32.name: _shuffle("idx", "i32", "i32"),
    ops.LDMATRIX_X4.name: _ldmatrix(4, transposed=False),
    ops.LDMATRIX_X2.name: _ldmatrix(2, transposed=False),
    ops.LDMATRIX_X4_TRANSPOSED.name: _ldmatrix(4, transposed=True),
    ops.LDMATRIX_X2_TRANSPOSED.name: _ldmatrix(2, transposed=True),
    ops.MMA_M16N8K16_F32.name: _mma("llvm.nvvm.mma.m16n8k16.row.col.f32.f32", "float", 4),
    ops.MMA_M16N8K16_F16.name: _mma("llvm.nvvm.mma.m16n8k16.row.col.f16.f16", "<2 x half>", 2),
    ops.TRAP.name: _trap,
}


def _block(em: Emitter) -> None:
    name = "llvm.nvvm.barrier.cta.sync.aligned.all"
    em.module.declare(name, f"void @{name}(i32)")
    em.line(f"call void @{name}(i32 0)")


def _warp(em: Emitter) -> None:
    name = "llvm.nvvm.bar.warp.sync"
    em.module.declare(name, f"void @{name}(i32)")
    em.line(f"call void @{name}({_ALL})")


BARRIERS: Mapping[ExecutionScope, Callable[[Emitter], None]] = MappingProxyType(
    {"warp": _warp, "block": _block}
)
"""The barriers by scope, which also make writes visible to the threads of the scope."""
