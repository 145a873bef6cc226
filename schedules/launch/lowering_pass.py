"""The interface of lowering passes."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import ClassVar, Final, Literal, Self, TypeAlias

from ...ir.loop.nodes import PrimFunc
from ...ir.thread.function import ThreadFunc
from ...target.target import Target

Machine: TypeAlias = Literal["cpu", "gpu", "webgpu"]
"""A CPU, any GPU, or one with a WebGPU driver."""

ANY: Final[tuple[Machine, ...]] = ("cpu", "gpu")
CPU: Final[tuple[Machine, ...]] = ("cpu",)
GPU: Final[tuple[Machine, ...]] = ("gpu",)
WEBGPU: Final[tuple[Machine, ...]] = ("webgpu",)


def runs_on(machines: tuple[Machine, ...], kind: str) -> bool:
    """Return whether machines include those of a kind of targets.

    Examples
    --------
    >>> [kind for kind in ("cpu", "cuda", "webgpu") if runs_on(GPU, kind)]
    ['cuda', 'webgpu']
    """
    return kind in machines or ("cpu" if kind == "cpu" else "gpu") in machines


def snake_case(name: str) -> str:
    """Return a class name in snake case.

    Examples
    --------
    >>> snake_case("StripMine")
    'strip_mine'
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class _Pass:
    """The name and the targets of a pass."""

    __slots__ = ()

    targets: ClassVar[tuple[Machine, ...]] = ANY
    """The kinds of machines that the pass runs for."""

    @property
    def name(self) -> str:
        """The class name in snake case."""
        return snake_case(type(self).__name__)

    @classmethod
    def applies_to(cls, target: Target) -> bool:
        """Return whether the pass runs for a target."""
        return runs_on(cls.targets, target.kind)


class Pass(_Pass, ABC):
    """A transformation of a scheduled function that keeps its results.

    One pass is one class in one file of ``passes/``; the file, the name of the pass, and its test
    are the class name in snake case. The first line of the docstring is the summary of the pass in
    ``tilewright show --passes``.
    """

    @abstractmethod
    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Return the transformed function."""


class ThreadPass(_Pass, ABC):
    """A check or transformation of a kernel in thread IR that keeps its results.

    As for :class:`Pass`, one pass is one class in one file, of ``thread_passes/``.
    """

    __slots__ = ()

    @classmethod
    def for_function(cls, func: PrimFunc) -> Self:
        """Return the pass for the kernel of a function, which is in the form after all passes.

        A pass whose fields are results of loop-level passes overrides this method.
        """
        del func
        return cls()

    @abstractmethod
    def run(self, kernel: ThreadFunc, target: Target) -> ThreadFunc:
        """Return the transformed kernel."""
