"""Sessions with small programs, without a browser."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

import tilewright as tw
from tilewright.workbench.bench import Bench
from tilewright.workbench.protocol import VERSION
from tilewright.workbench.serialization import to_plain
from tilewright.workbench.session import Session
from tilewright.workbench.view_diff import LISTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tilewright.errors import Json
    from tilewright.workbench.protocol import Update
    from tilewright.workbench.protocol_steps import Checked, StepData, Suggestion

MATMUL = """
n = symbols("n", lower=1)

@prim_func
def matmul(A: Buffer[(n, 16), f32], B: Buffer[(16, 24), f32], C: Out[(n, 24), f32]):
    for i in range(n):
        for j in range(24):
            for k in range(16):
                with block("C"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): C[vi, vj] = 0.0
                    C[vi, vj] += A[vi, vk] * B[vk, vj]
"""

NETWORK = """
n = symbols("n", lower=1, upper=64)

@prim_func
def twice(x: Buffer[(n, 8), f32], y: Out[(n, 8), f32]):
    for i in range(n):
        for j in range(8):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj] + x[vi, vj]


@graph_func
def main(x: Tensor[(n, 8), f32]):
    fact(n % 2 == 0, "an even number of rows", by="entry_check")
    hint("n", 6)
    a: Tensor[(n, 8), f32] = call_tir(twice, x)
    b: Tensor[(n, 8), f32] = call_tir(twice, a)
    return b
"""

ONE_THREAD = tw.Target("cpu", threads=1)


def data_of(suggestion: Suggestion, **values: str) -> Json:
    """Return the step of a suggestion with values of its form, as the browser sends it."""
    return to_plain(replace(suggestion.data, values={**suggestion.data.values, **values}))


@dataclass
class Client:
    """A client that sends requests like a page and stores all updates, with entire lists.

    ``raw`` are the updates as they were sent.
    """

    session: Session
    received: list[tuple[Update, list[bytes]]] = field(default_factory=list)
    raw: list[tuple[Update, list[bytes]]] = field(default_factory=list)
    lists: dict[str, list[object]] = field(default_factory=dict)
    number: int = 0
    name: str = "page"

    def send(self, type_: str, **fields: object) -> Update:
        self.number += 1
        message = {"type": type_, "id": self.number, "client": self.name, **fields}
        self.session.handle(message)
        return next(u for u, _ in reversed(self.received) if u.reply == self.number)

    def receive(self, update: Update, buffers: list[bytes]) -> None:
        """Store an update, with the elements of its lists that were sent before."""
        self.raw.append((update, buffers))
        for name, elements in LISTS.items():
            message = getattr(update, name)
            if message is None:
                continue
            old, new = self.lists.get(name, []), getattr(message, elements)
            whole = [*old[: message.keep or 0], *new, *old[len(old) - (message.tail or 0) :]]
            self.lists[name] = whole
            changed = replace(message, **{elements: whole}, keep=None, tail=None)
            update = replace(update, **{name: changed})
        self.received.append((update, buffers))

    def hello(self) -> Update:
        return self.send("hello", version=VERSION)

    def select(self, kind: str, uid: int, function: str = "matmul") -> Update:
        return self.send("select", kind=kind, function=function, uid=uid)

    def select_loop(self, name: str, function: str = "matmul") -> Update:
        loops = self.session.state.tree(function).loops
        uid = next(uid for uid, loop in loops.items() if loop.var.name == name)
        return self.select("loop", uid, function)

    def suggestions(self) -> list[Suggestion]:
        """Ask for the menu of the selection."""
        menu = self.send("suggest").menu
        return [] if menu is None else menu.suggestions

    def suggestion(self, step: str, label: str = "") -> Suggestion:
        return next(s for s in self.suggestions() if s.step == step and label in s.label)

    def check(self, suggestion: Suggestion, **values: str) -> Checked:
        """Check a suggestion with values of its form."""
        checked = self.send("check", step=data_of(suggestion, **values)).checked
        assert checked is not None
        return checked

    def apply_data(self, data: StepData) -> Update:
        return self.send("apply", step=to_plain(data), head=self.session.schedule.head.id)

    def apply(self, step: str, label: str = "", **values: str) -> Update:
        data = data_of(self.suggestion(step, label), **values)
        return self.send("apply", step=data, head=self.session.schedule.head.id)

    def apply_fix(self, step: str) -> Update:
        """Apply the first fix of an illegal suggestion."""
        fixes = (f for p in self.suggestion(step).problems for f in p.fixes)
        return self.apply_data(next(fixes).data)

    def text(self, function: str = "matmul") -> str:
        return self.session.schedule.module.functions[function] and self.latest(function)

    def latest(self, function: str) -> str:
        panes = [
            p for update, _ in self.received for p in update.panes or () if p.function == function
        ]
        return panes[-1].text


@pytest.fixture(scope="session")
def connect() -> Callable[..., Client]:
    """Open a session on a program and connect a client."""

    def open_(program: str | tw.Schedule, target: tw.Target = ONE_THREAD) -> Client:
        schedule = tw.Schedule(tw.parse(program)) if isinstance(program, str) else program
        session = Session(schedule, Bench(target))
        client = Client(session)
        session.publish = client.receive
        client.hello()
        return client

    return open_


@pytest.fixture
def matmul(connect: Callable[..., Client]) -> Client:
    return connect(MATMUL)


@pytest.fixture
def network(connect: Callable[..., Client]) -> Client:
    return connect(NETWORK)
