"""Disable each check in turn, and report the test or walk that notices it.

``python -m tests.fuzz.mutate`` runs the tests of the checks once, and records which check rejects
something in which test. Then it disables one check at a time, in a forked process, and runs the
tests in which it rejected something: at least one *rejecting test* must fail. A step that only
the disabled requirement rejects is also applied, and the result compared with the oracles: its
*effect* is a wrong result, an ill-formed program, or an error. Walks look for an effect of the
requirements that no test notices.

``--record`` writes the table `mutation.json`, which `test_mutate` compares with the checks that
exist. A check that nothing notices needs an entry in `EXPLAINED`.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import os
import signal
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.runner import runtestprotocol

from tests.fuzz import plans
from tests.fuzz.cases import Case, run
from tests.fuzz.contained import run_contained
from tests.fuzz.effects import effect, is_defect, rank
from tests.fuzz.mutants import disabled, hooked, keys
from tests.fuzz.steps import KINDS, VERBS
from tests.fuzz.walks import SIMT, DefectError, Walk, start, toward

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tilewright.schedules.apply import Primitive
    from tilewright.schedules.state import State

TABLE = Path(__file__).with_name("mutation.json")
"""The committed results, by kind and key of the check."""

TESTS = (
    "tests/schedules/launch",
    "tests/schedules/primitives",
    "tests/schedules/test_allocations.py",
    "tests/schedules/test_block_scope.py",
    "tests/schedules/test_composite.py",
    "tests/schedules/test_domain_checks.py",
    "tests/schedules/test_inline_checks.py",
    "tests/schedules/test_primitives.py",
    "tests/schedules/test_problem.py",
    "tests/schedules/test_schedule.py",
    "tests/schedules/test_thread_checks.py",
    "tests/ir/analysis/test_bounds.py",
    "tests/ir/analysis/test_entry_checks.py",
    "tests/ir/graph/test_verify.py",
    "tests/ir/loop/test_verify.py",
    "tests/ir/test_verify.py",
    "tests/codegen/lower/host",
    "tests/codegen/lower/math/test_expansion.py",
    "tests/codegen/lower/passes",
    "tests/codegen/lower/test_pipeline.py",
    "tests/codegen/lower/thread_passes",
    "tests/codegen/lower/to_thread/test_cpu_intrinsics.py",
    "tests/codegen/lower/to_thread/test_gpu_intrinsics.py",
    "tests/codegen/lower/to_thread/test_gpu_statements.py",
    "tests/codegen/runtime/cuda/test_device.py",
    "tests/codegen/runtime/cuda/test_flow.py",
    "tests/codegen/runtime/test_outputs.py",
    "tests/codegen/test_errors.py",
    "tests/codegen/test_program_checks.py",
)
"""The tests of the checks."""

EXPLAINED: dict[str, str] = {}
"""The checks that nothing notices, with the reason why they exist."""

TRIES = 8
"""The number of tries of the primitive in one walk."""

LIMIT = 300.0
"""The time limit of the tests of a check, and of one walk, in seconds."""

TEST_LIMIT, EFFECT_LIMIT, EFFECTS_LIMIT = 100.0, 15.0, 2.0
"""The time limits of a test, of an effect, and of further tests for an effect, in seconds."""

RECORDING = 3000.0
"""The time limit of the recording of all tests, in seconds."""

CHOSEN = 12
"""The largest number of tests that run with a check disabled."""

PER_TEST = 3
"""The largest number of steps of a test whose effect is determined."""


@dataclass
class Row:
    """The test or walk that noticed a disabled check.

    Parameters
    ----------
    by : str
        ``rejecting test``, ``walk``, or empty.
    test : str
        The test that failed.
    effect : str
        The effect of a step that only this requirement rejects.
    walk : str
        The phase of the walk that failed.
    """

    by: str = ""
    test: str = ""
    effect: str = ""
    walk: str = ""

    def __str__(self) -> str:
        """Return the row as one line."""
        found = {"rejecting test": self.test, "walk": self.walk}.get(self.by, "")
        shown = f"{self.by} ({found})" if self.by else "SURVIVED"
        return f"{shown}; {self.effect}" if self.effect else shown

    def to_json(self) -> dict[str, str]:
        """Return the fields that are not empty."""
        return {name: value for name, value in asdict(self).items() if value}


@dataclass
class Recording:
    """The tests in which each check rejects something, with their duration in seconds."""

    found: dict[str, list[str]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def tests(self, key: str) -> list[str]:
        """Return tests in which a check rejects something: tests of primitives first, then fast."""
        return sorted(
            (t for t in self.found.get(key, ()) if t not in self.failed),
            key=lambda t: (key.partition(".")[0] not in t, round(self.seconds[t], 1)),
        )


class Collected:
    """A plugin of pytest that calls a function with the collected tests instead of running them."""

    def __init__(self, action: Callable[[Sequence[pytest.Item]], None]) -> None:
        self.action = action

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Call the function."""
        self.action(session.items)
        return True


def collected(paths: Iterable[str], action: Callable[[Sequence[pytest.Item]], None]) -> int:
    """Call a function with the tests of some files or folders."""
    options = ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "-W",
               "ignore::pytest.PytestAssertRewriteWarning", *paths]  # fmt: skip
    return pytest.main(options, plugins=[Collected(action)])


def name_of(item: pytest.Item) -> str:
    """Return the path and the name of a test, without its parameters."""
    return item.nodeid.partition("[")[0]


def fails(items: Sequence[pytest.Item], k: int) -> bool:
    """Run one of the tests, and return whether it fails, or takes too long."""
    following = items[k + 1] if k + 1 < len(items) else None
    with limited(TEST_LIMIT):
        return any(r.failed for r in runtestprotocol(items[k], log=False, nextitem=following))


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `TimeoutError` after some seconds."""

    def expired(*_: object) -> None:
        raise TimeoutError(f"no result after {seconds:g} s")

    old = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def quiet(work: Callable[[], Any], limit: float) -> Any:
    """Run a function in a forked process without output; return its result, or how it ended.

    The process has its own cache of machine code, since a disabled check may change the code.
    """
    folder = tempfile.TemporaryDirectory()

    def silent() -> Any:
        os.environ["TILEWRIGHT_CACHE"] = folder.name
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        gc.unfreeze()  # the objects that exist when the tests start are frozen
        for cached in gc.get_objects():
            if type(cached) is functools._lru_cache_wrapper:
                cached.cache_clear()
        return work()

    with folder:
        outcome = run_contained(silent, limit)
    return outcome.ended or outcome.value


def record(items: Sequence[pytest.Item]) -> dict[str, Any]:
    """Run all tests, and return the fields of a recording."""
    made, current = Recording(), [""]

    def noticed(key: str, *step: Any) -> bool:
        tests = made.found.setdefault(key, [])
        if step != (None,) and current[0] not in tests[-1:]:
            tests.append(current[0])
        return False

    with hooked(noticed):
        for k, item in enumerate(items):
            current[0], started = item.nodeid, time.perf_counter()
            if fails(items, k):
                made.failed.append(item.nodeid)
            made.seconds[item.nodeid] = time.perf_counter() - started
    return asdict(made)


def by_tests(key: str, items: Sequence[pytest.Item]) -> dict[str, str]:
    """Disable a check, and return the first test that fails, and the effect of rejected steps."""
    applied: list[tuple[Primitive, State]] = []
    end, row = time.monotonic() + EFFECTS_LIMIT, Row()

    def noticed(found: str, *step: Any) -> bool:
        if found == key and len(step) == 2 and len(applied) < PER_TEST:
            applied.append((step[0], step[1]))
        return found == key

    with hooked(noticed):
        for k, item in enumerate(items):
            if row.by and (not row.effect or is_defect(row.effect) or time.monotonic() > end):
                break
            applied.clear()
            if fails(items, k) and not row.by:
                row.by, row.test = "rejecting test", name_of(item)
            row.effect = worst(row.effect, list(applied))
    return row.to_json()


def worst(found: str, steps: Sequence[tuple[Primitive, State]]) -> str:
    """Return the most serious effect of some steps, each with the state that it applies to."""
    for step, state in steps:
        if found and is_defect(found):
            break
        with limited(EFFECT_LIMIT):
            new = effect(step, state)
        found = min(found, new, key=rank) if found else new
    return found


def aimed(walk: Walk, verb: str) -> None:
    """Try one primitive repeatedly, and run the result; the walk fails if a check does."""
    for _ in range(TRIES):
        if toward(walk, verb, 1) and (verb in KINDS or walk.rng.random() < 0.3):
            walk.natively(walk.function, "native", ("avx2",))
            if walk.target == SIMT:
                walk.on_threads()


def by_walks(key: str, seconds: float) -> str:
    """Return the phase of the first walk that fails with a disabled requirement."""
    end, seed, verb = time.monotonic() + seconds, 0, key.partition(".")[0]
    on_tiles = key.endswith(".not_tensorized")
    while time.monotonic() < end:
        walk = start(seed, goal="tensorize" if on_tiles else verb)
        try:
            if on_tiles:
                plans.tensorize(walk)
            with disabled(key):
                aimed(walk, verb)
        except DefectError as defect:
            if run(Case.of(walk, defect, seed)) is None:
                return defect.phase
        seed += 1
    return ""


def noticed_by(key: str, items: Sequence[pytest.Item], seconds: float) -> Row:
    """Disable a check in another process, and return the test or walk that notices it."""
    found = quiet(lambda: by_tests(key, items), LIMIT) if items else {}
    if isinstance(found, str):
        return Row("rejecting test", name_of(items[0]), f"error in the step: {found}")
    row, verb = Row(**found), key.partition(".")[0]
    if not row.by and verb in VERBS and seconds:
        phase = quiet(lambda: by_walks(key, seconds), seconds + LIMIT)
        row.by, row.walk = ("walk", phase) if phase else ("", "")
    return row


def results(
    wanted: dict[str, list[str]], items: Sequence[pytest.Item], seconds: float
) -> dict[str, dict[str, Row]]:
    """Disable the checks one at a time, and return a row for each."""
    started = time.monotonic()
    with hooked(lambda *_: False):
        pass  # forked processes reuse the code that this makes
    recorded = quiet(lambda: record(items), RECORDING)
    if isinstance(recorded, str):
        print(f"the recording of the tests ended with {recorded}")
        return {}
    recording = Recording(**recorded)
    print(f"{len(items)} tests in {time.monotonic() - started:.0f} s", flush=True)
    for test in recording.failed:
        print(f"{test} fails without a change", flush=True)
    by_id = {item.nodeid: item for item in items}
    made: dict[str, dict[str, Row]] = {}
    for kind, listed in wanted.items():
        made[kind] = {}
        for key in listed:
            chosen = [by_id[t] for t in recording.tests(key)[:CHOSEN]]
            row = made[kind][key] = noticed_by(key, chosen, seconds)
            print(f"{key}: {row}", flush=True)
    return made


def table() -> dict[str, dict[str, Row]]:
    """Return the committed results."""
    found = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    return {kind: {k: Row(**r) for k, r in rows.items()} for kind, rows in found.items()}


def merged(new: dict[str, dict[str, Row]], *, all_tests: bool) -> dict[str, dict[str, Row]]:
    """Return the committed results with new rows, without those of checks that do not exist.

    Some of the tests do not show that nothing notices a check.
    """
    old = table()
    found = {
        kind: {**old.get(kind, {}), **{k: r for k, r in rows.items() if r.by or all_tests}}
        for kind, rows in new.items()
    }
    return {
        kind: {key: found[kind][key] for key in listed if key in found[kind]}
        for kind, listed in keys().items()
    }


def survivors(made: dict[str, dict[str, Row]]) -> list[str]:
    """Return the checks that nothing noticed and nothing explains."""
    rows = {k: r for found in made.values() for k, r in found.items()}
    return [k for k, r in rows.items() if not r.by and k not in EXPLAINED]


def text_of(made: dict[str, dict[str, Row]]) -> str:
    """Return results as the text of a JSON file, with one row per line."""
    kinds = []
    for kind, rows in made.items():
        lines = [f"    {json.dumps(k)}: {json.dumps(r.to_json())}" for k, r in rows.items()]
        kinds.append(f"  {json.dumps(kind)}: {{\n" + ",\n".join(lines) + "\n  }")
    return "{\n" + ",\n".join(kinds) + "\n}\n"


def main() -> int:
    """Disable the checks in turn, and return the number of survivors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", nargs="*", default=TESTS, help="the files or folders of tests")
    parser.add_argument("--seconds", type=float, default=20.0, help="of walks, per survivor")
    parser.add_argument("--only", default="", help="only the checks whose key contains this text")
    parser.add_argument("--json", type=Path, help="a file of the results")
    parser.add_argument("--record", action="store_true", help=f"write the rows of {TABLE.name}")
    options = parser.parse_args()
    wanted = {kind: [k for k in found if options.only in k] for kind, found in keys().items()}
    made: dict[str, dict[str, Row]] = {}
    collected(options.tests, lambda items: made.update(results(wanted, items, options.seconds)))
    if not made:
        return 1
    if options.json:
        options.json.write_text(text_of(made))
    if options.record:
        TABLE.write_text(text_of(merged(made, all_tests=options.tests is TESTS)))
    rows, left = [r for found in made.values() for r in found.values()], survivors(made)
    print(f"{len(rows)} checks, {sum(r.by == 'rejecting test' for r in rows)} noticed by tests, "
          f"{sum(r.by == 'walk' for r in rows)} by walks, {len(left)} survivors")  # fmt: skip
    print("\n".join(left))
    return len(left)


if __name__ == "__main__":
    sys.exit(main())
