"""Reductions by declared reducers: a part of ``tests.benchmarks.reducers``.

``argmax`` is the graph operator; the moments and the row of an attention are programs in text. All
are scheduled by the default rules. The peers of the attention make three passes: softmax, product,
sum. The column ``call`` is the time of a call with one element, which is a part of every time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from .harness import interleaved, table
from .quantized import BANDWIDTH_GOAL, PEER_GOAL, memory_runs, read_bandwidth

Figures: TypeAlias = dict[str, object]

SHAPES = ((1, 10**4), (1, 10**5), (1, 10**6), (1, 10**7), (4096, 1024))

FROM_MEMORY = 8 << 20
"""The bytes from which on operands are measured together with readers of other memory."""

ARGMAX = """
n, m = symbols("n m", lower=1)

@graph_func
def main(x: Tensor[(n, m), f32]):
    y = argmax(x, axis=-1)
    return y
"""

WELFORD = """
n, m = symbols("n m", lower=1)

@prim_func
def moments(x: Buffer[(n, m), f32], mean: Out[(n,), f32], variance: Out[(n,), f32]):
    c = alloc((n,), f32)
    square = alloc((n,), f32)
    for i in range(n):
        for k in range(m):
            with block("reduce"):
                vi, vk = spatial(i), reduce(k)
                with init(): c[vi], mean[vi], square[vi] = 0.0, 0.0, 0.0
                c[vi], mean[vi], square[vi] = welford(1.0, x[vi, vk], 0.0)
    for j in range(n):
        with block("divide"):
            vj = spatial(j)
            variance[vj] = square[vj] / c[vj]
"""

ATTENTION = """
n, m = symbols("n m", lower=1)

@prim_func
def attention(x: Buffer[(n, m), f32], v: Buffer[(m,), f32], y: Out[(n,), f32]):
    top = alloc((n,), f32)
    total = alloc((n,), f32)
    weighted = alloc((n,), f32)
    for i in range(n):
        for k in range(m):
            with block("reduce"):
                vi, vk = spatial(i), reduce(k)
                with init(): top[vi], total[vi], weighted[vi] = -inf, 0.0, 0.0
                top[vi], total[vi], weighted[vi] = online_softmax(x[vi, vk], 1.0, v[vk])
    for j in range(n):
        with block("divide"):
            vj = spatial(j)
            y[vj] = weighted[vj] / total[vj]
"""


@dataclass(frozen=True)
class Case:
    """A reduction: the program, the peers, and a check of its results.

    Parameters
    ----------
    text : str
        The program.
    peers : callable
        Returns the functions to compare with for some arrays.
    check : callable
        Raises unless the results are right for some arrays.
    weighted : bool
        Whether there is a second operand, one value per column.
    """

    text: str
    peers: Callable[..., Mapping[str, Callable[[], object]]]
    check: Callable[..., None]
    weighted: bool = False


def _argmax_peers(x: Any) -> Mapping[str, Callable[[], object]]:
    import numpy as np
    import torch

    t = torch.from_numpy(x)
    return {"numpy": lambda: np.argmax(x, 1), "torch": lambda: torch.argmax(t, 1)}


def _argmax_check(made: Any, x: Any) -> None:
    import numpy as np

    np.testing.assert_array_equal(made, np.argmax(x, 1))


def _welford_peers(x: Any) -> Mapping[str, Callable[[], object]]:
    import torch

    t = torch.from_numpy(x)
    return {
        "numpy": lambda: (x.mean(1), x.var(1)),
        "torch": lambda: torch.var_mean(t, 1, correction=0),
    }


def _welford_check(made: Any, x: Any) -> None:
    import numpy as np

    wide = x.astype(np.float64)
    np.testing.assert_allclose(made[0], wide.mean(1), atol=1e-5)
    np.testing.assert_allclose(made[1], wide.var(1), rtol=1e-5)


def _attention_peers(x: Any, v: Any) -> Mapping[str, Callable[[], object]]:
    import numpy as np
    import torch

    t, w = torch.from_numpy(x), torch.from_numpy(v)

    def in_numpy() -> object:
        weights = np.exp(x - x.max(1, keepdims=True))
        return weights @ v / weights.sum(1)

    return {"numpy": in_numpy, "torch": lambda: torch.softmax(t, 1) @ w}


def _attention_check(made: Any, x: Any, v: Any) -> None:
    import numpy as np

    wide = x.astype(np.float64)
    weights = np.exp(wide - wide.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    assert np.all(np.abs(made - weights @ v) <= 1e-5 * (weights @ np.abs(v)))


CASES = {
    "argmax": Case(ARGMAX, _argmax_peers, _argmax_check),
    "welford": Case(WELFORD, _welford_peers, _welford_check),
    "online softmax": Case(ATTENTION, _attention_peers, _attention_check, weighted=True),
}


def part_reducers(threads: int) -> Figures:
    """Measure the reductions of all shapes."""
    import numpy as np
    import torch

    import tilewright as tw

    rng, memory, figures = np.random.default_rng(0), memory_runs(), Figures()
    rows: list[list[str]] = []
    for name, case in CASES.items():
        run = tw.compile(tw.parse(case.text), tw.Target("cpu", threads=threads))
        small = (np.ones((1, 1), np.float32), np.ones(1, np.float32))[: 1 + case.weighted]
        figures[f"{name} call"] = call = interleaved(
            {"call": lambda f=run, g=small: f(*g)}, seconds=0.3
        )["call"]
        for shape in SHAPES:
            x = rng.standard_normal(shape).astype(np.float32)
            given = (x, rng.standard_normal(shape[1]).astype(np.float32))[: 1 + case.weighted]
            case.check(run(*given), *given)
            with torch.inference_mode():
                runs = {"ours": lambda g=given, f=run: f(*g), **case.peers(*given)}
                times = interleaved(runs, seconds=0.7)
                # Reading other memory would remove small arrays from the caches.
                again = interleaved({**runs, **memory}, seconds=2.0)
            size = sum(a.nbytes for a in given)
            times = again if size >= FROM_MEMORY else times
            bandwidth = read_bandwidth(again)
            ratio = min(times["numpy"], times["torch"]) / times["ours"]
            share = size / times["ours"] / bandwidth
            label = f"{name} {shape[0]} x {shape[1]}"
            figures[label] = {
                **{k: times[k] for k in runs}, "ratio": ratio, "of_bandwidth": share,
                "read_bytes_per_second": bandwidth,
            }  # fmt: skip
            shown = [f"{times[k] * 1e6:.1f}" for k in ("ours", "numpy", "torch")]
            reached = ratio >= PEER_GOAL or share >= BANDWIDTH_GOAL
            shown += [f"{call * 1e6:.1f}", f"{ratio:.2f}", f"{bandwidth / 1e9:.1f}"]
            rows.append([label, *shown, f"{share:.0%}", "yes" if reached else "no"])
    goal = f"goal: {PEER_GOAL} x the best peer, or {BANDWIDTH_GOAL:.0%} of the bandwidth"
    header = ("case", "tilewright", "numpy", "torch", "call", "ratio", "GB/s of memory",
              "of bandwidth", "reached")  # fmt: skip
    table(f"reducers (us; {goal})", header, rows)
    return figures
