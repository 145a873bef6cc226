"""Checks of HTML in notebook cells: well formed, without scripts, with escaped names."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from hypothesis import strategies as st

TAGS = {
    "br", "code", "details", "div", "li", "mark", "pre", "span", "strong", "summary", "table",
    "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
ATTRIBUTES = {"scope", "style"}
STYLE = re.compile(r"[-\w:;.,#%()/ ]*")
INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")

HOSTILE = (
    "<script>alert(1)</script>",
    "a</pre><b>",
    '"><img src=x onerror=alert(1)>',
    "&lt;b&gt;",
    "x\x1b[31m\x00",
    "gnp.\u202eexe",
    "n\u2028m",
    "''\"\"",
    "\ud800",
    "",
)


def names() -> st.SearchStrategy[str]:
    """Return names with markup, control characters and any other characters."""
    return st.one_of(st.sampled_from(HOSTILE), st.text(max_size=12))


def check_static(html: str) -> str:
    """Check HTML, and return its text."""
    assert not INVISIBLE.search(html)
    html.encode()  # a saved notebook is UTF-8
    root = ET.fromstring(f"<div>{html}</div>")
    for element in root.iter():
        assert element.tag in TAGS
        assert set(element.attrib) <= ATTRIBUTES
        assert STYLE.fullmatch(element.get("style", ""))
        assert "url" not in element.get("style", "")
    return "".join(root.itertext())
