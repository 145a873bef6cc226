"""Check PyTorch's operators against PyTorch: ``python -m tests.suites.opinfo --minutes 30``.

Every operator of the OpInfo database that accepts float32 is exported by ``torch.export`` with
samples of its arguments, imported, compiled, run, and compared with PyTorch, in a process of its
own. With ``--resume`` a run continues with the operators that have no result in the file of
``--json``; ``--again STATUS`` checks those with a status again. The exit status is 1 if a result
is wrong or an error.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.fuzz.contained import run_contained
from tests.suites.records import blocking, listed, read, write

if TYPE_CHECKING:
    from collections.abc import Mapping

RESULTS = Path(__file__).parent / "results" / "opinfo.json"
DEFECTS = ("wrong", "error")


def main(arguments: list[str] | None = None) -> int:
    """Check operators, write the results, print a summary, and return the exit status."""
    options = _options(arguments)
    known = read(options.json)
    if not options.report:
        known = _run(options, known)
    print(summary(known))
    shown = [n for n, r in known.items() if r["status"] in DEFECTS]
    return int(bool(shown))


def _run(options: argparse.Namespace, known: dict[str, Any]) -> dict[str, Any]:
    from tilewright.ir.importers.handlers import load_handlers

    from tests.suites import opinfo_check as suite
    from tests.suites.opinfo_database import operators

    load_handlers()
    names = list(operators())
    if options.only:
        names = [n for n in names if any(fnmatch.fnmatch(n, p) for p in options.only.split(","))]
    if options.again:
        wanted = options.again.split(",")
        names = [n for n in names if n in known and known[n]["status"] in wanted]
    elif options.resume:
        names = [n for n in names if n not in known]
    end = time.monotonic() + 60 * options.minutes
    for name in names:
        if time.monotonic() > end:
            break
        found = run_contained(lambda name=name: suite.check(name, options.samples), options.limit)
        result = found.value or {"status": "error", "reason": f"the process: {found.ended}"}
        known[name] = compact(result)
        print(f"{name}: {result['status']} {result['reason']}"[:200], flush=True)
        if options.json:
            write(options.json, {n: known[n] for n in operators() if n in known})
    return known


def compact(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result without its time and its empty fields, as the committed table has it."""
    return {k: v for k, v in result.items() if v and k != "seconds"}


def summary(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the number of operators by status, and the operators that stop the most of them."""
    counts = Counter(r["status"] for r in results.values())
    blocked = blocking(results.values())
    lines = [f"{len(results)} operators: " + listed(counts.most_common())]
    lines += [f"unsupported: {listed(blocked.most_common(40))}"] if blocked else []
    lines += [
        f"{name}: {r['status']}: {r.get('reason', '')}"
        for name, r in results.items()
        if r["status"] in DEFECTS
    ]
    return "\n".join(lines)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.suites.opinfo", description=__doc__)
    parser.add_argument("--only", help="names or patterns of operators, separated by commas")
    parser.add_argument("--resume", action="store_true", help="skip operators with a result")
    parser.add_argument("--again", help="check the operators with these statuses again")
    parser.add_argument("--json", type=Path, default=RESULTS, help="the file of the results")
    parser.add_argument("--minutes", type=float, default=30.0, help="the duration of the run")
    parser.add_argument("--samples", type=int, default=8, help="most samples of one operator")
    parser.add_argument("--limit", type=float, default=60.0, help="CPU seconds of one operator")
    parser.add_argument("--report", action="store_true", help="print the results of the file")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
