"""What this machine's processor can do at most, measured: one instruction, registers alone."""

from __future__ import annotations

import ctypes
import statistics
from time import perf_counter

LOOPS = 200_000
"""Rounds of the loop; a call takes milliseconds."""

ACCUMULATORS = 24


def peak_operations(kind: str) -> float:
    """Measure the operations a second (a multiply and an add are two) of an instruction.

    Parameters
    ----------
    kind : str
        ``"fma"`` (f32), ``"vpdpbusd"`` (u8 times s8), ``"vdpbf16ps"``.
    """
    from tilewright.codegen.cpu import with_level
    from tilewright.codegen.llvm import compile_text, emit_module
    from tilewright.codegen.runtime.loader import Library
    from tilewright.ir.target import Target

    target = with_level(Target("cpu", threads=1))
    function, operations = _kernel(kind)
    library = Library([compile_text(emit_module([function], target), target)], target)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(library.address("peak"))
    out = (ctypes.c_char * 64)()
    times: list[float] = []
    for _ in range(15):
        start = perf_counter()
        run(ctypes.addressof(out), LOOPS)
        times.append(perf_counter() - start)
    return operations * ACCUMULATORS * LOOPS / statistics.median(sorted(times)[:5])


def _kernel(kind: str):
    """Write a loop of independent instructions, and the operations in one of them."""
    from tilewright.ir.dtype import bf16, f32, i8, i32, u8
    from tilewright.ir.symbolic import as_expr, var
    from tilewright.ir.thread.nodes import (
        Address,
        Assign,
        Binary,
        Fma,
        Loop,
        Perform,
        Reg,
        Return,
        Store,
        ThreadFunc,
    )
    from tilewright.ir.thread.operations.x86 import VDPBF16PS_512, VPDPBUSD_512
    from tilewright.ir.thread.types import POINTER, VectorType

    kinds = {
        "fma": (VectorType(f32, 16), (VectorType(f32, 16),) * 2, None, 32),
        "vpdpbusd": (
            VectorType(i32, 16),
            (VectorType(u8, 64), VectorType(i8, 64)),
            VPDPBUSD_512,
            128,
        ),
        "vdpbf16ps": (VectorType(f32, 16), (VectorType(bf16, 32),) * 2, VDPBF16PS_512, 64),
    }
    of, inputs, operation, operations = kinds[kind]
    out, rounds, turn = Reg("out", POINTER), var("rounds", lower=0), var("turn", lower=0)
    totals = [Reg(f"t{k}", of) for k in range(ACCUMULATORS)]
    a, b = (Reg(name, t) for name, t in zip("ab", inputs, strict=True))
    zero = as_expr(0)

    def read(reg: Reg):
        from tilewright.ir.thread.nodes import Load

        return Assign(reg, Load(reg.type, Address(out, zero)))

    def step(total: Reg):
        if operation is None:
            return Assign(total, Fma(a, b, total))
        return Perform(operation, (total, a, b), (total,))

    final = totals[0]
    folds = [Assign(final, Binary("add", final, t)) for t in totals[1:]]
    body = (
        *(read(r) for r in (a, b, *totals)),
        Loop(turn, zero, rounds, tuple(step(t) for t in totals)),
        *folds,
        Store(Address(out, zero), final),
        Return(),
    )
    return ThreadFunc("peak", (out, rounds), body), operations
