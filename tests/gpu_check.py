"""On a machine with a GPU: are the results right, and how fast is it?  ``make gpu-check``.

Writes JSON with the machine and the versions to ``tests/benchmarks/results/``. Ends with 1 where a
result is wrong, with 2 where there is no GPU to check.
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
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arch", default="", help="compile for this one (default: the GPU's own)")
    parser.add_argument("--no-model", action="store_true", help="leave MiniLM out")
    parser.add_argument("--json", type=Path, help="write the figures here instead")
    return parser.parse_args(arguments)


def own_arch(capability: int) -> str:
    """Choose the arch that a GPU is compiled for: its own, with what only it has.

    Examples
    --------
    >>> own_arch(90), own_arch(86), own_arch(87)
    ('sm_90a', 'sm_86', 'sm_87')
    """
    from tilewright.codegen.runtime.cuda.device import runs
    from tilewright.ir.target import GPU_ARCHS

    return [a for a in GPU_ARCHS if runs(capability, a)][-1]


def run(chosen: argparse.Namespace) -> dict[str, Any]:
    """Check and time everything on this machine's GPU."""
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
        print("PyTorch with CUDA is not here: times stand alone, without cuBLAS beside them")
    kernels = [k for k in gpu.KERNELS if k.name in right]
    times = [row for kernel in kernels for row in gpu.time_kernel(kernel, target, device)]
    return {
        "machine": gpu.facts(device), "target": str(target), "results": results, "times": times,
        "peers": gpu.cuda_torch() is not None,
    }  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Run, print, write; give the exit code."""
    chosen = options(arguments)
    try:
        figures = run(chosen)
    except tw.TilewrightError as error:
        from tilewright.codegen.runtime.errors import DeviceUnavailableError

        if not isinstance(error, DeviceUnavailableError):
            raise
        print(f"no GPU to check: {error}", file=sys.stderr)
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
