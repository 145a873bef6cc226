"""Disable each requirement of each primitive, and report those that nothing notices.

``python -m tests.fuzz.mutate`` filters the problems of one requirement at a time. Walks
that aim at the primitive then fail in a check of results, or else the tests of the primitive do. A
requirement that neither notices is a survivor: it is redundant, or no program of `programs` needs
it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from tilewright.schedules.registry import STEPS

from tests.fuzz import plans
from tests.fuzz.cases import Case, run
from tests.fuzz.contained import run_contained
from tests.fuzz.steps import KINDS, VERBS
from tests.fuzz.walks import SIMT, DefectError, Walk, start, toward

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tilewright.schedules.apply import Primitive
    from tilewright.schedules.requirement import Requirement

TRIES = 8
"""The number of tries of the primitive in one walk."""

LIMIT = 300.0
"""The time limit of the tests of a primitive, and of one walk, in seconds."""


@dataclass(frozen=True)
class Result:
    """The checks that noticed a disabled requirement: a phase of a walk, or tests."""

    verb: str
    requirement: str
    walk: str
    tests: bool
    walks: int

    @property
    def survived(self) -> bool:
        """Whether nothing noticed."""
        return not self.walk and not self.tests

    def __str__(self) -> str:
        """Return the result as one line."""
        found = [f"a walk ({self.walk})"] if self.walk else []
        found += ["its tests"] if self.tests else []
        by = f"noticed by {' and '.join(found)}" if found else "SURVIVED"
        return f"{self.verb}.{self.requirement}: {by}, {self.walks} walks"


@contextmanager
def disabled(cls: type[Primitive], requirement: Requirement) -> Iterator[None]:
    """Ignore the problems of one requirement."""

    def without(phase: str):
        original = getattr(cls, phase)
        return lambda self, state: (
            p for p in original(self, state) if p.requirement is not requirement
        )

    with (
        mock.patch.object(cls, "structural", without("structural")),
        mock.patch.object(cls, "proofs", without("proofs")),
    ):
        yield


def aimed(walk: Walk, verb: str) -> None:
    """Try one primitive repeatedly, and run the result; the walk fails if a check does."""
    for _ in range(TRIES):
        if toward(walk, verb, 1) and (verb in KINDS or walk.rng.random() < 0.3):
            walk.natively(walk.function, "native", ("avx2",))
            if walk.target == SIMT:
                walk.on_threads()


def by_walks(cls: type[Primitive], requirement: Requirement, seconds: float) -> list[object]:
    """Return the phase of the first walk that fails, and the number of walks."""
    end, seed = time.monotonic() + seconds, 0
    on_tiles = requirement.name == "NOT_TENSORIZED"
    while time.monotonic() < end:
        walk = start(seed, goal="tensorize" if on_tiles else cls.verb())
        try:
            if on_tiles:
                plans.tensorize(walk)
            with disabled(cls, requirement):
                aimed(walk, cls.verb())
        except DefectError as defect:
            if run(Case.of(walk, defect, seed)) is None:
                return [defect.phase, seed + 1]
        seed += 1
    return ["", seed]


def by_tests(cls: type[Primitive], requirement: Requirement | None) -> bool:
    """Return whether a test of the primitive fails: its own file, then those of its family."""
    folder = Path("tests/schedules/primitives", cls.family)
    own = folder / f"test_{cls.verb()}.py"
    with nullcontext() if requirement is None else disabled(cls, requirement):
        return any(_fail(path) for path in (own, folder) if path.exists())


def _fail(path: Path) -> bool:
    """Return whether a test of a file or a folder fails, without output."""
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-W",
               "ignore::pytest.PytestAssertRewriteWarning", str(path)]  # fmt: skip
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        return pytest.main(options) != pytest.ExitCode.OK


def noticed(cls: type[Primitive], requirement: Requirement, seconds: float) -> Result:
    """Disable a requirement, and return the checks that notice it."""
    found = run_contained(lambda: by_walks(cls, requirement, seconds), seconds + LIMIT)
    phase, walks = found.value or (f"crash: {found.ended}", 0)
    tests = tests_fail(cls, requirement)
    return Result(cls.verb(), requirement.key, str(phase), tests, int(walks))


def tests_fail(cls: type[Primitive], requirement: Requirement | None) -> bool:
    """Return whether the tests of a primitive fail, in another process."""
    outcome = run_contained(lambda: by_tests(cls, requirement), LIMIT)
    if outcome.ended:
        print(f"the tests of {cls.verb()} ended with {outcome.ended}", flush=True)
    return bool(outcome.value)


def main() -> int:
    """Disable every requirement in turn, and return the number of survivors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="of walks, per requirement")
    parser.add_argument("--verb", choices=VERBS, help="only this primitive")
    parser.add_argument("--json", type=Path, help="the file of the results")
    options = parser.parse_args()
    results: list[Result] = []
    for verb in [options.verb] if options.verb else VERBS:
        cls: type[Primitive] = STEPS[verb]  # type: ignore[assignment]
        if tests_fail(cls, None):
            print(f"the tests of {verb} fail without a change", flush=True)
        for requirement in cls.Requires:
            results.append(noticed(cls, requirement, options.seconds))
            print(results[-1], flush=True)
            if options.json:
                options.json.write_text(json.dumps([vars(r) for r in results]))
    survivors = [r for r in results if r.survived]
    print(f"{len(results)} requirements, {sum(bool(r.walk) for r in results)} noticed by walks, "
          f"{sum(r.tests for r in results)} by tests, {len(survivors)} survivors")  # fmt: skip
    return len(survivors)


if __name__ == "__main__":
    sys.exit(main())
