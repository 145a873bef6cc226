"""A failing walk on a graph program as data: it runs again, and becomes smaller."""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.ir.graph.nodes import GraphFunc, Value
from tilewright.ir.graph.visit import inner_bindings
from tilewright.schedules.registry import STEPS

from tests.fuzz.cases import SECONDS, Case, Minimizer
from tests.fuzz.contained import run_contained
from tests.fuzz.graphs.inputs import legal, symbols_of
from tests.fuzz.graphs.program import GraphProgram
from tests.fuzz.graphs.walks import TARGETS, GraphWalk
from tests.fuzz.steps import from_data
from tests.fuzz.walks import DefectError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tilewright.ir.graph.nodes import Binding

PATHS = ("native", "simt", "default", "export")
"""Phases in which no step is tried."""


@dataclass(frozen=True)
class GraphCase(Case):
    """A failing walk on a graph program."""

    program: GraphProgram  # type: ignore[assignment]

    @classmethod
    def of(cls, walk: GraphWalk, defect: DefectError, seed: int) -> GraphCase:  # type: ignore[override]
        """Return the case of a failed walk."""
        sizes = tuple(dict(env) for env in getattr(walk, "envs", ()))
        return cls(
            walk.program, TARGETS.index(walk.target), tuple(walk.history), walk.pending, sizes,
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
        verb = "" if self.phase in PATHS else str(last["verb"])
        return self.phase, self.kind, verb or self.program.family

    def to_json(self) -> str:
        """Return the case as JSON."""
        return json.dumps({**vars(self), "program": self.program.to_data()})

    @classmethod
    def from_json(cls, text: str) -> GraphCase:
        """Return the case of JSON data."""
        data = json.loads(text)
        data["program"] = GraphProgram.from_data(data["program"])
        data["steps"], data["sizes"] = tuple(data["steps"]), tuple(data["sizes"])
        return cls(**data)


def run(case: GraphCase) -> DefectError | None:
    """Run a case in this process, and return its failure."""
    try:
        walk = GraphWalk(random.Random(case.seed), case.program, TARGETS[case.target])
        _use_sizes(walk, case)
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


def _use_sizes(walk: GraphWalk, case: GraphCase) -> None:
    names = set(symbols_of(case.program.function, case.program))
    known = [{k: v for k, v in s.items() if k in names} for s in case.sizes]
    envs = [s for s in known if s.keys() == names and legal(case.program, case.program.function, s)]
    if envs:
        walk.envs = envs  # type: ignore[assignment]


def _last_phase(walk: GraphWalk, case: GraphCase) -> None:
    if case.pending is not None:
        walk.attempt(from_data(walk.state, case.pending), fixes=True)
    elif case.phase == "text":
        walk.round_trip()
    elif case.phase == "replay":
        walk.replayed()
    elif case.phase == "export":
        walk.compiled()
    elif case.phase == "draw":
        _suggestions(walk)
    else:
        for _ in range(3):  # at every feature level
            walk.finish()


def _suggestions(walk: GraphWalk) -> None:
    """Ask every step for suggestions at every part of the program."""
    from tests.fuzz.graphs.steps import focused, kernels
    from tests.schedules.random_steps import selections

    for kernel in kernels(walk.state):
        own = focused(walk.state, kernel)
        for cls in STEPS.values():
            for handle in selections(own):
                with walk.phase("draw"):
                    list(getattr(cls, "suggest", lambda *_: ())(own, handle))


def fails(case: Case, limit: float = SECONDS) -> str | None:
    """Run a case in another process; return the message if it fails in the same way."""
    outcome = run_contained(lambda: _shown(run(case)), limit)  # type: ignore[arg-type]
    if outcome.ended:
        return outcome.ended if case.phase in ("crash", "hang") else None
    found = outcome.value
    same = found and found[0] == case.phase and found[1] == case.kind
    return found[2] if same and _same(found[2], case.message) else None


def _same(one: str, other: str) -> bool:
    """Return whether two messages name the same rule, or none."""
    found, wanted = (re.match(r"\[([A-Z]\d+)", text) for text in (one, other))
    return (found and found[1]) == (wanted and wanted[1])


def _shown(defect: DefectError | None) -> list[str] | None:
    return None if defect is None else [defect.phase, defect.kind, defect.message]


class GraphMinimizer(Minimizer):
    """The reduction of a case on a graph program."""

    def __init__(self, case: GraphCase, seconds: float = 600.0) -> None:
        super().__init__(case, test=fails, seconds=seconds)

    def _statements(self) -> Iterator[Case]:
        """Yield the program without a result, or with a value in place of another one."""
        yield from map(self._text, smaller(self.case.program))  # type: ignore[arg-type]


def smaller(program: GraphProgram) -> Iterator[list[str]]:
    """Yield the lines of smaller programs, the most different ones first."""
    try:
        module = program.module
    except Exception:  # noqa: BLE001 - the text was reduced too far
        return
    lines = program.text.split("\n")
    for k, line in enumerate(lines):
        if line.strip().startswith("return ") and "," in line:
            parts = line.strip().removeprefix("return ").split(", ")
            for own in range(len(parts)):
                rest = ", ".join(parts[:own] + parts[own + 1 :])
                yield tidy([*lines[:k], f"    return {rest}", *lines[k + 1 :]])
    for function in module.graphs:
        for value, others in _alternatives(program, function):
            chunk = _lines_of(lines, function.name, value.name)
            if chunk is None:
                continue
            first, last = chunk
            used = any(_names(value.name, line) for line in lines[last:])
            for other in others if used else [""]:
                after = [_renamed(line, value.name, other) for line in lines[last:]]
                yield tidy([*lines[:first], *(after if used else lines[last:])])


def _alternatives(program: GraphProgram, function: GraphFunc) -> Iterator[tuple[Value, list[str]]]:
    """Yield each value from the last one on, with earlier values of the same annotation."""
    known = [p.value for p in function.params]
    found = []
    for value in _values(function.bindings):
        fits = [
            v.name for v in known
            if str(v.info) == str(value.info)
            and (v.name not in program.rounded or value.name in program.rounded)
        ]  # fmt: skip
        found.append((value, fits[:2]))
        known.append(value)
    yield from reversed(found)


def _values(bindings: Sequence[Binding]) -> Iterator[Value]:
    for binding in bindings:
        for inner in inner_bindings(binding.right):
            yield from _values(inner)
        yield binding.value


def _lines_of(lines: Sequence[str], function: str, name: str) -> tuple[int, int] | None:
    """Return the lines that bind a value: one, a branch, or a loop."""
    start = next(k for k, x in enumerate(lines) if x.startswith(f"def {function}("))
    for k in range(start + 1, len(lines)):
        if lines[k].startswith(("def ", "@")):
            return None
        if re.match(rf" +def {name}\(", lines[k]):
            depth = len(lines[k]) - len(lines[k].lstrip())
            last = k + 1
            while lines[last].startswith(" " * (depth + 1)):
                last += 1
            return k - 1, last
        if not re.match(rf" +{name}\b[^(]*=", lines[k]):
            continue
        first = last = k
        indent = len(lines[k]) - len(lines[k].lstrip())
        opened = indent - 4
        body = lines[k + 1] if k + 1 < len(lines) else ""
        if opened >= 4 and body.strip() == "else:" and len(body) - len(body.lstrip()) == opened:
            while not (lines[first].startswith(" " * opened + "if ")):
                first -= 1
            last += 2
            while not re.match(rf" {{{indent}}}{name}\b[^(]*=", lines[last]):
                last += 1
        return first, last + 1
    return None


def _names(name: str, line: str) -> bool:
    return re.search(rf"\b{name}\b", line) is not None


def _renamed(line: str, old: str, new: str) -> str:
    return re.sub(rf"\b{old}\b", new, line)


def tidy(lines: Sequence[str]) -> list[str]:
    """Return a program without functions, inputs, constants and symbols that nothing uses."""
    text = re.sub(r"\n\n+", "\n\n", "\n".join(lines))
    before = ""
    while text != before:
        before = text
        for found in re.finditer(r"@\w+\ndef (\w+)\(.*?(?=\n@|\Z)", text, re.DOTALL):
            if found[1] != "main" and len(re.findall(rf"\b{found[1]}\b", text)) == 1:
                text = text.replace(found[0].rstrip("\n") + "\n", "", 1)
        main = text.index("def main(")
        head = text[main : text.index("\n", main)]
        for name in re.findall(r"(\w+): Tensor", head):
            if len(re.findall(rf"\b{name}\b", text[main:])) == 1 and head.count(": Tensor") > 1:
                made = re.sub(rf"(, )?{name}: Tensor[\[(].*?(?=, \w+: |\):)", "", head)
                text = text.replace(head, made.replace("(, ", "("), 1)
                break
        for line in text.split("\n"):
            name = re.match(r'constant\("([^"]*)"|(\w+) = symbols', line)
            if name and len(re.findall(rf"(?<![\w.]){re.escape(name[1] or name[2])}(?![\w.])",
                                       text.replace(f'symbols("{name[2]}"', ""))) == 1:  # fmt: skip
                text = text.replace(line + "\n", "", 1)
    return text.split("\n")
