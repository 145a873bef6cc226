"""The menus of the last selections, each computed once for a state of the program."""

from __future__ import annotations

from collections import OrderedDict

from ..ir.graph.libraries import LIBRARY_FUNCTIONS
from ..schedules import STEPS, State
from ..schedules.handles import Handle
from ..schedules.intrinsics.registry import intrinsics_for
from .protocol_steps import Menu
from .step_menu import menu_view

MAX_MENUS = 32
"""The number of menus that are kept."""


class Menus:
    """A cache of the menus of the last selections.

    A state never changes, but steps, instructions, and library functions may be registered at any
    time, so that the menus of all states are computed again.
    """

    def __init__(self) -> None:
        """Start with an empty cache."""
        self._kept: OrderedDict[tuple[State, Handle], Menu] = OrderedDict()
        self._registered: tuple[object, ...] = ()

    def known(self, state: State, selection: Handle) -> Menu | None:
        """Return the menu of a selection if it was computed."""
        registered = (*STEPS.values(), *intrinsics_for(None), *LIBRARY_FUNCTIONS.values())
        if self._registered != registered:
            self._kept.clear()
            self._registered = registered
        return self._kept.get((state, selection))

    def menu(self, state: State, head: str, selection: Handle) -> Menu:
        """Return the menu of a selection.

        Parameters
        ----------
        state : State
            The program.
        head : str
            The id of the state.
        selection : Handle
            The selected part of the program.
        """
        found = self.known(state, selection)
        if found is None:
            found = self._kept[state, selection] = menu_view(state, head, selection)
        self._kept.move_to_end((state, selection))
        while len(self._kept) > MAX_MENUS:
            self._kept.popitem(last=False)
        return found
