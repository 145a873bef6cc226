"""CPU time of schedule steps on a function of 100 blocks in 200 loops, and of replays.

Run as ``python -m tests.benchmarks.steps [--loops N] [--json FILE]``. Each step is applied through
its method, which includes the check, the trace, and the version history. The default schedule of a
matrix product is replayed on a new state each time, so that no fact of an earlier replay is known.
The problems of its launch and its search features are computed on a new function each time.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import thread_time_ns
from typing import Any, TypedDict, cast

from tilewright.ir.analysis.search_features import search_features
from tilewright.ir.module import Module
from tilewright.ir.script import parse
from tilewright.schedules import Schedule, State, replay
from tilewright.schedules.launchable import launch_errors
from tilewright.target.target import Target

from tests.benchmarks.harness import write_json

LOOPS = 200
"""The number of loops of the function: two per block."""


class Result(TypedDict):
    """Times of one kind of step in milliseconds."""

    count: int
    median: float
    p95: float
    worst: float


def program(loops: int = LOOPS) -> Module:
    """Return a function of ``loops // 2`` element-wise blocks, each the input of the next."""
    count = loops // 2
    lines = ['n = symbols("n", lower=1)\n\n@prim_func']
    lines += ["def f(x: Buffer[(n, 64), f32], y: Out[(n, 64), f32]):"]
    lines += [f"    t{k} = alloc((n, 64), f32)" for k in range(count - 1)]
    for k in range(count):
        source, target = f"t{k - 1}" if k else "x", f"t{k}" if k + 1 < count else "y"
        lines += [
            f"    for i{k} in range(n):",
            f"        for j{k} in range(64):",
            f'            with block("b{k}"):',
            f"                vi{k}, vj{k} = spatial(i{k}), spatial(j{k})",
            f"                {target}[vi{k}, vj{k}] = {source}[vi{k}, vj{k}] + 1.0",
        ]
    return parse("\n".join(lines) + "\n")


def apply_steps(loops: int, call: Callable[..., Any]) -> None:
    """Apply steps of all families of loop-level steps to a fifth of the blocks each.

    Parameters
    ----------
    loops : int
        The number of loops of the function.
    call : callable
        Applies a step: called with its method and the arguments, returns its results.
    """
    sch = Schedule(program(loops))
    for k in range(0, loops // 2 - 4, 5):
        i, j = call(sch.get_loops, f"b{k}")
        outer, inner = call(sch.split, i, (None, 8))
        left, right = call(sch.split, j, (None, 16))
        call(sch.reorder, (outer, left, inner, right))
        call(sch.vectorize, right)
        call(sch.unroll, inner)
        call(sch.parallel, call(sch.fuse, call(sch.get_loops, f"b{k + 1}")))
        call(sch.compute_inline, f"b{k + 2}")
        call(sch.cache_read, f"b{k + 3}", f"t{k + 1}", "local")
        call(sch.compute_at, f"b{k + 3}", call(sch.get_loops, f"b{k + 4}")[0])


class Replays(TypedDict):
    """Replays of the default schedule of a matrix product on one core."""

    steps: int
    milliseconds: float
    replays_per_second: float
    steps_per_second: float


MATMUL = """
@prim_func
def matmul(A: Buffer[(128, 256), f32], B: Buffer[(256, 512), f32], C: Out[(128, 512), f32]):
    for i in range(128):
        for j in range(512):
            for k in range(256):
                with block("matmul"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): C[vi, vj] = 0.0
                    C[vi, vj] += A[vi, vk] * B[vk, vj]
"""
TARGETS = {
    "cpu": Target("cpu", features=("avx512",)),
    "gpu": Target("cuda", arch="sm_90a"),
}
"""The targets whose default schedules are replayed."""


def measure_replays(
    repeats: int = 40, clock: Callable[[], int] = thread_time_ns
) -> dict[str, Replays]:
    """Return the median time of a replay of each default schedule, with all checks."""
    return {name: _replays(target, repeats, clock) for name, target in TARGETS.items()}


def _replays(target: Target, repeats: int, clock: Callable[[], int]) -> Replays:
    sch = Schedule(parse(MATMUL), target)
    sch.default_schedule()
    times: list[float] = []
    for _ in range(repeats + 3):
        state = State.start(parse(MATMUL), target)
        start = clock()
        replay(state, sch.trace).completed()
        times.append((clock() - start) / 1e6)
    median, count = statistics.median(times[3:]), len(sch.trace)
    return {
        "steps": count, "milliseconds": median, "replays_per_second": 1e3 / median,
        "steps_per_second": 1e3 * count / median,
    }  # fmt: skip


class Evaluation(TypedDict):
    """Times of the checks and the features of one kernel in milliseconds."""

    launchable: float
    features: float
    total: float


def measure_evaluations(
    repeats: int = 40, clock: Callable[[], int] = thread_time_ns
) -> dict[str, Evaluation]:
    """Return the median times of launchability and search features of the scheduled matmul.

    The function is a new object each time, so that no fact about it is known.
    """
    found: dict[str, Evaluation] = {}
    for name, target in TARGETS.items():
        sch = Schedule(parse(MATMUL), target)
        sch.default_schedule()
        func = sch.module.prim("matmul")
        times: list[list[float]] = [[], []]
        calls = (lambda f, t=target: launch_errors(f, t), lambda f: search_features(f, {}))
        for _ in range(repeats):
            new = replace(func)
            for own, call in zip(times, calls, strict=True):
                start = clock()
                call(new)
                own.append((clock() - start) / 1e6)
        first, second = map(statistics.median, times)
        found[name] = {"launchable": first, "features": second, "total": first + second}
    return found


def measure(loops: int = LOOPS, clock: Callable[[], int] = thread_time_ns) -> dict[str, Result]:
    """Return the times of the steps by kind, and of all steps together under ``all``."""
    times: dict[str, list[float]] = {}

    def call(method: Callable[..., object], *arguments: object) -> object:
        start = clock()
        result = method(*arguments)
        name = cast("str", cast("Any", method).__name__)
        times.setdefault(name, []).append((clock() - start) / 1e6)
        return result

    apply_steps(min(loops, 20), lambda method, *arguments: method(*arguments))  # warm up
    apply_steps(loops, call)
    times["all"] = [t for found in times.values() for t in found]
    return {name: _result(found) for name, found in times.items()}


def _result(times: list[float]) -> Result:
    last = statistics.quantiles(times, n=20)[-1] if len(times) > 1 else times[0]
    return {
        "count": len(times), "median": statistics.median(times), "p95": last, "worst": max(times),
    }  # fmt: skip


def main() -> None:
    """Print the times, and write them as JSON on request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loops", type=int, default=LOOPS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = measure(options.loops)
    print(f"{'step':24} {'count':>6} {'median':>8} {'p95':>8} {'worst':>8}  (ms of CPU time)")
    for name, found in results.items():
        times = f"{found['median']:8.2f} {found['p95']:8.2f} {found['worst']:8.2f}"
        print(f"{name:24} {found['count']:6} {times}")
    replays = measure_replays()
    print(f"\n{'default matmul':24} {'steps':>6} {'ms':>8} {'replays/s':>10} {'steps/s':>8}")
    for name, kind in replays.items():
        rates = f"{kind['replays_per_second']:10.0f} {kind['steps_per_second']:8.0f}"
        print(f"{name:24} {kind['steps']:6} {kind['milliseconds']:8.2f} {rates}")
    evaluations = measure_evaluations()
    print(f"\n{'scheduled matmul':24} {'launchable':>10} {'features':>9} {'total':>6}  (ms)")
    for name, own in evaluations.items():
        print(f"{name:24} {own['launchable']:10.2f} {own['features']:9.2f} {own['total']:6.2f}")
    if options.json is not None:
        found = {
            "loops": options.loops, "steps": results, "replays": replays,
            "evaluations": evaluations,
        }  # fmt: skip
        write_json(options.json, found)


if __name__ == "__main__":
    main()
