"""Compiled programs run in a process of their own, so that what they do harms nobody.

Example
-------
>>> from tilewright.codegen.runtime.isolated import Conditions
>>> Conditions().caches
'hot'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .conditions import Conditions, ConditionsError
    from .measurement import Compared, Measurement
    from .oracle import exact_results
    from .parent import Runner
    from .plan import OnSample, Outcome, Plan
    from .statistics import confidence, narrow
    from .turn import alone

__all__ = [
    "Compared",
    "Conditions",
    "ConditionsError",
    "Measurement",
    "OnSample",
    "Outcome",
    "Plan",
    "Runner",
    "alone",
    "confidence",
    "exact_results",
    "narrow",
]

_HOME = {
    "alone": "turn",
    "Compared": "measurement",
    "Conditions": "conditions",
    "ConditionsError": "conditions",
    "Measurement": "measurement",
    "OnSample": "plan",
    "Outcome": "plan",
    "Plan": "plan",
    "Runner": "parent",
    "confidence": "statistics",
    "exact_results": "oracle",
    "narrow": "statistics",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: the workbench imports conditions at its start."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    return getattr(import_module(f".{_HOME[name]}", __name__), name)
