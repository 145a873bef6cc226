"""Check that a kernel has a form in the shading language of WebGPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...ir.analysis.bounds import kernel_checked
from ...ir.dtype import DType
from ...ir.kernel_errors import LaunchLimitError, ShaderError
from ...ir.loop.nodes import Binary, Block, Cast, Element, PrimFunc, Ternary, Unary
from ...ir.loop.thread_roles import Atomic
from ...ir.loop.visit import all_buffers, elements, stores, walk
from ...target.target import Target
from ...target.webgpu import STORAGE_BINDINGS
from .lowering_pass import WEBGPU, Pass

MISSING: Final = frozenset({"digamma", "erfinv", "fma", "lgamma"})
"""The element functions of floats that need double precision, which shaders lack."""

_EXACT_BITS: Final = 16
"""The largest integers, in bits, whose conversion to a narrow float needs no double."""

_WORD_BITS: Final = 32


class CheckShader(Pass):
    """Reject a kernel that WebGPU shaders cannot express, or with more buffers than they access.

    Raises
    ------
    ShaderError
        If the kernel computes with double precision, with an element function that needs it, or
        updates elements atomically that are not words.
    LaunchLimitError
        If the kernel has more buffers than a shader can access.
    """

    targets = WEBGPU

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Return the function unchanged, after the checks."""
        del target
        self._check_buffers(func)
        for statement in walk(func.body):
            if isinstance(statement, Block):
                self._check_update(func, statement)
        for element in elements(func.body):
            self._check_element(func, element)
        return func

    @staticmethod
    def _check_buffers(func: PrimFunc) -> None:
        for buffer in all_buffers(func):
            if _is_double(buffer.dtype):
                raise ShaderError(
                    f"buffer {buffer.name!r} has dtype {buffer.dtype}; WebGPU shaders have no "
                    "double precision",
                    where=f"kernel {func.name!r}",
                    hint="use f32, or compile for another target",
                    details={"buffer": buffer.name, "dtype": str(buffer.dtype)},
                    parts=(buffer.name,),
                )
        names = [b.name for b in func.buffer_params]
        record = 1 if kernel_checked(func) else 0
        if len(names) + record > STORAGE_BINDINGS:
            more = " and the record of failed checks" if record else ""
            raise LaunchLimitError(
                f"the kernel has {len(names)} buffers{more}; a WebGPU shader accesses at most "
                f"{STORAGE_BINDINGS}",
                where=f"kernel {func.name!r}",
                hint="fuse fewer operations into one kernel",
                details={"bindings": len(names) + record, "limit": STORAGE_BINDINGS},
                parts=tuple(names),
            )

    @staticmethod
    def _check_update(func: PrimFunc, block: Block) -> None:
        if not isinstance(block.threads, Atomic):
            return
        for store in stores(block.body):
            if store.buffer.dtype.bits != _WORD_BITS:
                raise ShaderError(
                    f"threads update {store.buffer.name!r} of dtype {store.buffer.dtype} "
                    "atomically; WebGPU updates words of 32 bits",
                    where=f"block {block.name!r} of function {func.name!r}",
                    hint="bind only spatial loops to threads, so that one thread owns each element",
                    details={"buffer": store.buffer.name, "dtype": str(store.buffer.dtype)},
                    parts=(block.name,),
                )

    @staticmethod
    def _check_element(func: PrimFunc, element: Element) -> None:
        for problem in _problems(element):
            raise ShaderError(
                f"{problem}; WebGPU shaders have no double precision",
                where=f"kernel {func.name!r}",
                hint="use a function of f32 that needs none, or compile for another target",
            )


def _problems(element: Element) -> Iterator[str]:
    if _is_double(element.dtype):
        yield f"the kernel computes with dtype {element.dtype}"
    match element:
        case Unary(op=op, operand=x) | Binary(op=op, left=x) | Ternary(op=op, first=x):
            if op in MISSING and x.dtype.is_float:
                yield f"function {op!r} of dtype {x.dtype} needs double precision"
        case Cast(dtype=dtype, operand=x) if dtype.is_float and not dtype.is_machine:
            if x.dtype.is_integer and x.dtype.bits > _EXACT_BITS:
                yield f"the conversion from {x.dtype} to {dtype} needs double precision"
        case _:
            pass


def _is_double(dtype: DType) -> bool:
    return dtype.is_inexact and dtype.part.bits == 2 * _WORD_BITS
