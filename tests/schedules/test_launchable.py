"""Problems of a launch, and their agreement with lowering."""

from __future__ import annotations

import random
from contextlib import nullcontext
from dataclasses import replace

import pytest

from tilewright.codegen.lower import lower_kernel
from tilewright.codegen.lower.shaders import kernel_shaders
from tilewright.errors import TilewrightError
from tilewright.ir.kernel_errors import KernelProgramError, SharedMemoryError
from tilewright.ir.script import parse
from tilewright.schedules import Schedule, State
from tilewright.schedules.launchable import REQUIREMENTS, Launchable, launch_errors, launchable
from tilewright.schedules.problem import ParameterError
from tilewright.target.target import Target

from tests.benchmarks.harness import count_calls
from tests.benchmarks.steps import MATMUL
from tests.codegen.gpu import kernels
from tests.codegen.gpu.test_random_schedules import PROGRAMS, Walk
from tests.codegen.tensorized import FMA_AVX512

SM_80 = Target("cuda", arch="sm_80")
TARGETS = (SM_80, Target("cuda", arch="sm_75"), Target("cuda", arch="sm_90a"))
HEAD = """
n = symbols("n", lower=1)

@prim_func(scheduled=True)
def f(x: Buffer[({size},), f32], y: Out[({size},), f32]):
"""


def state(body: str, size: str = "64") -> State:
    """Return the state of a scheduled kernel that copies ``x`` to ``y``; it may have races."""
    text = HEAD.format(size=size) + body
    try:
        return State.start(parse(text))
    except TilewrightError:
        return State.start(parse(text, check=False))


def only(body: str, size: str = "64", target: Target = SM_80):
    """Return the only problem of a kernel, after the check that lowering fails for the reason."""
    given = state(body, size)
    (problem,) = given.launchable(target, "f")
    with pytest.raises(KernelProgramError) as caught:
        lower_kernel(given.module.prim("f"), target)
    assert REQUIREMENTS[type(caught.value)] is problem.requirement
    assert caught.value.message == problem.message
    return problem


def fixed(given: State, problem, target: Target = SM_80) -> None:
    """Check that each fix of a problem is legal and removes it."""
    assert problem.fixes
    for fix in problem.fixes:
        sch = Schedule.draft(given)
        sch.apply(fix)
        assert problem.requirement not in {p.requirement for p in sch.launchable(target)}
        lower_kernel(sch.module.prims[0], target)


def test_a_kernel_without_bound_loops():
    body = "    for i in range(64):\n        y[i] = x[i]\n"
    problem = only(body)
    assert problem.requirement is Launchable.BOUND
    fixed(state(body), problem)


def test_a_write_outside_of_the_thread_blocks():
    body = (
        '    for i in thread(32, "blockIdx.x"):\n        y[i] = x[i]\n'
        "    for j in range(32):\n        y[j + 32] = x[j + 32]\n"
    )
    problem = only(body)
    assert problem.requirement is Launchable.BOUND
    assert {w.name for w in problem.where} >= {"i", "y"}
    fixed(state(body), problem)


@pytest.mark.parametrize(
    ("body", "size", "message"),
    [
        (
            (
                '    for i in thread(32, "threadIdx.x"):\n        y[i] = x[i]\n'
                '    for j in thread(16, "threadIdx.x"):\n        y[j + 32] = x[j]\n'
            ),
            "64",
            "extent 32 in one loop and 16 in loop 'j'",
        ),
        ('    for i in thread(n, "threadIdx.x"):\n        y[i] = x[i]\n', "n", "not a constant"),
    ],
)
def test_thread_axes(body, size, message):
    problem = only(body, size)
    assert problem.requirement is Launchable.THREAD_AXIS
    assert message in problem.message
    assert any(w.name in "ij" for w in problem.where)


def test_an_axis_and_the_threads_of_a_block_above_their_limits():
    given = state('    for i in thread(2048, "threadIdx.x"):\n        y[i] = x[i]\n', "2048")
    axis, threads = launchable(given, SM_80)
    assert axis.requirement is threads.requirement is Launchable.LAUNCH_LIMIT
    assert axis.numbers == {"axis": "threadIdx.x", "extent": 2048, "limit": 1024}
    assert threads.numbers == {"threads": 2048, "limit": 1024}
    with pytest.raises(KernelProgramError, match="the limit of sm_80 is 1024"):
        lower_kernel(given.module.prim("f"), SM_80)


def test_a_grid_above_its_limit():
    body = '    for i in thread(70000, "blockIdx.y"):\n        y[i] = x[i]\n'
    problem = only(body, "70000")
    assert problem.numbers == {"axis": "blockIdx.y", "extent": 70000, "limit": 65535}
    assert not accepted_problems(body.replace("blockIdx.y", "blockIdx.x"), "70000")


def accepted_problems(body: str, size: str):
    """Return the problems of a kernel that lowering accepts."""
    given = state(body, size)
    lower_kernel(given.module.prim("f"), SM_80)
    return given.launchable(SM_80, "f")


TILE = """
@prim_func(scheduled=True)
def f(x: Buffer[(64, {size}), f32], y: Out[(64, {size}), f32]):
    for b in thread(64, "blockIdx.x"):
        s = alloc((64, {size}), f32, scope="shared")
        for i in range({size} // 64):
            for t in thread(64, "threadIdx.x"):
                s[b, i * 64 + t] = x[b, i * 64 + t]
        for j in range({size} // 64):
            for u in thread(64, "threadIdx.x"):
                y[b, j * 64 + u] = s[b, {size} - 1 - j * 64 - u]
"""


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("size", [4096, 16384, 24576, 32768, 65536])
def test_shared_memory_has_the_size_that_lowering_computes(target, size):
    given = State.start(parse(TILE.format(size=size), check=False))
    found = given.launchable(target)
    limit = {"sm_75": 64, "sm_80": 163, "sm_90a": 227}[target.arch] * 1024
    assert bool(found) == (4 * size > limit)
    if found:
        assert found[0].requirement is Launchable.SHARED_MEMORY
        assert found[0].numbers["bytes"] == 4 * size
        assert found[0].numbers["limit"] == limit
        assert found[0].where[0].name == "s"
    assert agrees(given.module.prims[0], target)


@pytest.mark.parametrize(("size", "fits"), [(4096, True), (8192, False)])
def test_an_element_of_workgroup_memory_has_whole_words(size, fits):
    """8192 halves have 16 KiB, and 32 KiB in the words of a shader."""
    text = TILE.format(size=size).replace("f32", "f16")
    given, target = State.start(parse(text, check=False)), Target("webgpu")
    found = given.launchable(target)
    assert (not found) == fits
    assert not given.launchable(Target("cuda", arch="sm_80"))
    with nullcontext() if fits else pytest.raises(SharedMemoryError, match="32768 bytes"):
        kernel_shaders(lower_kernel(given.module.prim("f"), target), target)
    if found:
        assert found[0].numbers["bytes"] == 4 * size
        assert found[0].numbers["limit"] == 16 * 1024


def test_partial_results_of_a_reduction_need_shared_memory():
    """The buffer alone fits; the 16 partial results of the warps do not."""
    text = """
    @prim_func(scheduled=True)
    def f(x: Buffer[(512,), f32], z: Buffer[({size},), f32],
          y: Out[(1,), f32], w: Out[({size},), f32]):
        for b in thread(1, "blockIdx.x"):
            s = alloc(({size},), f32, scope="shared")
            for t in thread(512, "threadIdx.x"):
                with block("y"):
                    vt = reduce(t)
                    with init(): y[0] = 0.0
                    y[0] += x[vt]
            for i in range({size} // 512):
                for a in thread(512, "threadIdx.x"):
                    s[i * 512 + a] = z[i * 512 + a]
            for j in range({size} // 512):
                for c in thread(512, "threadIdx.x"):
                    w[j * 512 + c] = s[{size} - 1 - j * 512 - c]
    """
    size = 16384
    func = parse(text.replace("\n    ", "\n").format(size=size), check=False).prims[0]
    (error,) = launch_errors(func, Target("cuda", arch="sm_75"))
    assert error.details["bytes"] == 4 * size + 64
    assert agrees(func, Target("cuda", arch="sm_75"))
    assert not launch_errors(func, SM_80)
    assert agrees(func, SM_80)


def test_a_private_temporary_that_threads_share():
    body = """
    s = alloc((64,), f32, scope="local")
    for t in thread(64, "threadIdx.x"):
        with block("s"):
            vt = spatial(t)
            s[vt] = x[vt]
    for u in thread(64, "threadIdx.x"):
        with block("y"):
            vu = spatial(u)
            y[vu] = s[63 - vu]
"""
    problem = only(body)
    assert problem.requirement is Launchable.MEMORY_SCOPE
    assert [fix.title() for fix in problem.fixes] == ["set_scope(buffer=s, scope='shared')"]
    fixed(state(body), problem)


def test_a_thread_block_that_needs_a_result_of_another_one():
    body = (
        '    for b in thread(64, "blockIdx.x"):\n        y[b] = x[b]\n'
        '    for c in thread(64, "blockIdx.x"):\n        y[c] = y[63 - c]\n'
    )
    assert only(body).requirement is Launchable.MEMORY_SCOPE


def test_a_parallel_loop():
    body = '    for t in thread(8, "threadIdx.x"):\n        for p in parallel(8):\n'
    problem = only(f"{body}            y[t * 8 + p] = x[p]\n")
    assert problem.requirement is Launchable.STATEMENT
    assert [w.name for w in problem.where] == ["p"]


def test_an_instruction_that_the_target_lacks():
    sch, avx2 = FMA_AVX512.scheduled(), Target("cpu", features=("avx2",))
    assert not sch.launchable()
    (problem,) = sch.launchable(avx2)
    assert problem.requirement is Launchable.INSTRUCTION
    assert "requires avx512f, which target" in problem.message
    assert agrees(sch.module.prim("matmul"), avx2)
    assert [fix.verb() for fix in problem.fixes] == ["unannotate"]
    fixed(sch.state, problem, avx2)


def test_an_unknown_function_has_no_launch():
    given = state("    for i in range(64):\n        y[i] = x[i]\n")
    with pytest.raises(ParameterError, match="no loop-level function 'g'"):
        launchable(given, SM_80, "g")


def test_unscheduled_functions_are_checked_on_request():
    sch = Schedule(parse(MATMUL), SM_80)
    assert not sch.launchable()
    assert [p.requirement for p in sch.launchable(function="matmul")] == [Launchable.BOUND]


def test_the_target_of_the_schedule_is_the_default():
    sch = Schedule(parse(MATMUL), "cuda")
    (loop, *_) = sch.get_loops("matmul")
    sch.split(loop, (None, 8))
    assert [p.requirement for p in sch.launchable()] == [Launchable.BOUND]
    assert not sch.launchable("cpu")


def agrees(func, target: Target) -> bool:
    """Return whether the errors of a launch are those of lowering."""
    found = launch_errors(func, target)
    try:
        lower_kernel(func, target)
    except KernelProgramError as error:
        if type(error) in REQUIREMENTS:
            return type(error) in {type(e) for e in found}
        return not found
    return not found


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("name", sorted(kernels.PROGRAMS))
def test_kernels_of_the_corpus(name, target):
    func = kernels.scheduled(name)
    assert agrees(func, target)
    assert not launch_errors(func, SM_80)


@pytest.mark.parametrize("seed", range(16))
def test_random_schedules(seed):
    """Random steps leave kernels unbound, and temporaries in scopes that threads do not share."""
    rng = random.Random(seed)
    walk = Walk(rng.choice(PROGRAMS), rng)
    for _ in range(rng.randint(3, 16)):
        walk.step()
    func = walk.schedule.module.prims[0]
    for target in (SM_80, Target("cpu", features=("avx2",))):
        assert agrees(func, target), str(walk.schedule)


@pytest.mark.parametrize(("outer", "inner", "guard"), [(0, 2, 0), (2, 0, 0), (2, 2, 2), (2, 2, 0)])
def test_a_parallel_loop_is_a_problem_whether_it_is_executed_or_not(outer, inner, guard):
    body = (
        '    for i in thread(32, "blockIdx.x"):\n        y[i] = x[i]\n'
        f"        for j in range({outer}):\n            for k in parallel({inner}):\n"
        '                with block("never"):\n'
        "                    vi, vk = spatial(32, i), spatial(32, k)\n"
        f"                    guard(j >= {guard})\n"
        "                    y[vi] = x[vk]\n"
    )
    assert only(body).requirement is Launchable.STATEMENT
    assert agrees(state(body).module.prim("f"), SM_80)


@pytest.mark.usefixtures("unverified_steps")
def test_the_number_of_calls_of_a_check():
    sch = Schedule(parse(MATMUL), TARGETS[-1])
    sch.default_schedule()
    func = sch.module.prim("matmul")
    launch_errors(replace(func), TARGETS[-1])
    new = replace(func)
    assert count_calls(lambda: launch_errors(new, TARGETS[-1])) < 21_000
