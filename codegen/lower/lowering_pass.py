"""The interface of lowering passes."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import ClassVar, Final, Literal, TypeAlias

from ...ir.loop.nodes import PrimFunc
from ...target.target import Target

Machine: TypeAlias = Literal["cpu", "gpu"]

ANY: Final[tuple[Machine, ...]] = ("cpu", "gpu")
CPU: Final[tuple[Machine, ...]] = ("cpu",)
GPU: Final[tuple[Machine, ...]] = ("gpu",)


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
        return re.sub(r"(?<!^)(?=[A-Z])", "_", type(self).__name__).lower()

    @abstractmethod
    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Return the transformed function."""

    def applies_to(self, target: Target) -> bool:
        """Return whether the pass runs for a target."""
        return ("gpu" if target.is_gpu else "cpu") in self.targets
