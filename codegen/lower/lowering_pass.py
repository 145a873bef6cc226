"""The interface of lowering passes."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import ClassVar, Final, Literal, TypeAlias

from ...ir.loop.nodes import PrimFunc
from ...ir.thread.function import ThreadFunc
from ...target.target import Target

Machine: TypeAlias = Literal["cpu", "gpu"]

ANY: Final[tuple[Machine, ...]] = ("cpu", "gpu")
CPU: Final[tuple[Machine, ...]] = ("cpu",)
GPU: Final[tuple[Machine, ...]] = ("gpu",)


def snake_case(name: str) -> str:
    """Return a class name in snake case.

    Examples
    --------
    >>> snake_case("StripMine")
    'strip_mine'
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class Pass(ABC):
    """A transformation of a scheduled function that keeps its results.

    One pass is one class in one file of ``passes/``; the file, the name of the pass, and its test
    are the class name in snake case.
    """

    targets: ClassVar[tuple[Machine, ...]] = ANY
    """The kinds of machines that the pass runs for."""

    @property
    def name(self) -> str:
        """The class name in snake case."""
        return snake_case(type(self).__name__)

    @abstractmethod
    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Return the transformed function."""

    def applies_to(self, target: Target) -> bool:
        """Return whether the pass runs for a target."""
        return ("gpu" if target.is_gpu else "cpu") in self.targets


class ThreadPass(ABC):
    """A check or transformation of a GPU kernel in thread IR that keeps its results.

    As for :class:`Pass`, one pass is one class in one file, of ``thread_passes/``.
    """

    __slots__ = ()

    @property
    def name(self) -> str:
        """The class name in snake case."""
        return snake_case(type(self).__name__)

    @abstractmethod
    def run(self, kernel: ThreadFunc, target: Target) -> ThreadFunc:
        """Return the transformed kernel."""
