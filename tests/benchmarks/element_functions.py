"""Element functions of a million numbers against NumPy and PyTorch, in the same run.

Run as ``python -m tests.benchmarks.element_functions [--json FILE] [--only NAME] [--threads N]``.
Every function of one or two floats that is written as a call and that a peer has is timed, with
results written to arrays that exist; the time is the least of many calls. Tilewright and PyTorch
have ``--threads`` threads, NumPy one. Results are checked against the float64 results of a peer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from time import perf_counter
from typing import Any

from .harness import arguments, limit_threads, table, write_json

ELEMENTS = 1_000_000
SECONDS = 0.25
GOAL = 1.5
"""The most time in units of the time of the fastest peer."""

PROGRAM = """
n = symbols("n", lower=1)

@prim_func
def main({parameters}, y: Out[(n,), {dtype}]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            y[vi] = {function}
"""

INTERVALS = {
    "asin": (-1, 1), "acos": (-1, 1), "atanh": (-0.99, 0.99), "erfinv": (-0.99, 0.99),
    "acosh": (1, 50), "log": (0.01, 50), "log2": (0.01, 50), "log10": (0.01, 50),
    "log1p": (-0.9, 50), "sqrt": (0, 50), "rsqrt": (0.01, 50), "lgamma": (0.1, 30),
    "digamma": (0.1, 30),
}  # fmt: skip
"""The intervals of operands; by default -8 to 8."""


def operands_of(name: str, arity: int, dtype: str) -> list[Any]:
    """Return random operands of a function."""
    import numpy as np

    rng = np.random.default_rng(0)
    low, high = INTERVALS.get(name, (-8, 8))
    return [rng.uniform(low, high, ELEMENTS).astype(dtype) for _ in range(arity)]


def measured(name: str, dtype: str, threads: int) -> dict[str, float]:
    """Return the times of a function in seconds by library, after a check of its results."""
    import numpy as np
    import torch

    import tilewright as tw
    from tilewright.ir.dtype import from_numpy
    from tilewright.ir.loop.element_functions import FUNCTIONS

    function = FUNCTIONS[name]
    arrays = operands_of(name, function.arity, dtype)
    found, peer = np.empty_like(arrays[0]), np.empty_like(arrays[0])
    names = [f"x{k}" for k in range(function.arity)]
    kind = from_numpy(arrays[0].dtype).name
    operands = ", ".join(f"{p}[vi]" for p in names)
    text = PROGRAM.format(
        parameters=", ".join(f"{p}: Buffer[(n,), {kind}]" for p in names),
        function=f"{name}({operands})",
        dtype=kind,
    )
    compiled = tw.compile(tw.parse(text), tw.Target("cpu", threads=threads))["main"]
    runs: dict[str, Callable[[], object]] = {"tilewright": lambda: compiled.into(*arrays, found)}
    wide = [a.astype(np.float64) for a in arrays]
    if function.names.numpy:
        apply = getattr(np, function.names.numpy)
        runs["numpy"] = lambda: apply(*arrays, out=peer)
        exact = apply(*wide)
    if function.names.torch:
        tensors, out = (
            [torch.from_numpy(a) for a in arrays],
            torch.empty(ELEMENTS).to(torch.from_numpy(found).dtype),
        )
        other = getattr(torch, function.names.torch)
        runs["torch"] = lambda: other(*tensors, out=out)
        exact = exact if function.names.numpy else other(*map(torch.from_numpy, wide)).numpy()
    compiled.into(*arrays, found)
    np.testing.assert_allclose(found, exact, rtol=1e-5 if dtype == "float32" else 1e-11, atol=1e-6)
    return least(runs)


def least(runs: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Return the least time of each function in seconds, from interleaved calls.

    The calls are shorter than the time slices of other programs, which the least time excludes.
    """
    found = {}
    end = perf_counter() + SECONDS
    while perf_counter() < end or not found:
        for name, run in runs.items():
            start = perf_counter()
            run()
            found[name] = min(found.get(name, inf), perf_counter() - start)
    return found


def main() -> None:
    options = arguments(__doc__ or "")
    limit_threads(options.threads)
    import torch

    from tilewright.ir.dtype import f64
    from tilewright.ir.loop.element_functions import FUNCTIONS, __all__

    torch.set_num_threads(options.threads)
    figures: dict[str, object] = {}
    for dtype in ("float32", "float64"):
        rows, found = [], {}
        for name, f in FUNCTIONS.items():
            elsewhere = f.names.numpy or f.names.torch
            if name not in __all__ or not elsewhere or not f.accepts(f64) or f.predicate:
                continue
            if f.second is not None:
                continue
            if options.only and options.only not in (name, dtype):
                continue
            times = measured(name, dtype, options.threads)
            best = min(t for library, t in times.items() if library != "tilewright")
            ratio = times["tilewright"] / best
            found[name] = {**{k: t * 1e9 / ELEMENTS for k, t in times.items()}, "ratio": ratio}
            cells = [f"{times[k] * 1e9 / ELEMENTS:.3f}" if k in times else "" for k in LIBRARIES]
            rows.append((name, *cells, f"{ratio:.2f}", "" if ratio <= GOAL else "slower"))
        if rows:
            head = ("function", *LIBRARIES, "time / best peer", "")
            table(f"{dtype}: nanoseconds per element", head, rows)
            figures[dtype] = found
    write_json(options.json, figures)


LIBRARIES = ("tilewright", "numpy", "torch")

if __name__ == "__main__":
    main()
