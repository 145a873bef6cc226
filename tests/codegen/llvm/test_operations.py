"""Operations of single machines: none without a handler, each selected by LLVM."""

from __future__ import annotations

import pytest

from tilewright.codegen.llvm import assembly, emit_module
from tilewright.codegen.llvm.operations import HANDLERS
from tilewright.ir.target import Target
from tilewright.ir.thread.nodes import Perform, Reg, Return, ThreadFunc
from tilewright.ir.thread.operations import OPERATIONS

X86 = [op for op in OPERATIONS.values() if op.name.startswith("x86.")]


def test_every_operation_has_a_handler() -> None:
    assert set(HANDLERS) == set(OPERATIONS)


@pytest.mark.parametrize("operation", X86, ids=lambda op: op.name)
def test_operation_becomes_its_instruction(operation) -> None:
    params = tuple(Reg(f"a{k}", t) for k, t in enumerate(operation.operands))
    results = tuple(Reg(f"r{k}", t) for k, t in enumerate(operation.results))
    function = ThreadFunc(
        "f", params, (Perform(operation, params, results), Return(results[0])), results[0].type
    )
    extra = ("avx512vnni", "avx512bf16")
    text = emit_module([function], Target("cpu", features=("avx512", *extra)))
    assert operation.name.split(".")[1] in assembly(
        text, Target("cpu", features=("avx512", *extra))
    )
