"""Errors about kernels show the scheduled kernel; internal errors ask for a report."""

from __future__ import annotations

import pytest

from tilewright.codegen import compile
from tilewright.codegen.lower import lower_kernel
from tilewright.ir.kernel_errors import (
    KernelProgramError,
    KernelStatementError,
    LaunchLimitError,
    MemoryScopeError,
    ThreadAxisError,
    UnboundKernelError,
    shown_in,
)
from tilewright.ir.script import parse
from tilewright.target.target import Target

GPU = Target("cuda", arch="sm_80")
HEAD = """n = symbols("n", lower=1)
@prim_func
def f(x: Buffer[(n,), f32], t: InOut[(n,), f32], y: Out[(n,), f32]):
"""

KERNELS = [
    (
        'for i in thread(2048, "threadIdx.x"): y[i] = x[i]',
        LaunchLimitError,
        'for i in thread(2048, "threadIdx.x"):\n      |         ^\n',
    ),
    (
        'for i in thread(n, "threadIdx.x"): y[i] = x[i]',
        ThreadAxisError,
        'for i in thread(n, "threadIdx.x"):\n      |         ^\n',
    ),
    (
        (
            'for i in thread(4, "threadIdx.x"): y[i] = x[i]\n'
            '    for j in thread(8, "threadIdx.x"): y[j] = x[j]'
        ),
        ThreadAxisError,
        'for j in thread(8, "threadIdx.x"):\n       |         ^\n',
    ),
    (
        'for i in thread(n, "blockIdx.x"):\n        for j in parallel(1): y[i] = x[i]',
        KernelStatementError,
        "for j in parallel(1):\n      |             ^\n",
    ),
    (
        (
            'for i in thread(n, "blockIdx.x"): t[i] = x[i]\n'
            '    for j in thread(n, "blockIdx.x"): y[j] = t[n - 1 - j]'
        ),
        MemoryScopeError,
        'for j in thread(n, "blockIdx.x"):\n       |         ^\n',
    ),
    (
        "for i in range(n): y[i] = x[i]",
        UnboundKernelError,
        "for i in range(n):\n      |         ^\n",
    ),
]


@pytest.mark.parametrize(
    ("body", "kind", "lines"),
    KERNELS,
    ids=[f"{k.__name__}-{i}" for i, (_, k, _) in enumerate(KERNELS)],
)
def test_the_parts_at_fault_are_underlined(body: str, kind: type, lines: str) -> None:
    kernel = parse(f"{HEAD}    {body}").prim("f")
    with pytest.raises(kind) as caught:
        lower_kernel(kernel, GPU)
    assert isinstance(caught.value, KernelProgramError)
    assert lines in str(caught.value)
    assert caught.value.hint


def test_compile_shows_the_scheduled_kernel() -> None:
    module = parse(f'{HEAD}    for i in thread(2048, "threadIdx.x"): y[i] = x[i]')
    with pytest.raises(LaunchLimitError, match=r"threadIdx\.x has extent 2048") as caught:
        compile(module, GPU)
    assert caught.value.to_json()["excerpts"]


def test_without_parts_the_name_of_the_function_is_underlined() -> None:
    kernel = parse(HEAD + "    for i in range(n): y[i] = x[i]").prim("f")
    with pytest.raises(KernelProgramError) as caught, shown_in(kernel):
        raise KernelProgramError("bad", parts=("missing",))
    assert "def f(" in str(caught.value)
    assert KernelProgramError("bad").excerpts() == ()
