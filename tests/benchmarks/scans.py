"""Running sums: a part of ``tests.benchmarks.reducers``.

The operator ``cumsum`` is scheduled by the default rules: rows in parallel, columns in lanes, and
one long row in parts. The bandwidth is that of a copy of the same array by the fastest peer;
PyTorch adds in double precision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from .harness import interleaved, table
from .quantized import BANDWIDTH_GOAL, PEER_GOAL

if TYPE_CHECKING:
    from collections.abc import Callable

Figures: TypeAlias = dict[str, object]

CASES = (((4096, 1024), 1), ((4096, 1024), 0), ((1, 10**7), 1), ((1, 10**5), 1))

TEXT = """
n, m = symbols("n m", lower=1)

@graph_func
def main(x: Tensor[({rows}, m), f32]):
    y = cumsum(x, axis={axis})
    return y
"""


def part_scans(threads: int) -> Figures:
    """Measure running sums of rows, of columns, and of one row."""
    import numpy as np
    import torch

    import tilewright as tw

    figures: Figures = {}
    rows: list[list[str]] = []
    for shape, axis in CASES:
        text = TEXT.format(rows="1" if shape[0] == 1 else "n", axis=axis)
        exe = tw.compile(tw.parse(text), tw.Target("cpu", threads=threads))
        x = np.random.default_rng(1).random(shape, np.float32)
        given, out = torch.from_numpy(x), np.empty_like(x)
        exact = np.cumsum(x, axis, dtype=np.float64)
        np.testing.assert_allclose(exe(x), exact, rtol=2e-5)
        runs: dict[str, Callable[[], object]] = {
            "ours": lambda f=exe, a=x: f(a),
            "numpy": lambda a=x, k=axis, o=out: np.cumsum(a, k, out=o),
            "torch": lambda a=given, k=axis: torch.cumsum(a, k),
            "numpy copy": lambda a=x, o=out: np.copyto(o, a),
            "torch copy": lambda a=given: a.clone(),
        }
        with torch.inference_mode():
            times = interleaved(runs, seconds=1.0)
        ratio = min(times["numpy"], times["torch"]) / times["ours"]
        share = min(times["numpy copy"], times["torch copy"]) / times["ours"]
        label = f"cumsum {shape[0]} x {shape[1]}, axis {axis}"
        figures[label] = {**times, "ratio": ratio, "of_bandwidth": share}
        shown = [f"{times[k] * 1e6:.1f}" for k in ("ours", "numpy", "torch")]
        reached = ratio >= PEER_GOAL or share >= BANDWIDTH_GOAL
        rows.append([label, *shown, f"{ratio:.2f}", f"{share:.0%}", "yes" if reached else "no"])
    goal = f"goal: {PEER_GOAL} x the best peer, or {BANDWIDTH_GOAL:.0%} of the speed of a copy"
    header = ("case", "tilewright", "numpy", "torch", "ratio", "of a copy", "reached")
    table(f"scans (us; {goal})", header, rows)
    return figures
