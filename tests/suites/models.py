"""Check models against PyTorch: ``python -m tests.suites.models --resume --minutes 30``.

Every model of the catalog is built from a small configuration with random weights, exported with
dynamic dimensions, compiled once, called with four shapes, and compared with PyTorch, in a process
of its own. ``--source onnx`` exports to ONNX instead of ``torch.export``, and has its own results.
``--report`` writes the page of the committed results. The exit status is 1 if a result is wrong, an
error, or a crash.
"""

from __future__ import annotations

import argparse
import fnmatch
import platform
import sys
import time
from collections import Counter
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, get_args

from tests.fuzz.contained import run_contained
from tests.suites.model_catalog.catalog import models
from tests.suites.model_catalog.packages import PACKAGES, available, load_packages
from tests.suites.model_check import Source
from tests.suites.records import blocking, listed, read, write

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

RESULTS: Final[Mapping[Source, Path]] = MappingProxyType({
    "torch": Path(__file__).parent / "results" / "models.json",
    "onnx": Path(__file__).parent / "results" / "models_onnx.json",
})  # fmt: skip
_EXPORTS: Final[Mapping[Source, str]] = MappingProxyType({
    "torch": "exported by `torch.export` with dynamic dimensions",
    "onnx": "exported by `torch.onnx.export` with dynamic dimensions, imported from ONNX",
})  # fmt: skip
DEFECTS: Final = ("wrong", "error", "crash")


def main(arguments: Sequence[str] | None = None) -> int:
    """Check models, write the results, print a summary, and return the exit status."""
    options = _options(arguments)
    file = options.json or RESULTS[options.source]
    known = read(file)
    if not options.report:
        known = _run(options, known, file)
    else:
        file.with_suffix(".md").write_text(page(known, options.source))
    print(summary(known))
    return int(any(r["status"] in DEFECTS for r in known.values()))


def chosen(names: Sequence[str], patterns: str) -> list[str]:
    """Return the names that match a comma-separated list of patterns; all if it is empty."""
    if not patterns:
        return list(names)
    return [n for n in names if any(fnmatch.fnmatch(n, p) for p in patterns.split(","))]


def _run(options: argparse.Namespace, known: dict[str, Any], file: Path) -> dict[str, Any]:
    from tilewright import Target
    from tilewright.codegen.build.build_objects import host_target
    from tilewright.codegen.build.rtlib_object import rtlib_object_code
    from tilewright.ir.importers.handlers import load_handlers

    from tests.suites.model_check import check

    load_handlers()
    load_packages()
    rtlib_object_code(host_target(Target("cpu")))  # once, as for a user; it is part of no model
    names = chosen([n for n, m in models().items() if available(m.needs)], options.only)
    if options.again:
        names = [n for n in names if n in known and known[n]["status"] in options.again.split(",")]
    elif options.resume:
        names = [n for n in names if n not in known]
    end = time.monotonic() + 60 * options.minutes
    for name in names:
        if time.monotonic() > end:
            break
        done = run_contained(lambda name=name: check(name, options.source), options.limit)
        found = done.value or {"status": "crash", "reason": done.ended}
        known[name] = {k: v for k, v in found.items() if v}
        print(f"{name}: {found['status']} {found['reason']}"[:300], flush=True)
        write(file, {n: known[n] for n in models() if n in known})
    return known


def summary(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the number of models by status, and the operators that stop the most of them."""
    counts = Counter(r["status"] for r in results.values())
    lines = [f"{len(results)} models: {listed(counts.most_common())}"]
    if blocked := blocking(results.values()):
        lines.append(f"unsupported: {listed(blocked.most_common(40))}")
    lines += [
        f"{name}: {r['status']}: {r.get('reason', '')}"
        for name, r in results.items()
        if r["status"] != "pass"
    ]
    return "\n".join(lines)


def page(results: Mapping[str, Mapping[str, Any]], source: Source) -> str:
    """Return the committed page: counts, the models that do not pass, and a row for each model."""
    known = models()
    families = Counter(known[n].family for n in results)
    right = Counter(known[n].family for n, r in results.items() if r["status"] == "pass")
    counts = Counter(r["status"] for r in results.values())
    lines = [
        "# Models" if source == "torch" else "# Models through ONNX",
        "",
        f"Written by `python -m tests.suites.models --source {source} --report`: architectures",
        "from small configurations with random weights,",
        f"{_EXPORTS[source]},",
        "compiled once, and compared with PyTorch at four shapes.",
        "",
        f"{_conditions()}; {len(results)} models: {listed(counts.most_common())}.",
        "",
        "The bound of a difference from PyTorch in float64 is eight times that of PyTorch in",
        "float32, plus one unit in the last place of the largest element of the result; *error* is",
        "the largest difference as a fraction of it. *Compile* is wall time on a shared machine,",
        "*CPU* the CPU time of the compilation in all of its processes.",
        "",
        *_table(("family", "models", "pass"), ((f, n, right[f]) for f, n in families.items())),
    ]
    if blocked := blocking(results.values()):
        lines += ["", "## Missing operators", "", *_table(("operator", "models"),
                  ((f"`{name}`", n) for name, n in blocked.most_common()))]  # fmt: skip
    failed = [(n, r["status"], r["reason"]) for n, r in results.items() if r["status"] != "pass"]
    if failed:
        lines += ["", "## Models that do not pass", "",
                  *_table(("model", "status", "reason"), failed)]  # fmt: skip
    heads = ("model", "family", "operators", "compile (s)", "CPU (s)", "error", "calls")
    lines += ["", "## Models that pass", "", *_table(heads, (
        (n, known[n].family, r["nodes"], r.get("compile", 0.0), r.get("cpu", ""),
         r.get("error", 0.0), "; ".join(r["calls"]))
        for n, r in results.items() if r["status"] == "pass"
    ))]  # fmt: skip
    return "\n".join([*lines, ""])


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    made = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for row in rows:
        cells = (str(cell).replace("|", "\\|") for cell in row)
        made.append(f"| {' | '.join(cells)} |")
    return made


def _conditions() -> str:
    """Return the machine and the packages of the results."""
    names = [n for n in ("torch", *PACKAGES) if n == "torch" or available(n)]
    return ", ".join([platform.machine(), *(f"`{n}` {version(n)}" for n in names)])


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.suites.models", description=__doc__)
    parser.add_argument("--source", choices=get_args(Source), default="torch", help="the format")
    parser.add_argument("--only", default="", help="patterns of names, separated by commas")
    parser.add_argument("--resume", action="store_true", help="skip models with a result")
    parser.add_argument("--again", default="", help="check the models with these statuses again")
    parser.add_argument("--json", type=Path, help="the file of the results")
    parser.add_argument("--minutes", type=float, default=30.0, help="the duration of the run")
    parser.add_argument("--limit", type=float, default=180.0, help="CPU seconds of one model")
    parser.add_argument("--report", action="store_true", help="write the page of the results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
