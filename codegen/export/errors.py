"""What can go wrong when a program is exported."""

from __future__ import annotations

from ...ir.errors import TilewrightError


class ExportError(TilewrightError):
    """A program that cannot be exported this way."""

    title = "Cannot export"


class ExportDirectoryError(ExportError):
    """A directory that exists already, or where nothing can be written."""

    title = "Cannot write the export"


class LinkerMissingError(ExportError):
    """Linking needs a package that is not installed."""

    title = "Linker missing"


class LinkError(ExportError):
    """The linker refuses what was generated; a defect of Tilewright, with its words to report."""

    title = "Linking failed"
