"""Decoding with a static cache that stays in place: the time per token over the position.

Run as ``python -m tests.benchmarks.decode_state [--json FILE]``. A decoder of 4 layers with random
weights generates ``TOKENS`` tokens with Tilewright, and with PyTorch's static and growing cache.
The tokens must be equal. Each row of the table is the median over ``WINDOW`` positions. Every step
attends over the whole static cache, so its time must not depend on the position: the last
window may take at most ``FLAT`` times as long as the fastest one.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

from .harness import arguments, limit_threads, table, write_json

limit_threads(1)

import numpy as np  # noqa: E402  # after the number of threads is set
import torch  # noqa: E402
import transformers  # noqa: E402

import tilewright as tw  # noqa: E402

from tests.ir.importers.models import cache_name, decoder, exported_decoder  # noqa: E402

TOKENS = 200
LONGEST = 256
WINDOW = 20
ROUNDS = 5
FLAT = 1.25
START = 3

Step = Callable[[int, int], int]
"""A function of a token and its position that returns the next token."""


def tilewright(exe: Any) -> Step:
    """Return the step of a new state."""
    state = exe.new_state()

    def step(token: int, position: int) -> int:
        logits = exe(np.array([[token]]), np.array([position]), state=state)
        return int(logits[0, -1].argmax())

    return step


def pytorch(cache: Any) -> Step:
    """Return the step of PyTorch with a cache."""
    model, name = decoder(), cache_name()

    def step(token: int, position: int) -> int:
        del position
        with torch.no_grad():
            found = model(input_ids=torch.tensor([[token]]), use_cache=True, **{name: cache})
        return int(found.logits[0, -1].argmax())

    return step


def generate(step: Step) -> tuple[list[int], list[float]]:
    """Return the tokens after the first one, and the seconds per token."""
    tokens, times = [START], list[float]()
    for position in range(TOKENS):
        start = perf_counter()
        tokens.append(step(tokens[-1], position))
        times.append(perf_counter() - start)
    return tokens[1:], times


def main() -> None:
    """Print the table and check that tokens are equal and the time is flat."""
    chosen = arguments(__doc__ or "")
    exe = tw.compile(tw.from_exported_program(exported_decoder(LONGEST)))
    config = decoder().config
    makers: dict[str, Callable[[], Step]] = {
        "tilewright": lambda: tilewright(exe),
        "static": lambda: pytorch(transformers.StaticCache(config=config, max_cache_len=LONGEST)),
        "dynamic": lambda: pytorch(transformers.DynamicCache(config=config)),
    }
    plan = exe.memory().call
    times: dict[str, list[list[float]]] = {name: [] for name in makers}
    tokens: dict[str, list[int]] = {}
    for _ in range(ROUNDS):
        for name, make in makers.items():
            tokens[name], found = generate(make())
            times[name].append(found)
    windows = {
        name: np.median(np.min(np.array(found), 0).reshape(-1, WINDOW), 1) * 1e6
        for name, found in times.items()
    }
    rows = [
        [f"{k * WINDOW} to {k * WINDOW + WINDOW - 1}", *(f"{w[k]:.0f}" for w in windows.values())]
        for k in range(TOKENS // WINDOW)
    ]
    table("time per token in us", ["positions", *windows], rows)
    growth = float(windows["tilewright"][-1] / windows["tilewright"].min())
    print(f"last window / fastest window: {growth:.2f}, at most {FLAT}")
    write_json(chosen.json, {n: {"us": w.tolist()} for n, w in windows.items()})
    if not tokens["tilewright"] == tokens["static"] == tokens["dynamic"]:
        raise SystemExit(f"tokens differ: {tokens}")
    if exe.memory().call.total != plan.total:
        raise SystemExit("the arena has changed")
    if growth > FLAT:
        raise SystemExit("the time per token grows with the position")


if __name__ == "__main__":
    main()
