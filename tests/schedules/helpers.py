"""Small programs, and checks shared by the tests of primitives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir.script import parse
from tilewright.schedules import Schedule, StepError
from tilewright.schedules.apply import apply, check
from tilewright.schedules.forwarding import followed
from tilewright.schedules.requirement import CommonRequirement

if TYPE_CHECKING:
    from tilewright.ir.module import Module
    from tilewright.schedules import Primitive, Problem
    from tilewright.schedules.requirement import Requirement

MATMUL = """
M = symbols("M", lower=1)

@prim_func
def matmul(A: Buffer[(M, 16), i32], B: Buffer[(16, 24), i32], C: Out[(M, 24), i32]):
    for i in range(M):
        for j in range(24):
            for k in range(16):
                with block("mm"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): C[vi, vj] = 0
                    C[vi, vj] += A[vi, vk] * B[vk, vj]
"""

CHAIN = """
n = symbols("n", lower=0)

@prim_func
def chain(x: Buffer[(n,), i32], y: Out[(n,), i32]):
    t = alloc((n,), i32)
    u = alloc((n,), i32)
    for i in range(n):
        with block("first"):
            vi = spatial(i)
            t[vi] = x[vi] + x[vi]
    for j in range(n):
        with block("second"):
            vj = spatial(j)
            u[vj] = t[vj] * x[vj]
    for k in range(n):
        with block("third"):
            vk = spatial(k)
            y[vk] = u[vk] - x[vk]
"""

SCAN = """
@prim_func
def scan(x: Buffer[(8,), i32], y: Out[(8,), i32]):
    for i in range(7):
        with block("step"):
            vi = ordered(i)
            y[vi + 1] = y[vi] + x[vi]
"""

SAME = """
@prim_func
def same(x: Buffer[(8, 4), i32], y: Out[(8,), i32]):
    for i in range(8):
        for j in range(4):
            with block("last"):
                vi, vj = spatial(i), spatial(j)
                y[vi] = x[vi, vj]
"""


def module(text: str) -> Module:
    return parse(text)


def schedule(text: str) -> Schedule:
    return Schedule(parse(text))


def rejected(
    sch: Schedule, step: Primitive, requirement: Requirement, message: str = ""
) -> Problem:
    """Check that a step violates a requirement, and that every fix is legal and removes that."""
    problems = [p for p in sch.check(step) if p.requirement is requirement]
    assert problems, sch.check(step)
    problem = problems[0]
    assert message in problem.message, problem.message
    assert isinstance(requirement, (type(step).Requires, CommonRequirement))
    assert problem.where or not any(step.handles()), f"{problem.message} has no location"
    try:
        sch.branch().apply(step)
    except StepError as error:
        found = [(p.requirement, p.message) for p in error.problems]  # fixes differ in variables
        assert (requirement, problem.message) in found
    else:
        raise AssertionError(f"{step.title()} was applied")
    for fix in problem.fixes:
        assert sch.check(fix) == (), f"fix {fix.title()} is not legal"
        after = apply(sch.state, fix).state
        if type(fix) is type(step):
            continue
        left = check(after, followed(step, after))
        assert all(p.requirement is not requirement for p in left), (
            f"{fix.title()} does not remove the problem"
        )
    return problem


def accepted(sch: Schedule, *steps: Primitive) -> None:
    """Check that each step is legal at the head, without applying it."""
    for step in steps:
        assert sch.check(step) == (), step.title()
