"""Run random walks for some time: ``python -m tests.fuzz.walk --minutes 10 --workers 2``.

With ``--graphs`` the programs are whole graphs. Each walk runs in a forked process, so a crash or
an endless step ends one walk. With ``--webgpu`` the GPU kernels of loop programs also run on the
WebGPU driver of this machine. With ``--record`` the counts of the run are added to the entry of its
commit in the record of all runs; with ``--resume`` a run continues after the last recorded seed;
``--report`` prints the record. Failures are minimized and written to the folder of ``--out`` as
text and as JSON.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from pathlib import Path

from tests.fuzz import oracles, record
from tests.fuzz.driver import Driver
from tests.fuzz.kinds import KINDS
from tests.fuzz.steps import LIBRARY, ON_GRAPHS, VERBS


def main() -> int:
    """Run walks, print a report, and return the exit status."""
    options = _options()
    if options.report:
        print(record.report(record.read(options.report)))
        return 0
    if options.webgpu:
        os.environ[oracles.WEBGPU] = "1"
    first, kind = options.seed, KINDS["graphs" if options.graphs else "loops"]
    if first is None:
        known = record.read(options.record or record.FILE) if options.resume else []
        first = record.next_seed(known, kind.name) if known else secrets.randbits(31)
    driver, commit, processor = Driver(options, first, kind), record.commit(), record.processor()

    def entry() -> record.Run:
        seeds = ((first, driver.next_seed - 1),)
        return record.Run(commit, seeds, processor, driver.totals, kind.name)

    def save() -> None:
        if options.json:
            options.json.write_text(record.as_text([entry()]))

    driver.run(save)
    if options.record:
        record.add(entry(), options.record)
    print(driver.totals)
    print(f"seeds {first} to {driver.next_seed - 1}, commit {commit},", end=" ")
    print(f"{len(driver.failures)} failures shown")
    return int(bool(+driver.totals.tables["defects"]))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--walks", type=int, default=0, help="stop after this number of walks")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, help="the first seed; random by default")
    parser.add_argument("--json", type=Path, help="the counts of this run")
    for name, text in (("record", "add the counts to a record"), ("report", "print a record")):
        parser.add_argument(f"--{name}", type=Path, nargs="?", const=record.FILE, help=text)
    parser.add_argument("--resume", action="store_true", help="continue after the recorded seeds")
    parser.add_argument("--out", default="out/walks", help="folder of the failures")
    parser.add_argument("--graphs", action="store_true", help="programs of whole graphs")
    parser.add_argument("--family", default="")
    parser.add_argument(
        "--goal", default="", choices=["", *dict.fromkeys((*VERBS, *LIBRARY, *ON_GRAPHS))]
    )
    parser.add_argument("--defects", type=int, default=1000, help="stop after so many failures")
    parser.add_argument("--webgpu", action="store_true", help="run GPU kernels on a driver, too")
    parser.add_argument("--quick", action="store_true", help="do not minimize failures")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
