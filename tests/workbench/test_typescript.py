"""The generated TypeScript types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.workbench.typescript import typescript

if TYPE_CHECKING:
    from pathlib import Path


def test_generated_types_are_up_to_date(root: Path) -> None:
    committed = (root / "extensions" / "core" / "protocol.ts").read_text()
    assert committed == typescript(), (
        "run: python -m tilewright.workbench.typescript > extensions/core/protocol.ts"
    )
