"""The page of the C header is current and complete."""

from __future__ import annotations

import re
from pathlib import Path

from tilewright.codegen.export.header_page import page
from tilewright.codegen.export.link import NATIVE

COMMITTED = Path(__file__).parents[3] / "docs" / "header.md"


def test_the_page_is_current():
    committed = COMMITTED.read_text(encoding="utf-8")
    assert committed == page(), (
        "run python -m tilewright.codegen.export.header_page > docs/header.md"
    )


def test_the_page_has_every_public_declaration():
    made = page()
    header = (NATIVE / "tilewright.h").read_text(encoding="utf-8")
    names = set(re.findall(r"^typedef struct (\w+) \{", header, re.MULTILINE)) - {"tw_pool"}
    names |= set(re.findall(r"static inline [\w *]*?\b(tw_(?!pool_)\w+)\(", header))
    names |= {"tw_pool_open", "tw_pool_runtime", "tw_pool_parallel", "tw_pool_close"}
    names |= {"TW_ABI_VERSION", "TW_TRUST_WEIGHTS", "TW_NEEDS_ALLOCATION", "model_main_into"}
    missing = {name for name in names if not re.search(rf"\b{name}\b", made)}
    assert not missing
    assert "tw_pool_swap" not in made
