"""The views of a session, one for each client."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..schedules import State
from ..schedules.handles import Handle
from .protocol import Applied, Document, Lowered
from .protocol_runs import GraphCosts, SimilarKernels
from .protocol_steps import Checked, Menu, Previewed

MAX_VIEWS = 8
"""The number of clients whose views are kept; a closed page is not reported."""


@dataclass(slots=True)
class PageView:
    """The open function, the selection, and the answers for one client.

    Parameters
    ----------
    open : str
        The name of the open function.
    selection : Handle, optional
        The selected part of the program.
    moved : bool
        Whether the head was moved elsewhere since the selection was determined.
    revision : int
        The number of updates since the hello of the client.
    costs_job : str
        The key of the job that counts the costs of the graph.
    suggested : tuple of State and Handle, optional
        The state and the selection that the menu belongs to, or that it was asked for.
    """

    open: str = ""
    selection: Handle | None = None
    moved: bool = False
    revision: int = 0
    suggested: tuple[State, Handle | None] | None = None
    menu: Menu | None = None
    checked: Checked | None = None
    previewed: Previewed | None = None
    lowered: Lowered | None = None
    saved: Document | None = None
    similar: SimilarKernels | None = None
    costs: GraphCosts | None = None
    costs_job: str = ""
    applied: Applied | None = None


class PageViews:
    """The views of the pages, and the one that the current thread works for."""

    def __init__(self, first: PageView) -> None:
        """Start without clients; the first one takes over the first view."""
        self._views: OrderedDict[str, PageView] = OrderedDict()
        self._last = first
        self._local = threading.local()

    @property
    def current(self) -> PageView:
        """The view of this thread's request or job, else of the last request."""
        return getattr(self._local, "view", None) or self._last

    def of(self, client: str) -> PageView:
        """Return the view of a client; a new client starts with a copy of the last one."""
        view = self._views.get(client)
        if view is None:
            last = self._last
            view = last if not self._views else PageView(last.open, last.selection, last.moved)
            self._views[client] = view
        self._views.move_to_end(client)
        self._last = view
        while len(self._views) > MAX_VIEWS:
            self._views.popitem(last=False)
        return view

    def use(self, view: PageView) -> None:
        """Make a view the current one of this thread until it ends, as in the thread of a job."""
        self._local.view = view

    @contextmanager
    def using(self, view: PageView) -> Generator[None]:
        """Make a view the current one of this thread."""
        before = getattr(self._local, "view", None)
        self._local.view = view
        try:
            yield
        finally:
            self._local.view = before

    def __iter__(self) -> Iterator[tuple[str, PageView]]:
        """Iterate over the clients and their views."""
        return iter(list(self._views.items()))
