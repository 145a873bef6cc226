"""The browser assets, which `make assets` builds."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from ..errors import TilewrightError

STATIC: Final = Path(__file__).parent / "static"
"""The folder of the assets."""


class AssetsMissingError(TilewrightError):
    """The browser assets were not built."""

    title = "Missing assets"


@cache
def asset(path: Path) -> str:
    """Return the content of an asset.

    Raises
    ------
    AssetsMissingError
        If the file does not exist.
    """
    if not path.exists():
        raise AssetsMissingError(
            f"file {path.name!r} does not exist",
            where=str(path.parent),
            hint="run `make assets` in a checkout; a wheel contains the file",
        )
    return path.read_text(encoding="utf-8")
