"""Check and measure GPU kernels on a machine with a GPU (``make gpu-check``).

Writes JSON with the machine and the versions to ``tests/benchmarks/results/``. The exit code is 1
if a result is wrong, and 2 if there is no GPU.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

import tilewright as tw

from tests.benchmarks import gpu

RESULTS = Path(__file__).parent / "benchmarks" / "results"


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--arch", default="", help="architecture to compile for (default: that of the GPU)"
    )
    parser.add_argument("--no-model", action="store_true", help="omit MiniLM")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    return parser.parse_args(arguments)


def own_arch(capability: int) -> str:
    """Return the most specific architecture of a GPU.

    Examples
    --------
    >>> own_arch(90), own_arch(86), own_arch(87)
    ('sm_90a', 'sm_86', 'sm_87')
    """
    from tilewright.codegen.runtime.cuda.device import runs
    from tilewright.target.target import GPU_ARCHS

    return [a for a in GPU_ARCHS if runs(capability, a)][-1]


def run(chosen: argparse.Namespace) -> dict[str, Any]:
    """Check and measure everything on the GPU of this machine."""
    from tilewright.codegen.runtime.cuda.device import opened_device

    device = opened_device()
    target = tw.Target("cuda", arch=chosen.arch or own_arch(device.capability))
    print(f"{device.name}, sm_{device.capability}; compiling for {target}")
    parts = {k.name: partial(gpu.check, k, target) for k in gpu.KERNELS}
    if not chosen.no_model:
        parts["MiniLM"] = partial(gpu.check_model, target)
    results = [row for name, part in parts.items() for row in gpu.attempt(name, part)]
    right = {r["kernel"] for r in results if r["ok"]}
    if gpu.cuda_torch() is None:
        print("PyTorch with CUDA is not installed: times are not compared with cuBLAS")
    kernels = [k for k in gpu.KERNELS if k.name in right]
    times = [row for kernel in kernels for row in gpu.time_kernel(kernel, target, device)]
    return {
        "machine": gpu.facts(device), "target": str(target), "results": results, "times": times,
        "peers": gpu.cuda_torch() is not None,
    }  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Run, print, and write the figures; return the exit code."""
    chosen = options(arguments)
    try:
        figures = run(chosen)
    except tw.TilewrightError as error:
        from tilewright.codegen.errors import DeviceUnavailableError

        if not isinstance(error, DeviceUnavailableError):
            raise
        print(f"no GPU: {error}", file=sys.stderr)
        return 2
    gpu.report(figures)
    name = re.sub(r"[^a-z0-9]+", "-", figures["machine"]["gpu"].lower()).strip("-")
    path = chosen.json or RESULTS / f"gpu-{name}.json"
    path.write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    wrong = [r for r in figures["results"] if not r["ok"]]
    print(f"\nwritten to {path}" + (f"; {len(wrong)} results are WRONG" if wrong else ""))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
