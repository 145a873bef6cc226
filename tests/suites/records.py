"""Files of results: one line of JSON for each name, and counts of them."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


def read(file: Path) -> dict[str, dict[str, Any]]:
    """Return the results in a file, by name; none if it does not exist."""
    return json.loads(file.read_text()) if file.exists() else {}


def write(file: Path, results: Mapping[str, Mapping[str, Any]]) -> None:
    """Write results, one line for each name."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"  {json.dumps(n)}: {json.dumps(r)}" for n, r in results.items()]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def blocking(results: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Return the operators that stop results, with the number of results that each stops."""
    blocked: Counter[str] = Counter()
    for result in results:
        blocked.update(result.get("operators", ()))
    return blocked


def listed(counts: Iterable[tuple[str, int]]) -> str:
    """Return names and counts as text."""
    return ", ".join(f"{name} {count}" for name, count in counts)
