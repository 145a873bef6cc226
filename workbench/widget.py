"""The workbench in a notebook: a session behind an anywidget."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from ..ir.errors import TilewrightError
from ..ir.loop.nodes import PrimFunc
from ..ir.module import Module
from ..ir.target import Target, as_target
from ..schedules import Schedule
from .protocol import Update
from .runs import Bench
from .session import Session
from .snapshot import snapshot_html, snapshot_text
from .wire import update_to_plain

STATIC = Path(__file__).parent / "static"
HEIGHT = 760


class AssetsMissingError(TilewrightError):
    """The browser side was not built."""

    title = "Assets missing"


class Workbench(anywidget.AnyWidget):
    """See a program at both levels, change it step by step, compile and time it.

    Parameters
    ----------
    program : Module, PrimFunc or Schedule
        What to work on. A schedule is shared: steps in cells and steps by click are the same.
    target : str or Target, optional
        What to compile for.
    height : int
        Height in pixels.

    Examples
    --------
    >>> import tilewright as tw
    >>> mod = tw.parse('''
    ... @prim_func
    ... def twice(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    ...     for i in range(8):
    ...         with block("y"):
    ...             vi = spatial(i)
    ...             y[vi] = x[vi] + x[vi]
    ... ''')
    >>> wb = tw.Workbench(mod)
    >>> wb.schedule.module is mod
    True
    """

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)
    _height = traitlets.Int(HEIGHT).tag(sync=True)

    def __init__(
        self,
        program: Module | PrimFunc | Schedule,
        target: str | Target | None = None,
        *,
        height: int = HEIGHT,
    ) -> None:
        """Begin a session; nothing is compiled until it is asked for."""
        chosen = as_target(target)
        shared = isinstance(program, Schedule)
        schedule = program if shared else Schedule(program, chosen)
        self.session = Session(schedule, Bench(chosen), publish=self._publish)
        super().__init__(_esm=_asset("widget.js"), _css=_asset("widget.css"), _height=height)
        self.on_msg(self._receive)

    @property
    def schedule(self) -> Schedule:
        """The schedule that is edited."""
        return self.session.schedule

    def _receive(self, _widget: Any, content: dict[str, Any], _buffers: list[memoryview]) -> None:
        self.session.handle(content)

    def _publish(self, update: Update, buffers: list[bytes]) -> None:
        self.send(update_to_plain(update), buffers)

    def _repr_mimebundle_(self, **kwargs: object) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Give the live widget, and what a saved notebook shows without a kernel."""
        live = super()._repr_mimebundle_(**kwargs)
        data, metadata = live if live is not None else ({}, {})
        still = {
            "text/plain": snapshot_text(self.session),
            "text/html": snapshot_html(self.session),
        }
        return {**still, **data, "text/plain": still["text/plain"]}, metadata


@cache
def _asset(name: str) -> str:
    path = STATIC / name
    if not path.exists():
        raise AssetsMissingError(
            f"{name} is not there",
            where=str(path.parent),
            hint="in a checkout, `make assets` builds it; a wheel carries it",
        )
    return path.read_text(encoding="utf-8")
