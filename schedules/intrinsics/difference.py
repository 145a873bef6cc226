"""One way in which a program is not what an instruction computes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ...ir.loop.nodes import Buffer, For
from ...ir.symbolic import Bool

Kind: TypeAlias = Literal[
    "extent", "dtype", "layout", "access", "reduction", "scope", "target", "predicate"
]
Subject: TypeAlias = "For | Buffer | Bool | None"


@dataclass(frozen=True, slots=True)
class Difference:
    """One way in which the program is not what the instruction computes.

    Parameters
    ----------
    kind : str
        What differs.
    program, pattern : str
        The two texts that differ; empty where there is nothing.
    message : str
        What is wrong, with names and numbers.
    subject : For, Buffer, Bool or None
        The part of the program at fault.
    partner : int or None
        The loop (by position) or the buffer (by position) of the semantics it was compared with.
    """

    kind: Kind
    program: str
    pattern: str
    message: str
    subject: Subject = None
    partner: int | None = None
