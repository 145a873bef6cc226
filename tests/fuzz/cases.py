"""A failing walk as data: it runs again, becomes smaller, and prints as text."""

from __future__ import annotations

import json
import random
import re
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tilewright.ir.loop.nodes import Block, Store
from tilewright.ir.loop.visit import loads, stores, walk as preorder
from tilewright.schedules.registry import STEPS

from tests.fuzz.contained import run_contained
from tests.fuzz.inputs import legal
from tests.fuzz.program import Indices, Program
from tests.fuzz.steps import FUNCTION, as_code, from_data
from tests.fuzz.walks import TARGETS, DefectError, Walk
from tests.schedules.random_steps import selections
from tests.strategies import symbols_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SECONDS = 30.0
"""The time limit of one run of a case."""


@dataclass(frozen=True)
class Case:
    """A failing walk: the program, its accepted steps, the step being tried, and the failure."""

    program: Program
    target: int
    steps: tuple[dict[str, Any], ...]
    pending: dict[str, Any] | None
    sizes: tuple[dict[str, int], ...]
    phase: str
    kind: str
    message: str = ""
    seed: int = 0

    @classmethod
    def of(cls, walk: Walk, defect: DefectError, seed: int) -> Case:
        """Return the case of a failed walk."""
        sizes = tuple({v.name: x for v, x in env.items()} for env in getattr(walk, "envs", ()))
        target = next(k for k, t in enumerate(TARGETS) if t == walk.target)
        return cls(
            walk.program, target, tuple(walk.history), walk.pending, sizes,
            defect.phase, defect.kind, defect.message, seed,
        )  # fmt: skip

    @property
    def shown_target(self) -> str:
        """The target as text."""
        return str(TARGETS[self.target])

    @property
    def signature(self) -> tuple[str, str, str]:
        """The part of a failure that other cases with the same cause have in common."""
        last = self.pending or (self.steps[-1] if self.steps else {"verb": ""})
        verb = last["verb"] if self.phase not in ("native", "simt", "default", "compile") else ""
        return self.phase, self.kind, str(verb) or self.program.family

    def to_json(self) -> str:
        """Return the case as JSON."""
        return json.dumps(vars(self), default=vars)

    @classmethod
    def from_json(cls, text: str) -> Case:
        """Return the case of JSON data."""
        data = json.loads(text)
        made = data["program"]
        made["indices"] = {k: Indices(**v) for k, v in made["indices"].items()}
        made["relations"] = tuple(made["relations"])
        data["program"] = Program(**made)
        data["steps"], data["sizes"] = tuple(data["steps"]), tuple(data["sizes"])
        return cls(**data)

    def __str__(self) -> str:
        """Return the program, the steps and the failure as text."""
        shown = [*self.steps, *([self.pending] if self.pending else [])]
        steps = "\n".join(map(as_code, shown)) or "none"
        at = "; ".join(", ".join(f"{k} = {v}" for k, v in s.items()) for s in self.sizes)
        return (
            f"[{self.phase}] {self.kind}, family {self.program.family}, target "
            f"{self.shown_target}, seed {self.seed}\n\n{self.program.text}\n"
            f"steps:\n{steps}\nsizes: {at or 'none'}\n\n{self.message}\n"
        )


def run(case: Case) -> DefectError | None:
    """Run a case in this process, and return its failure."""
    walk: Walk | None = None
    try:
        walk = Walk(random.Random(case.seed), case.program, TARGETS[case.target])
        _use_sizes(walk, case)
        _check_meaning(walk)
        for data in case.steps:
            if not walk.attempt(from_data(walk.state, data)):
                return None
            _use_sizes(walk, case)
        _last_phase(walk, case)
    except DefectError as defect:
        return defect
    except Exception:  # noqa: BLE001 - the changed program does not have the parts of a step
        return None
    return None


class ChangedMeaningError(Exception):
    """A changed program that reads elements that it never writes, or whose sizes are not legal."""


def _check_meaning(walk: Walk) -> None:
    """Check that every block stores, and that results depend on written elements only."""
    function = walk.original.function
    written: set[object] = set()
    for statement in preorder(function.body):
        if isinstance(statement, Block) and not any(stores(statement.body)):
            raise ChangedMeaningError(statement.name)
        if isinstance(statement, Store):
            written.add(statement.buffer)
    for load in loads(function.body):
        if load.buffer in function.buffers and load.buffer not in written:
            raise ChangedMeaningError(load.buffer.name)
    if walk.program.exact and walk.original.undefined(walk.envs):
        raise ChangedMeaningError("results are not numbers")
    if not walk.original.is_defined(walk.envs):
        raise ChangedMeaningError("results depend on elements that are not written")


def _use_sizes(walk: Walk, case: Case) -> None:
    symbols = {v.name: v for v in symbols_of(walk.original.function)}
    if not case.sizes or not all(symbols.keys() <= s.keys() for s in case.sizes):
        return
    envs = [{v: s[n] for n, v in symbols.items()} for s in case.sizes]
    for env in envs:
        if not legal(walk.program, walk.original.function, env):
            raise ChangedMeaningError("sizes are not legal")
    walk.envs = envs


def _last_phase(walk: Walk, case: Case) -> None:
    match case.phase:
        case "replay":
            walk.replayed()
        case "draw" if case.pending is None:
            for cls in STEPS.values():
                for handle in [*selections(walk.state), FUNCTION]:
                    with walk.phase("draw"):
                        list(getattr(cls, "suggest", lambda *_: ())(walk.state, handle))
        case "native":
            walk.natively(walk.function, "native")
        case "simt":
            walk.on_threads()
        case "default":
            walk.by_rules()
        case "compile":
            walk.compiled()
        case "crash" | "hang":
            if case.pending:
                walk.attempt(from_data(walk.state, case.pending), fixes=True)
            walk.finish()
        case "text":
            walk.round_trip()
        case _ if case.pending:
            walk.attempt(from_data(walk.state, case.pending), fixes=True)


def fails(case: Case, limit: float = SECONDS) -> str | None:
    """Run a case in another process; return the message if it fails in the same way."""
    outcome = run_contained(lambda: _shown(run(case)), limit)
    if outcome.ended:
        return outcome.ended if case.phase in ("crash", "hang") else None
    found = outcome.value
    if found and found[0] == case.phase and found[1] == case.kind:
        return found[2]
    return None


def _shown(defect: DefectError | None) -> list[str] | None:
    return None if defect is None else [defect.phase, defect.kind, defect.message]


@dataclass
class Minimizer:
    """The reduction of a case, bounded by a number of runs and by a time in seconds."""

    case: Case
    budget: int = 160
    test: Callable[[Case], str | None] = field(default=fails)
    seconds: float = 600.0
    started: float = field(default_factory=time.monotonic)

    def minimized(self) -> Case:
        """Return the smallest case found that fails in the same way."""
        if not self._try(self.case):
            return self.case
        before = None
        while before != self.case and self.budget > 0:
            before = self.case
            for change in (self._sizes, self._steps, self._statements, self._numbers):
                self._exhaust(change)
        return self.case

    def _try(self, case: Case) -> bool:
        self.budget -= 1
        if time.monotonic() - self.started > self.seconds:
            self.budget = 0
        message = self.test(case) if self.budget > 0 else None
        if message is None:
            return False
        self.case = replace(case, message=message)
        return True

    def _exhaust(self, changes: Callable[[], Iterator[Case]]) -> None:
        """Apply changes until none of them keeps the failure."""
        while self.budget > 0:
            if not any(self._try(candidate) for candidate in changes()):
                return

    def _steps(self) -> Iterator[Case]:
        steps = self.case.steps
        for size in (len(steps) // 2, 1):
            for first in range(len(steps) - 1, -1, -max(size, 1)):
                left = (*steps[: max(0, first - size + 1)], *steps[first + 1 :])
                if len(left) < len(steps):
                    yield replace(self.case, steps=left)

    def _sizes(self) -> Iterator[Case]:
        sizes = self.case.sizes
        if len(sizes) > 1:
            yield from (replace(self.case, sizes=(s,)) for s in sizes)
            return
        for name, value in (sizes[0] if sizes else {}).items():
            for smaller in sorted({0, 1, 2, value // 2, value - 1}):
                if 0 <= smaller < value:
                    yield replace(self.case, sizes=({**sizes[0], name: smaller},))

    def _statements(self) -> Iterator[Case]:
        lines = self.case.program.text.split("\n")
        start = next(k for k, line in enumerate(lines) if line.startswith("def ")) + 1
        for first in range(start, len(lines)):
            depth = _depth(lines[first])
            last = first + 1
            while last < len(lines) and lines[last].strip() and _depth(lines[last]) > depth:
                last += 1
            if lines[first].strip() and "with init()" not in lines[first]:
                yield self._text([*lines[:first], *lines[last:]])

    def _numbers(self) -> Iterator[Case]:
        text = self.case.program.text
        for old, new in (("f16", "f32"), ("bf16", "f32"), ("f64", "f32"), ("i8", "i32"),
                         ("u8", "i32"), ("i64", "i32")):  # fmt: skip
            if re.search(rf"\b{old}\b", text):
                yield self._text(re.sub(rf"\b{old}\b", new, text).split("\n"))
        for found in re.finditer(r"\b(\w+) \+ \w+\(1\)|\((\w+\[[^\]()]*\])\) \* \w+\(2\)", text):
            kept = found[1] or found[2]
            yield self._text((text[: found.start()] + kept + text[found.end() :]).split("\n"))
        for found in re.finditer(r"(?:range|symbols)\((\d\d+)", text):
            yield self._text((text[: found.start(1)] + "4" + text[found.end(1) :]).split("\n"))

    def _text(self, lines: Sequence[str]) -> Case:
        program = replace(self.case.program, text="\n".join(lines))
        return replace(self.case, program=program)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
