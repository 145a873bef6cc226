"""Sessions with small programs, without a browser."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

import tilewright as tw
from tilewright.workbench.bench import Bench
from tilewright.workbench.protocol import VERSION
from tilewright.workbench.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from tilewright.workbench.protocol import Suggestion, Update

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


@dataclass
class Client:
    """A client that sends requests like a page and stores all updates."""

    session: Session
    received: list[tuple[Update, list[bytes]]] = field(default_factory=list)
    number: int = 0

    def send(self, type_: str, **fields: object) -> Update:
        self.number += 1
        return self.session.handle({"type": type_, "id": self.number, **fields})

    def hello(self) -> Update:
        return self.send("hello", version=VERSION)

    def select(self, kind: str, uid: int, function: str = "matmul") -> Update:
        return self.send("select", kind=kind, function=function, uid=uid)

    def select_loop(self, name: str, function: str = "matmul") -> Update:
        loops = self.session.state.tree(function).loops
        uid = next(uid for uid, loop in loops.items() if loop.var.name == name)
        return self.select("loop", uid, function)

    def suggestion(self, step: str, label: str = "") -> Suggestion:
        suggestions = self.session.shown.menu.suggestions
        return next(s for s in suggestions if s.step == step and label in s.label)

    def apply(self, step: str, label: str = "", **values: str) -> Update:
        key = self.suggestion(step, label).key
        return self.send("apply", key=key, values=values, head=self.session.schedule.head.id)

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
        session.publish = lambda update, buffers: client.received.append((update, buffers))
        client.hello()
        return client

    return open_


@pytest.fixture
def matmul(connect: Callable[..., Client]) -> Client:
    return connect(MATMUL)


@pytest.fixture
def network(connect: Callable[..., Client]) -> Client:
    return connect(NETWORK)
