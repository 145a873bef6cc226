"""Barriers between conflicting accesses of the threads of a block."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.codegen.lower.thread_passes import insert_barriers
from tilewright.codegen.lower.thread_passes.insert_barriers import InsertBarriers
from tilewright.ir.kernel_errors import AsyncOperationError, DivergentBarrierError
from tilewright.ir.script import parse
from tilewright.ir.symbolic import as_expr, eq, is_proved, var
from tilewright.ir.thread.nodes import (
    Address,
    Allocate,
    Barrier,
    Compare,
    Const,
    If,
    Load,
    Loop,
    MachineOp,
    Predicate,
    Reg,
    Source,
    Store,
    While,
)
from tilewright.ir.thread.operations import Effect, Operation
from tilewright.ir.thread.text import to_text
from tilewright.ir.thread.types import GLOBAL_POINTER, POINTER, SHARED_POINTER
from tilewright.ir.thread.visit import walk
from tilewright.target.target import Target

from tests.codegen.arrays import data
from tests.codegen.gpu.running import agrees, artifact_of, launch, program
from tests.codegen.lower.thread_passes import rows
from tests.codegen.lower.thread_passes.exchanges import PROGRAMS
from tests.codegen.lower.thread_passes.kernels import READ, WORD, WRITE, S, X, Y, kernel

I, N = var("i", lower=0), var("n", lower=1)
OWN = Store(Address(Y, X * 4, 4), Load(WORD, Address(S, X * 4, 4)))
"""Each thread reads its own element."""

SIMT = Target("simt")


def rounds(stop=N, body=(WRITE, READ)):
    """Return a loop over a body."""
    return Loop(I, as_expr(0), stop, tuple(body))


def barriers(*body, extents=(64,)):
    """Return the number of barriers that a kernel gets."""
    func = InsertBarriers().run(kernel(*body, extents=extents), SIMT)
    return sum(isinstance(s, Barrier) for s in walk(func.body))


def test_golden(golden):
    """One barrier after the write of a round, and one before the write of the next round."""
    func = kernel(rounds())
    func = replace(func, params=(*func.params, N))
    after = InsertBarriers().run(func, SIMT)
    golden(
        "insert_barriers.txt", f"{to_text(func)}\n-- after insert_barriers --\n\n{to_text(after)}"
    )


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ((WRITE, READ), 1),
        ((READ, WRITE), 1),
        ((WRITE, READ, READ), 1),
        ((WRITE, READ, WRITE), 2),
        ((WRITE, OWN), 0),
        ((READ, READ), 0),
        ((WRITE, Barrier("block"), READ), 1),
        ((rounds(),), 2),
        ((rounds(body=(WRITE, OWN)),), 0),
        ((rounds(body=(WRITE,)), rounds(body=(READ,))), 1),
        ((WRITE, If(Predicate(N < 8), (READ,), (OWN,))), 1),
    ],
)
def test_conflicts(body, count):
    assert barriers(*body) == count


FIRST = Compare("ne", Load(WORD, Address(S, as_expr(0), 4)), Const(0, WORD))
"""A condition that every thread reads from one element of shared memory."""

CHOSEN = If(FIRST, (Store(Address(Y, X * 4, 4), Const(1, WORD)),))
CLEAR = If(Predicate(eq(X, 0)), (Store(Address(S, as_expr(0), 4), Const(0, WORD)),))


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        ((CLEAR, CHOSEN), ["If", "Barrier", "If"]),
        ((CLEAR, If(Predicate(X < 32), (CHOSEN,))), ["If", "Barrier", "If"]),
        ((CLEAR, rounds(body=(CHOSEN,))), ["If", "Barrier", "Loop"]),
        ((CHOSEN, CLEAR), ["If", "Barrier", "If"]),
        ((CHOSEN, CHOSEN), ["If", "If"]),
        ((WRITE, While(FIRST, (CLEAR,))), ["Store", "Barrier", "While"]),
    ],
)
def test_conditions_read_memory(body, shape):
    made = InsertBarriers().run(kernel(*body), SIMT).body
    assert [type(s).__name__ for s in made[1:]] == shape


def test_writes_in_a_branch_wait_for_its_condition():
    """Other threads may still read the condition when one of them enters the branch."""
    assert barriers(If(FIRST, (CLEAR,))) == 1


def test_a_condition_waits_for_the_writes_of_the_previous_iteration():
    made = InsertBarriers().run(kernel(While(FIRST, (CLEAR,))), SIMT).body
    assert [type(s).__name__ for s in made[1].body] == ["Barrier", "If", "Barrier"]
    assert barriers(rounds(body=(CHOSEN, CLEAR))) == 2


def test_a_condition_in_private_memory_is_divergent():
    own = Reg("own", POINTER)
    varying = Compare("ne", Load(WORD, Address(own, as_expr(0), 4)), Const(0, WORD))
    body = (Allocate(own, 4), Store(Address(own, as_expr(0), 4), Load(WORD, Address(Y, X * 4, 4))))
    with pytest.raises(DivergentBarrierError, match="control flow is divergent"):
        InsertBarriers().run(kernel(*body, If(varying, (WRITE, READ))), SIMT)


SELECTED = """
@prim_func(scheduled=True)
def selected(x: Buffer[(16,), f32], p: Buffer[(1,), i32], y: Out[(16,), f32]):
    s = alloc((1,), i32, scope="shared")
    with block("copy"):
        vo = spatial(1, 0)
        s[vo] = p[vo]
    for i in thread(16, "threadIdx.x"):
        with block("use"):
            vi = spatial(i)
            y[vi] = where(s[0] == vi, copysign(x[vi], -x[vi]), f32(0))
"""


def test_a_branch_on_an_element_that_another_thread_wrote():
    """A selected value is computed in a branch, so that its condition is a load."""
    func = program(SELECTED)
    x, y = np.arange(1, 17, dtype=np.float32), np.zeros(16, np.float32)
    artifact = artifact_of(func)
    assert any(isinstance(s, If) for s in walk(artifact.function.body))
    report = launch(artifact, [x, np.array([3], np.int32), y], {})
    assert not report.findings
    assert y.tolist() == [-4.0 if k == 3 else 0.0 for k in range(16)]


def test_the_cost_of_copies_of_statements_is_linear():
    """Unrolled loops make hundreds of copies; two reads or two copies need no comparison."""

    def calls(copies):
        count = 0

        def counted(frame, event, argument):
            nonlocal count
            count += event == "call"

        body = [
            Store(Address(Y, X * 4 + 256 * k, 4), Load(WORD, Address(S, X * 4 + 256 * k, 4)))
            for k in range(copies)
        ]
        func = kernel(*body)
        sys.setprofile(counted)
        try:
            InsertBarriers(disjoint=frozenset()).run(func, SIMT)
        finally:
            sys.setprofile(None)
        return count

    calls(200)
    assert calls(200) < 2.5 * calls(100)


def test_a_block_of_one_thread_needs_no_barrier():
    func = kernel(WRITE, READ, extents=(1,))
    assert InsertBarriers().run(func, SIMT) is func


def test_a_barrier_is_hoisted_out_of_a_divergent_branch():
    """The conflicting write is before the branch, where all threads are."""
    body = InsertBarriers().run(kernel(WRITE, If(Predicate(X < 32), (READ,))), SIMT).body
    assert [type(s).__name__ for s in body] == ["Allocate", "Store", "Barrier", "If"]


def test_writes_of_one_thread():
    first = Store(Address(S, as_expr(0), 4), Const(1, WORD))
    only = If(Predicate(eq(X, 0)), (first,))
    everywhere = Store(Address(Y, X * 4, 4), Load(WORD, Address(S, as_expr(0), 4)))
    assert barriers(only, only) == 0
    assert barriers(only, everywhere) == 1


@pytest.mark.parametrize(
    "body",
    [If(Predicate(X < 32), (WRITE, READ)), rounds(X + 1, (READ, WRITE))],
    ids=["branch", "loop"],
)
def test_a_barrier_that_some_threads_would_not_reach(body):
    message = "a barrier is required between .*, but control flow is divergent"
    with pytest.raises(DivergentBarrierError, match=message) as caught:
        InsertBarriers().run(kernel(body), SIMT)
    assert caught.value.details == {"buffer": "s"}


COPY = Operation(
    "test.copy.async",
    "thread",
    (SHARED_POINTER, GLOBAL_POINTER),
    (),
    effects=(
        Effect("read", 1, 16, "global", "completion"),
        Effect("write", 0, 16, "shared", "completion"),
    ),
)
"""A copy that accesses memory some time after its issue."""


@pytest.mark.parametrize("extent", [1, 64])
def test_an_operation_that_accesses_memory_at_its_completion(extent):
    """One thread alone would also need a wait before it reads the copy."""
    copy = MachineOp(COPY, (S, Y), source=Source(name="C"))
    message = (
        "operation 'test.copy.async' reads 16 bytes of global memory .operand 1., writes 16 bytes "
        "of shared memory .operand 0. at its completion"
    )
    with pytest.raises(AsyncOperationError, match=message) as caught:
        InsertBarriers().run(kernel(rounds(body=(copy, READ)), extents=(extent,)), SIMT)
    assert caught.value.where == "block 'C' of kernel 'k'"
    assert caught.value.details == {"operation": "test.copy.async", "operands": [1, 0]}
    at_issue = replace(COPY, effects=tuple(replace(e, moment="issue") for e in COPY.effects))
    InsertBarriers().run(kernel(replace(copy, operation=at_issue), READ), SIMT)


def test_hundreds_of_unrolled_stores_need_few_proofs(monkeypatch):
    """Only the first pairs of each difference between addresses reach a prover."""
    asked = []

    def counted(claim, facts):
        asked.append(claim)
        return is_proved(claim, facts)

    monkeypatch.setattr(insert_barriers, "is_proved", counted)
    stride = var("stride", lower=1)
    stores = [
        Store(Address(S, (I * 16384 + k * 64 + X) * 4, 4), Load(WORD, Address(Y, X * 4, 4)))
        for k in range(256)
    ]
    assert barriers(rounds(body=stores)) == 0
    assert len(asked) <= 2
    stores = [
        Store(Address(S, (I * stride * 64 + k * 64 + X) * 4, 4), Load(WORD, Address(Y, X * 4, 4)))
        for k in range(256)
    ]
    assert barriers(rounds(body=stores)) == 0
    assert len(asked) <= 2


def test_the_number_of_proofs_is_limited(monkeypatch):
    """A pair that is not decided gets a barrier, which is always correct."""
    asked = []
    monkeypatch.setattr(insert_barriers, "is_proved", lambda claim, _: asked.append(claim) or True)
    monkeypatch.setattr(insert_barriers, "MAX_PROOFS", 3)
    strides = [var(f"stride_{k}", lower=1) for k in range(8)]
    stores = [Store(Address(S, (X * s) * 4, 4), Const(1, WORD)) for s in strides]
    assert barriers(*stores[:3]) == 0
    assert len(asked) == 3
    asked.clear()
    assert barriers(*stores) == 5
    assert len(asked) == 3


def without_barriers(body):
    """Return a body of statements without barriers."""
    kept = [s for s in body if not isinstance(s, Barrier)]
    return tuple(
        replace(s, body=without_barriers(s.body)) if isinstance(s, Loop) else s for s in kept
    )


@pytest.mark.parametrize(("count", "text"), PROGRAMS.values(), ids=PROGRAMS)
def test_programs_are_free_of_races(count, text):
    """The race detector finds nothing with the barriers, and a race without them."""
    func = program(text)
    artifact = artifact_of(func)
    assert sum(isinstance(s, Barrier) for s in walk(artifact.function.body)) == count
    agrees(func, func, {"n": 5})
    bare = replace(artifact.function, body=without_barriers(artifact.function.body))
    report = launch(replace(artifact, function=bare), data(func, {"n": 5}), {"n": 5})
    assert any("race" in str(finding) for finding in report.findings)


TRIANGLES = """
n = symbols("n", lower=0)

@prim_func
def f(A: Buffer[(n, n), f32], B: Buffer[(n, n), f32], C: InOut[(n, n), f32]):
    for i in range(n):
        for j in range(i + 1):
            for k in range(i - j + 1):
                with block("C"):
                    vi, vj, vk = spatial(i), spatial(n, j), reduce(n, j + k)
                    with init(): C[vi, vj] = 0.0
                    C[vi, vj] += A[vi, vk] * B[vk, vj]
"""


def test_threads_with_a_row_each_need_no_barrier_in_their_triangles():
    kernel = compile(parse(TRIANGLES), "simt")["f"]
    for n in (0, 1, 2, 3, 7, 17):
        a, b = np.tril(np.random.default_rng(n).standard_normal((2, n, n))).astype(np.float32)
        c = np.zeros((n, n), np.float32)
        kernel(a, b, c)
        np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("text", rows.PROGRAMS.values(), ids=rows.PROGRAMS)
def test_threads_with_their_own_rows_need_no_barrier(text):
    """The race detector finds nothing at sizes around the number of threads."""
    func = program(text)
    assert not any(isinstance(s, Barrier) for s in walk(artifact_of(func).function.body))
    for n, m in ((1, 0), (1, 1), (3, 2), (7, 13)):
        agrees(func, func, {"n": n, "m": m})


NEIGHBORS = rows.GUARDED.replace(
    "where(vj >= 1, y[vi, vj - 1], 0.0)", "where(vi >= 1, y[vi - 1, vj], 0.0)"
)


def test_rows_of_other_threads_need_a_barrier():
    """Without the proof, the barrier would be in divergent control flow."""
    func = parse(NEIGHBORS, check=False).prim("f")
    with pytest.raises(DivergentBarrierError, match="read of 'y' in block 'scan'"):
        artifact_of(func)
