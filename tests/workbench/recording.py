"""Real sessions, recorded as they happen: what a page is told, and what it may ask."""

from __future__ import annotations

import base64
import itertools
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tilewright.workbench.wire import update_to_plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tilewright.workbench.protocol import Candidate, Update

    from tests.workbench.conftest import Client


@dataclass
class Recording:
    """One session: the requests in the order of their sending, and the updates as they came."""

    name: str
    client: Client
    requests: list[dict[str, object]] = field(default_factory=list)

    def send(self, type_: str, **fields: object) -> Update:
        self.requests.append({"type": type_, **fields})
        return self.client.send(type_, **fields)

    @property
    def head(self) -> str:
        return self.client.session.schedule.head.id

    def candidates(self) -> list[Candidate]:
        return self.client.session.shown.menu.candidates

    def apply(self, step: str, label: str = "", **values: str) -> None:
        key = self.client.candidate(step, label).key
        self.send("apply", key=key, values=values, head=self.head)

    def mend(self, step: str) -> None:
        """Apply the first fix of a blocked step."""
        fixes = (f for i in self.client.candidate(step).issues for f in i.fixes)
        self.send("apply", key=next(fixes).key, values={}, head=self.head)

    def travel(self, how: str, to: str = "") -> None:
        self.send("travel", how=how, to=to, head=self.head)

    def select(self, kind: str, name: str, function: str) -> None:
        uid = next(uid for uid, other in self._parts(kind, function) if other == name)
        self.send("select", kind=kind, function=function, uid=uid)

    def select_everything(self, function: str) -> None:
        """Select the function, and every loop, block and buffer of it."""
        self.send("select", kind="function", function=function, uid=0)
        for kind in ("loop", "block", "buffer"):
            for uid, _ in list(self._parts(kind, function)):
                self.send("select", kind=kind, function=function, uid=uid)

    def check_every_form(self) -> None:
        """Check each step of the menu with the values that its form shows."""
        for offered in list(self.candidates()):
            values = {f.name: f.value for f in offered.fields}
            self.send("check", key=offered.key, values=values)

    def fill_wrongly(self, step: str, texts: Iterable[str]) -> None:
        """Type into the first field of a step what no value is."""
        offered = self.client.candidate(step)
        for text in texts:
            self.send("check", key=offered.key, values={offered.fields[-1].name: text})

    def run(self, type_: str, **fields: object) -> None:
        self.send(type_, **fields)
        self.client.session.jobs.wait()

    def _parts(self, kind: str, function: str) -> Iterator[tuple[int, str]]:
        tree = self.client.session.state.tree(function)
        match kind:
            case "loop":
                return ((uid, loop.var.name) for uid, loop in tree.loops.items())
            case "block":
                return ((uid, block.name) for uid, block in tree.blocks.items())
            case _:
                return ((uid, buffer.name) for uid, buffer in tree.buffers.items())

    def updates(self) -> list[dict[str, object]]:
        """Everything that the page was told, as its widget gets it."""
        return [
            {
                "update": update_to_plain(update),
                "buffers": [base64.b64encode(buffer).decode() for buffer in buffers],
            }
            for update, buffers in self.client.heard
        ]


def typescript(recordings: list[Recording], protocol: str) -> str:
    """Write everything that travelled as literals of the protocol's TypeScript types."""
    updates = [item["update"] for recording in recordings for item in recording.updates()]
    requests = [request for recording in recordings for request in recording.requests]
    lines = [
        f'import type {{ Request, Update }} from "{protocol}";',
        *_constants("u", "Update", updates),
        *_constants("r", "Request", requests),
    ]
    return "\n".join(lines) + "\n"


def _constants(letter: str, type_: str, values: Iterable[object]) -> Iterator[str]:
    texts = dict.fromkeys(map(to_json, values))
    for number, text in zip(itertools.count(), texts, strict=False):
        yield f"export const {letter}{number}: {type_} = {text};"


def to_json(value: object) -> str:
    """Write as JSON that a page can parse, so without NaN and infinities."""
    return json.dumps(value, allow_nan=False)
