"""Requirements of steps: the named conditions of legal steps."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from textwrap import indent, wrap
from typing import Final


class Requirement(enum.Enum):
    """A condition of a legal step; the value is its text, as a part of a sentence.

    Each primitive has a nested enumeration ``Requires`` of its own requirements. Code in the text
    is between double backquotes.

    Examples
    --------
    >>> CommonRequirement.TARGETS_EXIST.key
    'targets_exist'
    >>> CommonRequirement.TARGETS_EXIST.text
    'the target of each handle exists'
    """

    def __repr__(self) -> str:
        """Return the expression that names the member, as in ``Split.Requires.SERIAL``."""
        return f"{type(self).__qualname__}.{self.name}"

    @property
    def key(self) -> str:
        """The name in lower case, as in messages and in JSON data."""
        return self.name.lower()

    @property
    def text(self) -> str:
        """The condition as plain text, without an upper-case letter or a period."""
        return str(self.value).replace("``", "'")

    @property
    def markup(self) -> str:
        """The condition as a sentence of a docstring."""
        text = str(self.value)
        return f"{text[:1].upper()}{text[1:]}."


class CommonRequirement(Requirement):
    """The requirements of all steps."""

    TARGETS_EXIST = "the target of each handle exists"
    OUTSIDE_OF_INSTRUCTIONS = "the target of each handle is not inside a tensorized block"
    SAME_BLOCK = (
        "the loops and blocks of a step that moves, copies, or divides blocks are inside of the "
        "same block, or all outside of blocks, and its buffers exist there"
    )
    ISOLATED = (
        "a step inside of a block keeps the iterations of the parallel and thread-bound loops "
        "around the block independent, no loop around it is vectorized, and all blocks use their "
        "own iteration variables"
    )
    INDEPENDENT = (
        "iterations of parallel and thread-bound loops write whole bytes of packed elements and "
        "access their own segment between loaded integers, vectorized loops that scan their lanes "
        "have the form of a scan, and lanes and threads that combine a reduction keep the only "
        "updates of its elements, or updates without an init and with the same operator"
    )
    SCANS = "the block of a scan keeps the form of a scan"
    ALLOCATED = "each temporary is used only in the loops whose iterations allocate it"


def by_key(requires: type[Requirement]) -> Mapping[str, str]:
    """Return the texts of an enumeration of requirements by name in lower case."""
    return {member.key: member.text for member in requires}


_TAB: Final = "    "
_LATER: Final = re.compile(
    r"^([ \t]*)(Returns|Raises|Notes|References|Examples)\n[ \t]*-+\n", re.MULTILINE
)


def documented(doc: str, requires: type[Requirement]) -> str:
    """Return a docstring with the section "Requires", after the section "Parameters".

    Parameters
    ----------
    doc : str
        The docstring.
    requires : type of Requirement
        The requirements; without any, the docstring is returned unchanged.
    """
    if not any(requires):
        return doc
    later = _LATER.search(doc)
    margin = later[1] if later is not None else " " * _margin(doc)
    position = len(doc.rstrip()) if later is None else later.start()
    section = indent("\n".join(_section(requires)), margin)
    before, after = doc[:position].rstrip(), doc[position:].strip("\n")
    return f"{before}\n\n{section}\n" + (f"\n{after}" if after.strip() else margin)


def _section(requires: type[Requirement]) -> list[str]:
    lines = ["Requires", "--------"]
    for member in requires:
        lines += [member.key, *wrap(member.markup, 92, initial_indent=_TAB, subsequent_indent=_TAB)]
    return lines


def _margin(doc: str) -> int:
    lines = doc.expandtabs().splitlines()[1:]
    return min((len(x) - len(x.lstrip()) for x in lines if x.strip()), default=0)
