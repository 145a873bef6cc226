"""Sessions whose target is the GPU of a fake page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

import tilewright as tw
from tilewright.schedules import Schedule
from tilewright.workbench.page import bench
from tilewright.workbench.page.benches import bench_of
from tilewright.workbench.session import Session

from tests.workbench.conftest import MATMUL, Client
from tests.workbench.page.fake_page import FakePage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tilewright.workbench.protocol import Problem

BROWSER = tw.Target("webgpu", where="browser")


@dataclass
class Paged:
    """A client of a session, and its page."""

    client: Client
    page: FakePage

    def run(self, action: str = "compile", function: str = "") -> None:
        """Run a job to its end."""
        self.client.send("run", action=action, function=function)
        self.client.session.jobs.wait(60)

    @property
    def document(self) -> Any:
        return self.client.session.document

    @property
    def problem(self) -> Problem:
        """The last problem."""
        return self.document.problems[0]


@pytest.fixture(autouse=True)
def module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A module for pages that needs no build."""
    (tmp_path / "gpu.js").write_text("// module", encoding="utf-8")
    monkeypatch.setattr(bench, "MODULE", tmp_path / "gpu.js")


@pytest.fixture
def paged() -> Callable[..., Paged]:
    """Return a function that opens a session of a program in a fake page."""

    def open_(program: str = MATMUL, page: FakePage | None = None, **options: Any) -> Paged:
        page = page or FakePage()
        service = bench_of(BROWSER, page.pages)
        schedule = Schedule(tw.parse(program, **options), BROWSER)
        session = Session(schedule, service, pages=page.pages)
        client = Client(session)
        session.publish = client.receive
        client.hello()
        return Paged(client, page)

    return open_
