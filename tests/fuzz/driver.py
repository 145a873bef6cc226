"""Random walks in several processes, with the failures minimized beside them."""

from __future__ import annotations

import gc
import json
import select
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.fuzz.contained import STALLED, Child, Parent, ended, is_over
from tests.fuzz.kinds import LOOPS
from tests.fuzz.later import known
from tests.fuzz.totals import OF_A_WALK, Totals
from tests.fuzz.walks import DefectError, Walk, complete

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from tests.fuzz.cases import Case
    from tests.fuzz.kinds import Kind

BATCH = 60
"""The number of walks of one process."""

LIMIT = 90.0
"""The limit of the CPU time of a walk, in seconds."""

REPEATED = 2
"""The number of failures with the same signature that are minimized."""

SAVED = 15.0
"""The number of seconds after which the totals are written again."""

REDUCTION = 240.0
"""The time limit of the reduction of a failure, in seconds."""


def one(
    seed: int, family: str = "", goal: str = "", parent: Parent | None = None, kind: Kind = LOOPS
) -> dict[str, Any]:
    """Run one walk, and return its record; the note of the process is its present case."""
    walk, case, started = None, None, time.monotonic()

    def noted(current: Walk) -> None:
        if parent is not None:
            parent.note(kind.case.of(current, DefectError("hang", "hang", ""), seed).to_json())

    try:
        walk = kind.start(seed, family, goal)
        walk.watch = noted
        kind.advance(walk)
        walk.finish()
        if seed % kind.whole == 0:
            walk.compiled()
    except DefectError as defect:
        if walk is None:
            return {"seed": seed, "unparsed": str(defect)}
        case = kind.case.of(walk, defect, seed)
    tally = walk.tally
    return {
        "seed": seed,
        "family": walk.program.family,
        "counted": walk.counted,
        "complete": complete(walk) and case is None,
        "case": None if case is None else case.to_json(),
        "known": case is not None and known(walk.program.family, case.phase, case.message),
        "attempts": tally.attempts,
        "fixes": tally.fixes,
        "time": time.monotonic() - started,
        **{name: dict(getattr(tally, name)) for name in OF_A_WALK},
    }


@dataclass
class Batch:
    """The walks of one process that have no result yet."""

    seeds: list[int]
    since: float
    seed: int = 0


@dataclass
class Driver:
    """The walks of one run, in several processes."""

    options: argparse.Namespace
    next_seed: int
    kind: Kind = LOOPS
    totals: Totals = field(default_factory=Totals)
    failures: list[Case] = field(default_factory=list)
    seen: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    children: dict[Child, Batch] = field(default_factory=dict)
    queue: list[Case] = field(default_factory=list)
    reducers: dict[Child, Case] = field(default_factory=dict)

    def run(self, save: Callable[[], None]) -> None:
        """Run walks until the time is over, then finish the reduction of failures."""
        warm(self.kind)
        started = saved = time.monotonic()
        while self._continues(started):
            while len(self.children) < self.options.workers:
                self._start(self._batch())
            self._wait()
            self.totals.minutes = (time.monotonic() - started) / 60
            if time.monotonic() - saved > SAVED:
                save()
                saved = time.monotonic()
        for child in self.children:
            child.end(kill=True)
        self.children.clear()
        save()
        while self.queue or self.reducers:
            self._wait()
        save()

    def _continues(self, started: float) -> bool:
        over = time.monotonic() - started >= self.options.minutes * 60
        enough = 0 < self.options.walks <= self.totals.walks
        return not over and not enough and sum(self.seen.values()) < self.options.defects

    def _batch(self) -> list[int]:
        left = self.options.walks - self.totals.walks if self.options.walks else BATCH
        first = self.next_seed
        self.next_seed += min(BATCH, max(1, left))
        return list(range(first, self.next_seed))

    def _start(self, seeds: list[int]) -> None:
        family, goal, kind = self.options.family, self.options.goal, self.kind

        def work(parent: Parent) -> None:
            gc.set_threshold(20_000, 20, 100)
            for seed in seeds:
                parent.note("")
                parent.limit(LIMIT)
                parent.send(json.dumps({"start": seed}))
                parent.send(json.dumps(one(seed, family, goal, parent, kind)))

        self.children[Child.start(work)] = Batch(seeds, time.monotonic(), seeds[0])

    def _wait(self) -> None:
        """Handle the lines of the processes, their ends, and those that take too long."""
        if self.queue and not self.reducers:
            self._reduce(self.queue.pop(0))
        both = [*self.children, *self.reducers]
        ready = select.select([c.pipe for c in both], [], [], 1.0)[0]
        for child in both:
            if child.pipe in ready:
                more = child.read()
                if child in self.reducers:
                    if not more:
                        self._reduced(child)
                    continue
                for line in child.lines:
                    self._line(self.children[child], json.loads(line))
                child.lines.clear()
                if not more:
                    self._ended(child, child.end())
            elif child in self.children and self._is_stalled(child):
                child.end(kill=True)
                self._ended(child)

    def _is_stalled(self, child: Child) -> bool:
        return time.monotonic() - self.children[child].since > STALLED * LIMIT

    def _line(self, batch: Batch, record: dict[str, Any]) -> None:
        batch.since = time.monotonic()
        if "start" in record:
            batch.seed = record["start"]
            return
        batch.seeds.remove(record["seed"])
        if "unparsed" in record:
            print(f"seed {record['seed']}: {record['unparsed']}", flush=True)
            self.totals.tables["defects"]["unparsed"] += 1
            return
        self.totals.add(record)
        if record["case"]:
            self._failed(self.kind.case.from_json(record["case"]), is_known=record["known"])

    def _ended(self, child: Child, status: int | None = None) -> None:
        """Report a walk whose process crashed or was killed, and go on with the others."""
        batch = self.children.pop(child)
        if not batch.seeds:
            return
        phase, how = "hang", f"no result after {STALLED * LIMIT:g} s"
        if status is not None and is_over(status):
            how = f"no result after {LIMIT:g} s of CPU time"
        elif status is not None:
            phase, how = "crash", ended(status)
        message = f"{how}\n{child.stack}".strip()
        if child.note:
            case = self.kind.case.from_json(child.note)
            self._failed(replace(case, phase=phase, kind=phase, message=message))
        else:
            print(f"seed {batch.seed}: {phase} before the first step: {message}", flush=True)
            self.totals.tables["defects"][f"{phase} before the first step"] += 1
        with suppress(ValueError):
            batch.seeds.remove(batch.seed)
        if batch.seeds:
            self._start(batch.seeds)

    def _failed(self, case: Case, *, is_known: bool = False) -> None:
        table = "known" if is_known else "defects"
        self.totals.tables[table][" ".join(case.signature)] += 1
        if is_known:
            return
        self.seen[case.signature] += 1
        self._write(case)
        if self.seen[case.signature] <= REPEATED:
            if self.options.quick:
                self._shown(case)
            else:
                self.queue.append(case)

    def _reduce(self, case: Case) -> None:
        """Minimize a failure in a process of its own, while walks go on."""

        def work(parent: Parent) -> None:
            parent.send(self.kind.minimizer(case, seconds=REDUCTION).minimized().to_json())

        self.reducers[Child.start(work)] = case

    def _reduced(self, child: Child) -> None:
        case = self.reducers.pop(child)
        child.end()
        self._shown(self.kind.case.from_json(child.lines[-1]) if child.lines else case)

    def _shown(self, case: Case) -> None:
        self.failures.append(case)
        self._write(case)
        print(f"\n=== {case}", flush=True)

    def _write(self, case: Case) -> None:
        folder = Path(self.options.out)
        folder.mkdir(parents=True, exist_ok=True)
        name = "-".join((*case.signature, str(case.seed))).replace(" ", "_").replace("/", "_")
        (folder / f"{name}.txt").write_text(str(case))
        (folder / f"{name}.json").write_text(case.to_json())


def warm(kind: Kind = LOOPS) -> None:
    """Import modules before processes start, and exclude them from garbage collection."""
    with suppress(DefectError):
        walk = kind.start(0, "", "")
        kind.advance(walk)
        kind.warm(walk)
    gc.collect()
    gc.freeze()
