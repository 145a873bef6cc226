"""Texts of a function after each stage of lowering, cached by state, function and stage."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ..ir.graph.nodes import GraphFunc
from ..ir.module import Function, Module
from ..target.target import Target
from . import protocol
from .jobs import Progress
from .problem_view import error_view
from .protocol import Lowered

if TYPE_CHECKING:
    from ..codegen.stage_results import StageResults
    from ..codegen.stages import Stage

MAX_CHARACTERS = 64_000_000
"""The total length of the cached texts."""


class LoweredTexts:
    """The stages of lowering for one target, and a cache of their texts.

    Parameters
    ----------
    target : Target
        The target of the session. The emulator of a GPU shows the code of the GPU it emulates,
        because it generates none.
    """

    def __init__(self, target: Target) -> None:
        """Start with an empty cache."""
        self.target = Target("cuda", arch=target.arch) if target.kind == "simt" else target
        self._lock = threading.Lock()
        self._working = threading.Lock()
        self._results: tuple[tuple[str, str], StageResults] | None = None
        self._cached: OrderedDict[tuple[str, str, str], Lowered] = OrderedDict()

    def stages(self, function: Function) -> list[protocol.Stage]:
        """Return the stages after which a function has a text, in order."""
        return [
            protocol.Stage(stage.name, stage.level, stage.summary)
            for stage in self._stages(function).values()
        ]

    def _stages(self, function: Function) -> Mapping[str, Stage]:
        from ..codegen.stages import stages_of

        graph = isinstance(function, GraphFunc)
        return {
            stage.name: stage
            for stage in stages_of(self.target)
            if (stage.has_host_code if graph else stage.has_kernels)
        }

    def check(self, stage: str) -> None:
        """Check that the target has a stage.

        Raises
        ------
        UnknownPassError
            If it does not; the error lists the stages.
        """
        from ..codegen.stages import find_stage

        find_stage(stage, self.target)

    def cached(self, head: str, function: str, stage: str) -> Lowered | None:
        """Return the text of a state if it is cached."""
        with self._lock:
            return self._cached.get((head, function, stage))

    def lower(
        self, head: str, module: Module, function: str, stage: str, progress: Progress
    ) -> Lowered:
        """Return the text of a function after a stage, and the text before it.

        ``head`` is the id of the state, and ``module`` the program that contains the function.
        If lowering fails, the result has the error and the last text of the stage.
        """
        try:
            lowered = self._lower(head, module, function, stage, progress)
        except Exception as error:
            self._results = None  # its passes stopped in the middle
            if progress.canceled:
                raise
            return replace(
                self._last(function, stage) or Lowered("", function, stage, "", ""),
                problem=error_view(error, "", job=f"Lower {function}"),
            )
        self._store((head, function, stage), lowered)
        return lowered

    def _lower(
        self, head: str, module: Module, name: str, stage: str, progress: Progress
    ) -> Lowered:
        from ..codegen.stages import find_stage, stage_before

        found = find_stage(stage, self.target)
        previous = stage_before(found, self.target)
        translated = previous is not None and previous.form != found.form
        with self._working:
            progress(-1.0, stage)
            results = self._results_of(head, module, name, progress)
            before = "" if translated else results.before(name, found)
            progress(0.5, stage)
            text = results.text(name, found)
            progress(1.0, stage)
        return Lowered(head, name, stage, text, before)

    def _results_of(self, head: str, module: Module, name: str, progress: Progress) -> StageResults:
        """Return the stages of a function, kept so that the next stage continues from the last."""
        from ..codegen.build.worker_pool import CancelToken
        from ..codegen.stage_results import StageResults

        cancel = CancelToken()
        progress.on_cancel(cancel.cancel)
        function = module.functions[name]
        graph = isinstance(function, GraphFunc)
        key = (head, "" if graph else name)
        if self._results is None or self._results[0] != key:
            alone = module if graph else Module().with_functions(function)
            self._results = (key, StageResults(alone, self.target))
        self._results[1].cancel = cancel
        return self._results[1]

    def _last(self, function: str, stage: str) -> Lowered | None:
        with self._lock:
            same = (x for k, x in reversed(self._cached.items()) if k[1:] == (function, stage))
            return next(same, None)

    def _store(self, key: tuple[str, str, str], lowered: Lowered) -> None:
        with self._lock:
            self._cached[key] = lowered
            total = sum(len(x.text) + len(x.previous) for x in self._cached.values())
            while total > MAX_CHARACTERS and len(self._cached) > 1:
                _, old = self._cached.popitem(last=False)
                total -= len(old.text) + len(old.previous)
