"""Prefetches have no effect on results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....ir.thread.operations.cpu import PREFETCH
from .handler import Group, Handler


def _prefetch(group: Group, args: Sequence[Any]) -> Sequence[Any]:
    del group, args
    return ()


CPU: dict[str, Handler] = {PREFETCH.name: _prefetch}
