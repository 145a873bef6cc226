"""Amounts of work: tests run few examples of each kind in CI, and many in `make fuzz`."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

IS_LONG = os.environ.get("TILEWRIGHT_PROFILE") == "fuzz"
"""Whether tests take hours, as in `make fuzz`, and not minutes, as in CI."""


def amount(ci: int, fuzz: int) -> int:
    """Return the number of examples of a test."""
    return fuzz if IS_LONG else ci


def covering(first: Iterable[Any], *others: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return combinations of a value of `first` and one of each of `others`.

    Each value of `first` and each combination of `others` occurs; in `make fuzz`, each with each.
    The order of the others changes after each repetition, so that a pattern of the values, such as
    alternating dtypes, does not select always the same ones.
    """
    values, rest = list(first), list(itertools.product(*others))
    if IS_LONG:
        return [(value, *more) for value in values for more in rest]
    count, period = max(len(values), len(rest)), len(rest)
    return [(values[k % len(values)], *rest[(k + k // period) % period]) for k in range(count)]
