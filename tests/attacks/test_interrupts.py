"""Ctrl+C at random times leaves a working process."""

from __future__ import annotations

import secrets

from tests.attacks.interrupts import ROUND, run_process

SECONDS = 5.0


def test_interrupts_at_random_times(scale: int) -> None:
    """The longer version is ``python -m tests.attacks.interrupts SECONDS SEED``."""
    seeds = [0] if scale == 1 else [secrets.randbits(32) for _ in range(scale)]
    for seed in seeds:
        counts = run_process(SECONDS if scale == 1 else ROUND, seed)
        made = {name: int(n.split("/")[1]) for name, n in (c.split(":") for c in counts.split())}
        assert made["compile"] + made["load"] + made["measure"] + made["call"], counts
