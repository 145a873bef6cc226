"""Ten failing tensorize steps with their error messages and suggested fixes.

``python -m tilewright.schedules.gallery > docs/tensorize-mismatches.md`` writes the committed page.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ..ir.script import parse
from ..target.target import Target
from .apply import prepared
from .forwarding import followed
from .handles import BlockRef
from .intrinsics.mismatch import Match
from .primitives.tensorize.explain import explain_match
from .primitives.tensorize.tensorize import Tensorize
from .problem import Problem, ScheduleError, StepError
from .schedule import Schedule
from .step import Step
from .text import from_python

MOST_STEPS: Final = 6
"""The largest number of fixes applied to one attempt."""


class FixFailedError(ScheduleError):
    """An attempt that is still illegal after the suggested fixes."""

    title = "Suggested fix failed"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A program, its schedule, and an illegal tensorize step.

    Parameters
    ----------
    title : str
        A short description of the mismatch.
    program : str
        The text of the program.
    steps : str
        The trace of the schedule, as Python text.
    target : Target
        The target of the program.
    loop : str
        The name of the loop to tensorize.
    intrinsic : str
        The name of the instruction.
    """

    title: str
    program: str
    steps: str
    target: Target
    loop: str
    intrinsic: str

    def prepared(self) -> Schedule:
        """Return the schedule before the attempt."""
        schedule = Schedule(parse(self.program), self.target)
        schedule.replay(from_python(self.steps)).completed()
        return schedule

    def step(self, schedule: Schedule) -> Tensorize:
        """Return the tensorize step."""
        return prepared(schedule.state, Tensorize(schedule.get_loop(self.loop), self.intrinsic))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an attempt: the comparison, the error, and the fixes.

    Parameters
    ----------
    attempt : Attempt
        The attempt.
    match : Match
        The comparison of program and instruction.
    error : StepError
        The error of the attempt.
    fixes : tuple of Step
        The applied steps, each the first suggested fix; the last one is the tensorize step.
    schedule : Schedule
        The schedule after the fixes.
    block : BlockRef
        The tensorized block.
    """

    attempt: Attempt
    match: Match
    error: StepError
    fixes: tuple[Step, ...]
    schedule: Schedule
    block: BlockRef


def fixed(attempt: Attempt) -> Outcome:
    """Apply the first suggested fix until the attempt is legal, and return the outcome.

    Raises
    ------
    FixFailedError
        If no fix is suggested, or too many fixes are needed.
    """
    schedule = attempt.prepared()
    step = attempt.step(schedule)
    match = explain_match(schedule.state, step.target, step.intrinsic)
    error = StepError(step.title(), schedule.check(step), schedule.module)
    applied: list[Step] = []
    for _ in range(MOST_STEPS):
        problems = schedule.check(step)
        fix = step if not problems else _first(attempt, problems)
        results = schedule.apply(fix).results
        applied.append(fix)
        if isinstance(fix, Tensorize):
            return Outcome(attempt, match, error, tuple(applied), schedule, _block(results))
        step = followed(step, schedule.state)
    raise FixFailedError(f"{attempt.title}: still illegal after {MOST_STEPS} fixes")


def _first(attempt: Attempt, problems: tuple[Problem, ...]) -> Step:
    fix = next((f for p in problems for f in p.fixes), None)
    if fix is None:
        raise FixFailedError(f"{attempt.title}: no fix is suggested for {problems[0].message}")
    return fix


def _block(results: tuple[object, ...]) -> BlockRef:
    for ref in results:
        if isinstance(ref, BlockRef):
            return ref
    raise TypeError("tensorize returned no block")


_F32 = """
M, N, K = symbols("M N K", lower=1)

@prim_func
def matmul(A: Buffer[(M, K), f32], B: Buffer[({b}), f32], C: Out[(M, N), f32]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                with block("mm"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): C[vi, vj] = 0.0
                    C[vi, vj] += A[vi, vk] * B[{at}]
"""
_MATMUL = _F32.format(b="K, N", at="vk, vj")
_LINEAR = _F32.format(b="N, K", at="vj, vk")

_INTEGER = """
M, N, K = symbols("M N K", lower=1)

@prim_func
def matmul(A: Buffer[(M, K), {a}], B: Buffer[(K, N), i8], C: Out[(M, N), i32]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                with block("mm"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): C[vi, vj] = 0
                    C[vi, vj] += i32(A[vi, vk]) * i32(B[vk, vj])
"""

_HALF = """
M, N, K = symbols("M N K", lower=1)

@prim_func
def matmul(A: Buffer[(M, K), f16], B: Buffer[(K, N), f16], C: Out[(M, N), f32]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                with block("mm"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): C[vi, vj] = 0.0
                    C[vi, vj] += f32(A[vi, vk]) * f32(B[vk, vj])
"""

_FETCH = """
@prim_func
def fetch(x: Buffer[(64, 64), f16], y: Out[(64, 64), f16]):
    s = alloc((64, 64), f16, scope="shared")
    f = alloc((64, 64), f16, scope="fragment")
    for a in range(64):
        for b in range(64):
            with block("stage"):
                va, vb = spatial(a), spatial(b)
                s[va, vb] = x[va, vb]
    for i in range(64):
        for j in range(64):
            with block("load"):
                vi, vj = spatial(i), spatial(j)
                f[vi, vj] = s[vi, vj]
    for c in range(64):
        for d in range(64):
            with block("out"):
                vc, vd = spatial(c), spatial(d)
                y[vc, vd] = f[vc, vd]
"""

_AVX512 = Target("cpu", features=("avx512",))
_VNNI = Target("cpu", features=("avx512", "avx512vnni"))
_AVX2 = Target("cpu", features=("avx2",))
_ARM = Target("cpu", arch="aarch64", features=("dotprod",))
_GPU = Target("cuda", arch="sm_80")

_TILE = """
mm = sch.get_block("mm")
i, j, k = sch.get_loops(mm)
i_0, i_1 = sch.split(i, (None, {i}))
j_0, j_1 = sch.split(j, (None, {j}))
sch.reorder((i_0, j_0, k, i_1, j_1))
"""
_STARTED = _TILE + 'sch.decompose_reduction("mm", "k")\n'
_DEEP = """
mm = sch.get_block("mm")
i, j, k = sch.get_loops(mm)
i_0, i_1 = sch.split(i, (None, {i}))
j_0, j_1 = sch.split(j, (None, {j}))
k_0, k_1 = sch.split(k, (None, {k}))
sch.reorder((i_0, j_0, k_0, i_1, j_1, k_1))
sch.decompose_reduction(mm, k_0)
"""
_PADDED = """
mm = sch.get_block("mm")
sch.pad_einsum(mm, (16, 8, 16))
"""

ATTEMPTS: Final = (
    Attempt(
        "A loop with a different extent",
        _MATMUL,
        """
mm = sch.get_block("mm")
i, j, k = sch.get_loops(mm)
j_0, j_1 = sch.split(j, (None, 32))
sch.reorder((j_0, k, i, j_1))
sch.decompose_reduction(mm, k)
""",
        _AVX512,
        "i",
        "avx512.fma.f32.14x32",
    ),
    Attempt(
        "A loop that the instruction does not have",
        _MATMUL,
        _STARTED.format(i=14, j=32)
        .replace("k, i_1, j_1", "i_1, k, j_1")
        .replace('sch.decompose_reduction("mm", "k")', 'sch.decompose_reduction("mm", "i_1")'),
        _AVX512,
        "i_1",
        "avx512.fma.f32.14x32",
    ),
    Attempt(
        "A reduction whose init is not decomposed",
        _MATMUL,
        _TILE.format(i=14, j=32),
        _AVX512,
        "i_1",
        "avx512.fma.f32.14x32",
    ),
    Attempt(
        "Transposed weights",
        _LINEAR,
        _STARTED.format(i=14, j=32),
        _AVX512,
        "i_1",
        "avx512.fma.f32.14x32",
    ),
    Attempt(
        "A copy that is not packed for the instruction",
        _INTEGER.format(a="u8"),
        _DEEP.format(i=14, j=32, k=4) + 'sch.cache_read(mm, "B", "global")\n',
        _VNNI,
        "i_1",
        "avx512vnni.dot.u8i8.14x32",
    ),
    Attempt(
        "An instruction that the target lacks",
        _MATMUL,
        _STARTED.format(i=6, j=16),
        _AVX2,
        "i_1",
        "avx512.fma.f32.14x32",
    ),
    Attempt(
        "Elements of a different dtype",
        _INTEGER.format(a="i8"),
        _DEEP.format(i=6, j=16, k=4)
        + 'sch.cache_read(mm, "B", "global", lambda a, b: (a // 4, b // 16, b % 16, a % 4))\n',
        _ARM,
        "i_1",
        "avx2.dot.u8i8.6x16",
    ),
    Attempt(
        "Operands that are not in fragments",
        _HALF,
        _PADDED + _DEEP.format(i=16, j=8, k=16) + 'sch.set_scope("C_pad", "fragment")\n',
        _GPU,
        "i_1",
        "cuda.mma.m16n8k16.f32.f16",
    ),
    Attempt(
        "A guard inside a warp's tile",
        _HALF,
        _DEEP.format(i=16, j=8, k=16).replace(
            "sch.decompose", 'sch.cache_write(mm, "C", "fragment")\nsch.decompose'
        )
        + 'sch.cache_read(mm, "A", "fragment")\n'
        + 'sch.cache_read(mm, "B", "fragment")\n',
        _GPU,
        "i_1",
        "cuda.mma.m16n8k16.f32.f16",
    ),
    Attempt(
        "An instruction with different semantics",
        _FETCH,
        """
load = sch.get_block("load")
i, j = sch.get_loops(load)
i_0, i_1 = sch.split(i, (None, 16))
j_0, j_1 = sch.split(j, (None, 8))
sch.reorder((i_0, j_0, i_1, j_1))
""",
        _GPU,
        "i_1",
        "cuda.fill.f16.16x8",
    ),
)
"""One attempt per kind of mismatch, and two more for extents and layouts."""


_HEAD = """# When a tensor instruction does not fit

Ten illegal `tensorize` steps. Each section shows the program beside the semantics of the
instruction, the error message, the steps that make `tensorize` legal, and the tensorized block. The
numbers in the left column mark the lines that differ; they count the problems of the error message.
`strides (?)` means that any stride is legal. Each applied step is the first suggested fix. The
workbench shows the same comparison when the step is chosen from its menu.

Generated by `python -m tilewright.schedules.gallery`: do not edit.
"""


def page() -> str:
    """Return the page, with one section per attempt."""
    parts = [_HEAD]
    for number, attempt in enumerate(ATTEMPTS, 1):
        parts.append("\n".join(_section(number, fixed(attempt))))
    return "\n".join(parts)


def _section(number: int, outcome: Outcome) -> Iterator[str]:
    attempt = outcome.attempt
    yield f"## {number}. {attempt.title}"
    yield ""
    yield f"`{attempt.intrinsic}` at loop `{attempt.loop}` on `{attempt.target}`:"
    yield from _fenced("text", outcome.match.table())
    yield "The error message:"
    yield from _fenced("text", str(outcome.error))
    yield "The fixes:"
    yield from _fenced("python", "\n".join(f"sch.{fix.title()}" for fix in outcome.fixes))
    yield "The result:"
    yield from _fenced("python", _block_text(outcome))


def _fenced(language: str, text: str) -> Iterator[str]:
    yield from ("", f"```{language}", text, "```", "")


def _block_text(outcome: Outcome) -> str:
    """Return the text of the tensorized block."""
    lines = str(outcome.schedule).splitlines()
    name = outcome.schedule.state.block(outcome.block).name
    start = next(k for k, line in enumerate(lines) if f'with block("{name}"' in line)
    depth = _depth(lines[start])
    inside = [lines[start]]
    for line in lines[start + 1 :]:
        if _depth(line) <= depth:
            break
        inside.append(line)
    return "\n".join(line[depth:] for line in inside)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


if __name__ == "__main__":
    sys.stdout.write(page())
