"""The widget's model, without a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from IPython.core.formatters import DisplayFormatter

import tilewright as tw
from tilewright.workbench import widget
from tilewright.workbench.assets import STATIC, AssetsMissingError

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
@prim_func
def twice(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    for i in range(8):
        with block("y"):
            vi = spatial(i)
            y[vi] = x[vi] + x[vi]
"""

VIEW = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def assets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Browser assets that need no build."""
    for name in ("widget.js", "widget.css"):
        (tmp_path / name).write_text(f"/* {name} */")
    monkeypatch.setattr(widget, "STATIC", tmp_path)
    return tmp_path


@pytest.mark.usefixtures("assets")
def test_inputs_and_sets_of_sizes() -> None:
    text = 'n = symbols("n", lower=1)\n' + PROGRAM.replace("8", "n")
    wb = tw.Workbench(tw.parse(text), inputs=[np.ones(5, np.float32)], sizes={"long": {"n": 99}})
    session = wb.session
    assert session.samples(session.entry) == {"n": 5}
    assert session.document.size_sets.sizes == {"long": {"n": 99}}


def test_model_states_its_id(assets: Path) -> None:
    first, second = tw.Workbench(tw.parse(PROGRAM)), tw.Workbench(tw.parse(PROGRAM))
    assert first.get_state(["_id", "_saved"]) == {"_id": first.model_id, "_saved": ""}
    assert first.model_id != second.model_id


def test_output_contains_the_widget_and_static_forms(assets: Path) -> None:
    wb = tw.Workbench(tw.parse(PROGRAM))
    data, _metadata = DisplayFormatter().format(wb)
    assert data[VIEW]["model_id"] == wb.model_id
    assert "def twice(" in data["text/plain"]
    assert "twice" in data["text/html"]


def test_missing_assets(assets: Path) -> None:
    (assets / "widget.js").unlink()
    with pytest.raises(AssetsMissingError, match=r"file 'widget\.js' does not exist"):
        tw.Workbench(tw.parse(PROGRAM))
    assert assets != STATIC
