"""The event loop that receives messages."""

from __future__ import annotations

import asyncio

from tilewright.workbench.page.kernel_loop import probe_of_kernel


def test_an_action_runs_when_the_loop_is_idle() -> None:
    ran: list[str] = []

    async def cell() -> list[str]:
        probe = probe_of_kernel()
        later = asyncio.Event()
        probe(lambda: ran.append("idle"))
        probe(later.set)
        before = list(ran)
        await asyncio.wait_for(later.wait(), 60)
        return before

    assert asyncio.run(cell()) == []
    assert ran == ["idle"]


def test_without_a_loop_it_runs_at_once() -> None:
    ran: list[str] = []
    probe_of_kernel()(lambda: ran.append("now"))
    assert ran == ["now"]
