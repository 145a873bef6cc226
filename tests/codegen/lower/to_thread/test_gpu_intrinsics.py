"""Tensorized blocks of GPU kernels whose bodies do not match their instructions."""

from __future__ import annotations

import re

import pytest

from tilewright.codegen.lower import lower_kernel, pipeline
from tilewright.ir.kernel_errors import KernelStatementError
from tilewright.ir.loop.nodes import PrimFunc
from tilewright.ir.loop.visit import stores
from tilewright.ir.script import parse
from tilewright.target.target import Target

from tests.codegen.gpu import kernels


@pytest.fixture(scope="module")
def tensorized() -> str:
    """The text of a kernel with warp-level instructions."""
    return str(kernels.tensor_matmul())


def test_a_tensorized_block_that_was_changed(tensorized):
    """The body no longer matches the annotation."""
    text = tensorized.replace("C_pad[vi, vj] += f32(", "C_pad[vi, vj] += f32(2.0) * f32(")
    message = "no longer matches instruction cuda.mma.m16n8k16.f32.f16"
    with pytest.raises(KernelStatementError, match=re.escape(message)):
        lower_kernel(parse(text).prims[0], Target("simt"))


def test_a_fragment_without_a_layout(tensorized):
    text = re.sub(
        r'(C_pad = .* scope="fragment"), layout=.*\)$', r"\1)", tensorized, flags=re.MULTILINE
    )
    assert text != tensorized
    with pytest.raises(KernelStatementError, match="'C_pad' has scope 'fragment' but no layout"):
        lower_kernel(parse(text).prims[0], Target("simt"))


def test_a_tensorized_block_whose_accesses_are_not_proved(tensorized, monkeypatch):
    def unproved(func: PrimFunc) -> frozenset:
        return frozenset((s.buffer, s.indices) for s in stores(func.body))

    monkeypatch.setattr(pipeline, "kernel_checked", unproved)
    with pytest.raises(KernelStatementError, match="its instruction cannot check them"):
        lower_kernel(parse(tensorized).prims[0], Target("simt"))
