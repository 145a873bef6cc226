"""The record of all runs of random walks: a committed file with the counts of each commit.

A program counts if its walk is complete. The number of programs in all is the sum of the numbers of
complete walks of all commits; no seed counts twice, because a run continues after the last one.
"""

from __future__ import annotations

import fcntl
import json
import platform
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.fuzz.totals import Totals

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FILE = Path(__file__).with_name("runs.json")
"""The committed record."""


@dataclass(frozen=True)
class Run:
    """The walks of one commit.

    Parameters
    ----------
    commit : str
        The commit, with ``-dirty`` if the sources differed from it.
    seeds : tuple of (int, int)
        The first and the last seed of each run.
    processor : str
        The processor that ran them.
    totals : Totals
        The counts.
    kind : str
        The kind of programs: ``loops`` or ``graphs``.
    """

    commit: str
    seeds: tuple[tuple[int, int], ...] = ()
    processor: str = ""
    totals: Totals = field(default_factory=Totals)
    kind: str = "loops"

    @property
    def key(self) -> tuple[str, str, str]:
        """The commit, the processor and the kind of programs, by which runs are one entry."""
        return self.commit, self.processor, self.kind

    def plus(self, other: Run) -> Run:
        """Return both runs of a commit as one; `ValueError` if a seed would count twice."""
        for first, last in other.seeds:
            for begin, end in self.seeds:
                if first <= end and begin <= last:
                    raise ValueError(f"seeds {first} to {last} are recorded already")
        return replace(
            self,
            seeds=tuple(sorted((*self.seeds, *other.seeds))),
            totals=self.totals.plus(other.totals),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the run as JSON data."""
        return {**vars(self), "totals": self.totals.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Run:
        """Return the run of JSON data."""
        seeds = tuple((first, last) for first, last in data["seeds"])
        totals = Totals.from_json(data["totals"])
        return cls(data["commit"], seeds, data["processor"], totals, data["kind"])


def read(file: Path = FILE) -> list[Run]:
    """Return the recorded runs; none if there is no file."""
    return [Run.from_json(data) for data in json.loads(file.read_text())] if file.exists() else []


def add(run: Run, file: Path = FILE) -> None:
    """Add a run to the record; runs of the same kind, commit and processor are one entry."""
    with file.open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        text = lock.read()
        known = [Run.from_json(data) for data in json.loads(text)] if text else []
        same = [r for r in known if r.key == run.key]
        kept = [r for r in known if r not in same]
        made = same[0].plus(run) if same else run
        lock.truncate(0)
        lock.write(as_text([*kept, made]))


def as_text(runs: Iterable[Run]) -> str:
    """Return runs as JSON text, by their first seeds, with one line for each table."""
    entries = []
    for run in sorted(runs, key=lambda r: (r.kind, r.seeds)):
        data = run.to_json()
        totals = data.pop("totals")
        tables = ",\n".join(
            f"   {json.dumps(k)}: {json.dumps(v)}" for k, v in totals.pop("tables").items()
        )
        head = json.dumps(data)[1:-1]
        numbers = json.dumps(totals)[1:-1]
        entries.append(f' {{{head},\n  "totals": {{{numbers}, "tables": {{\n{tables}}}}}}}')
    return "[\n" + ",\n".join(entries) + "\n]\n"


def next_seed(runs: Iterable[Run], kind: str = "loops") -> int:
    """Return the first seed after all recorded ones of a kind."""
    return max((last + 1 for r in runs if r.kind == kind for _, last in r.seeds), default=0)


def report(runs: Iterable[Run]) -> str:
    """Return the number of programs of each commit and kind, and the sums of all tables."""
    runs = list(runs)
    kinds = dict.fromkeys(run.kind for run in runs)
    return "\n\n".join(_report([r for r in runs if r.kind == kind], kind) for kind in kinds)


def _report(runs: list[Run], kind: str) -> str:
    total = Totals()
    for run in runs:
        total = total.plus(run.totals)
    lines = [
        f"{run.commit}: {run.totals.complete} programs in {run.totals.minutes:.0f} minutes, "
        f"{sum(run.totals.tables['defects'].values())} defects, seeds "
        + ", ".join(f"{first} to {last}" for first, last in run.seeds)
        + f", on {run.processor}"
        for run in runs
    ]
    return "\n".join(
        [
            f"{total.complete} programs in all ({kind}), of {len(runs)} entries",
            *lines,
            "",
            str(total),
        ]
    )


def commit() -> str:
    """Return the commit of the sources, marked if other files than the record were changed."""
    name = _git("rev-parse", "--short=12", "HEAD")
    changed = _git(
        "status", "--porcelain", "--untracked-files=no", "--", ":(exclude)tests/fuzz/runs.json"
    )
    return f"{name}-dirty" if name and changed else name or "unknown"


def _git(*arguments: str) -> str:
    made = subprocess.run(
        ["git", *arguments], capture_output=True, text=True, check=False, cwd=FILE.parents[2]
    )
    return made.stdout.strip()


def processor() -> str:
    """Return the name of the processor, and its number of cores that this process may use."""
    import os

    file = Path("/proc/cpuinfo")
    lines = file.read_text().split("\n") if file.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return f"{next(names, platform.processor())}, {len(os.sched_getaffinity(0))} cores"
