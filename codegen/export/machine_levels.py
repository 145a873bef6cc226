"""The levels of an exported library that this machine can execute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ...target.host import host_platform, machine_features
from .inspection import Description

_NAMES: Final = {"AMD64": "x86_64", "arm64": "aarch64"}
"""The architectures that some systems name differently."""


def missing_by_level(description: Description) -> dict[str, str]:
    """Return the feature that this machine lacks to execute each level, or an empty text, by level.

    The levels are in ascending order; a library without levels has none.
    """
    facts: Mapping[str, Any] = description.facts
    machine = host_platform()[0]
    if facts.get("arch") != _NAMES.get(machine, machine):
        return {level["name"]: facts["arch"] for level in facts.get("levels", ())}
    have = machine_features()
    return {
        level["name"]: next((f for f in level["features"] if f not in have), "")
        for level in facts.get("levels", ())
    }


def chosen_level(description: Description) -> str:
    """Return the level that a model runs on this machine, or an empty text."""
    runs = [name for name, missing in missing_by_level(description).items() if not missing]
    return runs[-1] if runs else ""


def level_lines(description: Description) -> Iterator[str]:
    """Yield the levels as text, with the reason why this machine cannot execute one."""
    chosen, missing = chosen_level(description), missing_by_level(description)
    for level in description.facts.get("levels", ()):
        name = level["name"]
        features = ", ".join(level["features"]) or "the baseline"
        runs = "this machine runs this level" if name == chosen else "this machine can execute it"
        lacks = f"this machine cannot execute it, because it lacks {missing[name]}"
        yield f"level {name}: {features}; {lacks if missing[name] else runs}"
