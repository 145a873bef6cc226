"""Reductions and products of narrow weights against the best of PyTorch and NumPy.

Run as ``python -m tests.benchmarks.reducers [--json FILE] [--only PART] [--threads N]``. Every
result is checked. Each row states the time relative to the fastest peer of the same run, and the
fraction of the bandwidth of memory, which is measured by interleaved calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from .declared import part_reducers
from .harness import arguments, limit_threads, write_json
from .quantized import part_fp8, part_int4
from .scans import part_scans

Figures: TypeAlias = dict[str, object]

PARTS: dict[str, Callable[[int], Figures]] = {
    "reducers": part_reducers,
    "scans": part_scans,
    "int4": part_int4,
    "fp8": part_fp8,
}


def main() -> None:
    """Run the chosen parts and print their tables."""
    options = arguments(__doc__ or "")
    limit_threads(options.threads)
    import torch

    torch.set_num_threads(options.threads)
    figures: Figures = {"threads": options.threads}
    for name, part in PARTS.items():
        if options.only in name:
            figures[name] = part(options.threads)
    write_json(options.json, figures)


if __name__ == "__main__":
    main()
