"""Steps that mend what keeps an instruction from doing a part of a program."""

from __future__ import annotations

from ...intrinsics.difference import Difference
from ...primitive import Primitive
from ._site import Site


def fixes_of(site: Site, difference: Difference) -> tuple[Primitive, ...]:
    """Give the steps that are legal and remove a difference."""
    del site, difference
    return ()
