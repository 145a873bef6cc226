"""Effects of bindings besides their values: run-time checks, and calls of external functions."""

from __future__ import annotations

from ..module import Module
from .libraries import LIBRARY_FUNCTIONS
from .nodes import Binding, CallDPSLibrary, CallGraph, GraphFunc, MatchCast, VersionSwitch
from .visit import inner_bindings


def has_external_effects(symbol: str) -> bool:
    """Return whether a call of a library function may have effects besides its outputs.

    The effects of a function that is not registered are not known.

    Examples
    --------
    >>> has_external_effects("std.sort"), has_external_effects("unknown.function")
    (False, True)
    """
    function = LIBRARY_FUNCTIONS.get(symbol)
    return function is None or function.effects != "none"


def has_effect(module: Module, binding: Binding) -> bool:
    """Return whether a binding has an effect besides its value, also in a branch, loop, or callee.

    Such a binding is not removed, merged with an equal one, or moved to load time.
    """
    right = binding.right
    match right:
        case MatchCast() | VersionSwitch():
            return True
        case CallDPSLibrary(symbol=symbol):
            return has_external_effects(symbol)
        case CallGraph(function=name):
            callee = module.functions.get(name)
            return isinstance(callee, GraphFunc) and any(
                has_effect(module, b) for b in callee.bindings
            )
        case _:
            return any(has_effect(module, b) for inner in inner_bindings(right) for b in inner)
