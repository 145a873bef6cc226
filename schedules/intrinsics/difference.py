"""Differences between a program and the semantics of an instruction."""

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
    """A difference between a nest of the program and the semantics of an instruction.

    Parameters
    ----------
    kind : str
        The kind of difference.
    program : str
        The text of the program; empty if it has no counterpart.
    pattern : str
        The text of the semantics; empty if it has no counterpart.
    message : str
        The difference, with names, actual and expected values.
    subject : For, Buffer, Bool or None
        The differing part of the program.
    partner : int or None
        The position of the loop or buffer of the semantics that the subject is compared with.
    """

    kind: Kind
    program: str
    pattern: str
    message: str
    subject: Subject = None
    partner: int | None = None
