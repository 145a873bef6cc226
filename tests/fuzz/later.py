"""Classes of defects that are known, with the reason why their fix comes later.

Programs of these classes are drawn like all others. A failure of such a class is counted as known
and does not end a run. All other failures are reported.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Later:
    """A class of known defects.

    Parameters
    ----------
    reason : str
        The cause, and why it is not fixed yet.
    phases : tuple of str
        The checks that it can fail.
    message : str
        A regular expression that the description of the failure contains.
    families : tuple of str
        The families of programs that can have the defect; empty for all.
    """

    reason: str
    phases: tuple[str, ...]
    message: str = ""
    families: tuple[str, ...] = ()

    def covers(self, family: str, phase: str, message: str) -> bool:
        """Return whether a failure belongs to the class."""
        return (
            phase in self.phases
            and (not self.families or family in self.families)
            and re.search(self.message, message) is not None
        )


LATER: Mapping[str, Later] = {}


def known(family: str, phase: str, message: str) -> bool:
    """Return whether a failure belongs to a known class."""
    return any(later.covers(family, phase, message) for later in LATER.values())
