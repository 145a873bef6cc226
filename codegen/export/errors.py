"""Errors of exports."""

from __future__ import annotations

from ...errors import TilewrightError


class ExportError(TilewrightError):
    """A program or target that cannot be exported as the requested kind."""

    title = "Export failure"


class ExportDirectoryError(ExportError):
    """An output directory that exists already or cannot be written."""

    title = "Invalid output directory"


class LinkerMissingError(ExportError):
    """A linker that is not installed."""

    title = "Missing linker"


class LinkError(ExportError):
    """Generated code that the linker rejects, which is a defect in Tilewright."""

    title = "Link error"
