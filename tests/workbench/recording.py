"""Recordings of real sessions: the requests of a page and the updates it receives."""

from __future__ import annotations

import base64
import itertools
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tilewright.workbench.serialization import to_plain, update_to_plain

from tests.workbench.conftest import data_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tilewright.workbench.protocol import Update
    from tilewright.workbench.protocol_steps import Suggestion

    from tests.workbench.conftest import Client


@dataclass
class Recording:
    """The requests and updates of one session, in order."""

    name: str
    client: Client
    requests: list[dict[str, object]] = field(default_factory=list)

    def send(self, type_: str, **fields: object) -> Update:
        """Send a request, and return the answer."""
        self.requests.append({"type": type_, **fields})
        return self.client.send(type_, **fields)

    @property
    def head(self) -> str:
        return self.client.session.schedule.head.id

    def suggestions(self) -> list[Suggestion]:
        menu = self.send("suggest").menu
        return [] if menu is None else menu.suggestions

    def suggestion(self, step: str, label: str = "") -> Suggestion:
        return next(s for s in self.suggestions() if s.step == step and label in s.label)

    def apply(self, step: str, label: str = "", **values: str) -> None:
        data = data_of(self.suggestion(step, label), **values)
        self.send("apply", step=data, head=self.head)

    def apply_fix(self, step: str) -> None:
        """Apply the first fix of an illegal step."""
        fixes = (f for p in self.suggestion(step).problems for f in p.fixes)
        self.send("apply", step=to_plain(next(fixes).data), head=self.head)

    def preview(self, step: str, **values: str) -> None:
        """Ask for the program after a step."""
        suggestion = self.suggestion(step)
        self.run("preview", key=suggestion.key, step=data_of(suggestion, **values))

    def edit_group(self, action: str, **values: str) -> None:
        """Edit the first composite step of the trace."""
        self.send("edit_group", action=action, index=0, values=values, head=self.head)

    def navigate(self, action: str, node: str = "") -> None:
        self.send("navigate", action=action, node=node, head=self.head)

    def select(self, kind: str, name: str, function: str) -> None:
        uid = next(uid for uid, other in self._parts(kind, function) if other == name)
        self.send("select", kind=kind, function=function, uid=uid)

    def select_everything(self, function: str) -> None:
        """Select the function and each of its loops, blocks and buffers."""
        self.send("select", kind="function", function=function, uid=0)
        for kind in ("loop", "block", "buffer"):
            for uid, _ in list(self._parts(kind, function)):
                self.send("select", kind=kind, function=function, uid=uid)

    def check_every_form(self) -> None:
        """Check each suggestion with the values of its form."""
        for suggestion in self.suggestions():
            values = {f.name: f.value for f in suggestion.fields}
            self.send("check", step=data_of(suggestion, **values))

    def check_invalid_values(self, step: str, texts: Iterable[str]) -> None:
        """Check a suggestion with invalid values of its last field."""
        suggestion = self.suggestion(step)
        for text in texts:
            data = data_of(suggestion, **{suggestion.fields[-1].name: text})
            self.send("check", step=data)

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
        """Return all updates in serialized form."""
        return [
            {
                "update": update_to_plain(update),
                "buffers": [base64.b64encode(buffer).decode() for buffer in buffers],
            }
            for update, buffers in self.client.raw
        ]


def typescript(recordings: list[Recording], protocol: str) -> str:
    """Return all messages as literals of the protocol's TypeScript types."""
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
    """Return JSON that a browser can parse, without NaN and infinities."""
    return json.dumps(value, allow_nan=False)
