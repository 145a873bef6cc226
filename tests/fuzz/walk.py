"""Run random walks for some time: ``python -m tests.fuzz.walk --minutes 10 --workers 2``.

Each walk runs in a forked process, so a crash ends one walk. The file of ``--json`` contains totals
and the seeds of each run with its commit; with ``--resume`` a run continues after the last seed.
Failures are minimized and written to the folder of ``--out`` as text and as JSON.
"""

from __future__ import annotations

import argparse
import json
import secrets
import select
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.fuzz.cases import Case, Minimizer
from tests.fuzz.contained import Child, ended
from tests.fuzz.later import known
from tests.fuzz.steps import VERBS, family_of
from tests.fuzz.walks import (
    COUNTED,
    GROUPS,
    DefectError,
    advance,
    complete,
    start,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

BATCH = 20
"""The number of walks of one process."""

LIMIT = 120.0
"""The time limit of a walk, in seconds."""

WHOLE = 5
"""One of so many programs is also compiled by ``tilewright.compile``, which takes longer."""

REPEATED = 2
"""The number of failures with the same signature that are minimized."""

TABLES = (
    "accepted", "inside", "families", "rejected", "refused", "compiled", "seconds", "programs",
    "known", "defects", "ends",
)  # fmt: skip


def one(seed: int, family: str, goal: str, send: Callable[[str], None]) -> dict[str, Any]:
    """Run one walk, and return its record; ``send`` reports the case before native code runs."""
    walk, case, started = None, None, time.monotonic()
    try:
        walk = start(seed, family, goal)
        advance(walk)
        before = Case.of(walk, DefectError("crash", "crash", ""), seed)
        send(json.dumps({"running": before.to_json()}))
        walk.finish()
        if seed % WHOLE == 0:
            walk.compiled()
    except DefectError as defect:
        if walk is None:
            return {"seed": seed, "unparsed": str(defect)}
        case = Case.of(walk, defect, seed)
    tally = walk.tally
    return {
        "seed": seed,
        "family": walk.program.family,
        "counted": walk.counted,
        "complete": complete(walk),
        "case": None if case is None else case.to_json(),
        "known": case is not None and known(walk.program.family, case.phase, case.message),
        "attempts": tally.attempts,
        "fixes": tally.fixes,
        "time": time.monotonic() - started,
        **{name: dict(getattr(tally, name)) for name in TABLES[:7] if hasattr(tally, name)},
    }


@dataclass
class Totals:
    """Counts of all walks."""

    walks: int = 0
    complete: int = 0
    counted: int = 0
    attempts: int = 0
    fixes: int = 0
    tables: dict[str, Counter[str]] = field(
        default_factory=lambda: {name: Counter() for name in TABLES}
    )

    def add(self, record: Mapping[str, Any]) -> None:
        """Add the record of a walk."""
        self.walks += 1
        self.complete += record["complete"]
        self.counted += len(record["counted"])
        self.attempts += record["attempts"]
        self.fixes += record["fixes"]
        for name in TABLES:
            self.tables[name].update(record.get(name) or {} if name != "known" else {})
        self.tables["programs"][record["family"]] += 1
        self.tables["families"].update(map(family_of, record["counted"]))
        short = not record["complete"] and not record["case"]
        self.tables["ends"]["short" if short else "failed" if record["case"] else "complete"] += 1

    def to_json(self) -> dict[str, Any]:
        """Return the totals as JSON data."""
        plain = {k: v for k, v in vars(self).items() if k != "tables"}
        return {**plain, "tables": {k: dict(v) for k, v in self.tables.items()}}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Totals:
        """Return the totals of JSON data."""
        tables = {name: Counter(data["tables"].get(name, {})) for name in TABLES}
        return cls(**{k: v for k, v in data.items() if k != "tables"}, tables=tables)

    def __str__(self) -> str:
        """Return the totals as text."""
        share = self.counted / max(1, self.walks)
        head = (
            f"{self.walks} programs, {self.complete} with at least {COUNTED} counted steps of "
            f"{GROUPS} families; {share:.1f} counted steps per program, "
            f"{self.attempts} attempts, {self.fixes} fixes tried"
        )
        lines = [head]
        accepted = self.tables["accepted"] + self.tables["inside"]
        rows = {"accepted steps by primitive": {v: accepted[v] for v in VERBS}}
        rows |= {f"{name}": dict(sorted(self.tables[name].items())) for name in TABLES[2:]}
        for name, row in rows.items():
            shown = ", ".join(
                f"{k} {v:.0f}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()
            )
            lines.append(f"{name}: {shown}")
        return "\n".join(lines)


@dataclass
class Driver:
    """The walks of one run, in several processes."""

    options: argparse.Namespace
    totals: Totals
    next_seed: int
    failures: list[Case] = field(default_factory=list)
    minimized: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    children: dict[Child, dict[str, Any]] = field(default_factory=dict)

    def run(self, save: Callable[[], None]) -> None:
        """Run walks until the time is over."""
        end = time.monotonic() + self.options.minutes * 60
        saved = time.monotonic()
        while time.monotonic() < end and len(self.failures) < self.options.defects:
            if 0 < self.options.walks <= self.totals.walks:
                break
            while len(self.children) < self.options.workers:
                self._start(self._batch())
            self._wait()
            if time.monotonic() - saved > 15:
                save()
                saved = time.monotonic()
        for child in self.children:
            child.end(kill=True)
        save()

    def _batch(self) -> list[int]:
        first = self.next_seed
        self.next_seed += BATCH
        return list(range(first, self.next_seed))

    def _start(self, seeds: list[int]) -> None:
        family, goal = self.options.family, self.options.goal

        def work(send: Callable[[str], None]) -> None:
            for seed in seeds:
                send(json.dumps({"start": seed}))
                send(json.dumps(one(seed, family, goal, send)))

        child = Child.start(work)
        self.children[child] = {"seeds": seeds, "since": time.monotonic(), "case": None}

    def _wait(self) -> None:
        """Handle the lines of the processes, their ends, and those that take too long."""
        ready = select.select([c.pipe for c in self.children], [], [], 1.0)[0]
        for child in list(self.children):
            if child.pipe in ready:
                more = child.read()
                for line in child.lines:
                    self._line(self.children[child], json.loads(line))
                child.lines.clear()
                if not more:
                    self._ended(child, ended(child.end()))
            elif time.monotonic() - self.children[child]["since"] > LIMIT:
                child.end(kill=True)
                self._ended(child, f"no result after {LIMIT:g} s", phase="hang")

    def _line(self, known_: dict[str, Any], record: dict[str, Any]) -> None:
        known_["since"] = time.monotonic()
        if "start" in record:
            known_["seed"], known_["case"] = record["start"], None
        elif "running" in record:
            known_["case"] = record["running"]
        elif "unparsed" in record:
            known_["seeds"].remove(record["seed"])
            print(f"seed {record['seed']}: {record['unparsed']}", flush=True)
            self.totals.tables["ends"]["unparsed"] += 1
        else:
            known_["seeds"].remove(record["seed"])
            self.totals.add(record)
            if record["case"]:
                self._failed(Case.from_json(record["case"]), is_known=record["known"])

    def _ended(self, child: Child, how: str, phase: str = "crash") -> None:
        state = self.children.pop(child)
        seeds = state["seeds"]
        if not seeds:
            return
        seed = state.get("seed", seeds[0])
        if state["case"]:
            case = Case.from_json(state["case"])
            self._failed(_with(case, phase, how), is_known=False)
        else:
            print(f"seed {seed}: {phase} during the steps: {how}", flush=True)
            self.totals.tables["defects"][f"{phase} during the steps"] += 1
        if seed in seeds:
            seeds.remove(seed)
        if seeds:
            self._start(seeds)

    def _failed(self, case: Case, *, is_known: bool) -> None:
        table = "known" if is_known else "defects"
        self.totals.tables[table][" ".join(case.signature)] += 1
        if is_known:
            return
        self.minimized[case.signature] += 1
        if self.minimized[case.signature] <= REPEATED:
            small = Minimizer(case).minimized() if not self.options.quick else case
            self.failures.append(small)
            self._write(small)
            print(f"\n=== {small}", flush=True)

    def _write(self, case: Case) -> None:
        folder = Path(self.options.out)
        folder.mkdir(parents=True, exist_ok=True)
        name = "-".join(case.signature).replace(" ", "_").replace("/", "_")
        (folder / f"{name}-{case.seed}.txt").write_text(str(case))
        (folder / f"{name}-{case.seed}.json").write_text(case.to_json())


def _with(case: Case, phase: str, how: str) -> Case:
    from dataclasses import replace

    return replace(case, phase=phase, kind=phase, message=how)


def commit() -> str:
    """Return the commit of the sources, marked if they were changed."""
    made = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return made.stdout.strip() or "unknown"


def main() -> int:
    """Run walks, print a report, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--walks", type=int, default=0, help="stop after this number of walks")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, help="the first seed; random by default")
    parser.add_argument("--json", type=Path, help="totals, and the seeds of each run")
    parser.add_argument("--resume", action="store_true", help="continue after the last seed")
    parser.add_argument("--out", default="out/walks", help="folder of the failures")
    parser.add_argument("--family", default="")
    parser.add_argument("--goal", default="", choices=["", *VERBS])
    parser.add_argument("--defects", type=int, default=1000, help="stop after so many failures")
    parser.add_argument("--quick", action="store_true", help="do not minimize failures")
    options = parser.parse_args()
    totals, runs, first = Totals(), [], options.seed
    if options.resume and options.json and options.json.exists():
        data = json.loads(options.json.read_text())
        totals, runs = Totals.from_json(data["totals"]), data["runs"]
        first = runs[-1]["next"] if options.seed is None and runs else first
    first = secrets.randbits(31) if first is None else first
    entry = {"commit": commit(), "first": first, "next": first, "seconds": 0.0}
    runs.append(entry)
    driver, started = Driver(options, totals, first), time.monotonic()

    def save() -> None:
        entry.update(next=driver.next_seed, seconds=time.monotonic() - started)
        if options.json:
            options.json.write_text(json.dumps({"runs": runs, "totals": totals.to_json()}))

    driver.run(save)
    print(totals)
    print(f"seeds {first} to {driver.next_seed - 1}, {time.monotonic() - started:.0f} s,", end=" ")
    print(f"commit {entry['commit']}, {len(driver.failures)} failures shown")
    return int(bool(driver.failures) or bool(+totals.tables["defects"]))


if __name__ == "__main__":
    sys.exit(main())
