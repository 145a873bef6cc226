"""The ten tasks of a new user on a PyTorch model; `tour` performs them on other models, too."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.tour import MODELS, Tour

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(("model", "width"), [("torch", 1440), ("onnx", 760)])
def test_ten_tasks(open_notebook: Callable[..., Page], model: str, width: int) -> None:
    page = open_notebook([MODELS[model]], f"tour-{model}.ipynb")
    page.set_viewport_size({"width": width, "height": 900})

    def picture(task: str) -> None:
        if folder := os.environ.get("SCREENSHOTS"):
            page.screenshot(path=Path(folder) / f"tour-{model}-{width}-{task}.png")

    Tour(page, picture).all()
