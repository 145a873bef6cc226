"""Steps about default schedules: to lower the graph, and to take and leave the rule of a kernel."""

from __future__ import annotations

from ..ir.module import Module
from ..schedules import FunctionRef, Replay, Schedule, Trace
from ..schedules.similar import SimilarKernels, apply_to_similar, kernel_trace
from . import protocol, protocol_runs
from .default_rules import (
    RULE,
    lower_graphs,
    path_to,
    relation,
    unscheduled_version,
    without_schedule,
)
from .editor import Editor
from .jobs import Progress
from .pending import Pending
from .requests import ApplyToSimilar, UseRule
from .serialization import ProtocolError


class RuleSteps(Editor):
    """An editor with the composite steps about default schedules, which run as jobs."""

    def _use_rule(self, request: UseRule) -> None:
        """Lower the graph, take the default rule of a kernel, or return to it."""
        name = request.function
        profile = self.document.profile
        created = profile is not None and name in profile.compiled.module.functions
        if name not in self.state.module.functions and not created:
            raise ProtocolError(f"no function {name!r} in the module")
        if request.action == "return":
            self._return_to_rule(name, request.head)
            return
        base = name
        if name not in self.state.module.functions and profile is not None:
            base = relation(profile.compiled, name).base or name

        def edit(branch: Schedule) -> str:
            lower_graphs(branch)
            if request.action == "take":
                branch.schedule_kernel(FunctionRef(base))
            return base

        def announce(kernel: str, before: Module) -> None:
            self.view.open = name if name in self.state.module.functions else kernel
            self._reopen()
            self._set_selection(FunctionRef(self.view.open))
            done = (
                "The graph is lowered" if request.action == "lower" else f"{RULE}({kernel}) applied"
            )
            self._announce(f"{done}: {self.view.open} can be edited", "good", before)

        title = "Lower the graph" if request.action == "lower" else RULE
        self._edit_in_background(title, request.head, edit, announce)

    def _apply_to_similar(self, request: ApplyToSimilar) -> None:
        """Start a job that applies the steps of a kernel to similar ones, or tries to."""
        name, head = request.function, self.schedule.head.id
        kernel_trace(self.state, name)  # reports that no step changes the kernel

        def edit(branch: Schedule) -> SimilarKernels:
            return branch.apply_to_similar(name)

        def announce(found: SimilarKernels, before: Module) -> None:
            self._sync_selection()
            count = len(found.accepted)
            noun = "kernel" if count == 1 else "kernels"
            self._announce(f"Steps of {name} applied to {count} similar {noun}", "good", before)

        if not request.preview:
            self._edit_in_background("Apply to similar kernels", request.head, edit, announce)
            return
        self._check_head(request.head)
        self._check_idle()
        branch = self.schedule.branch()

        def work(progress: Progress) -> None:
            progress(-1.0, "trying the steps on other kernels")
            found = apply_to_similar(branch.state, name)
            kernels = [
                protocol_runs.SimilarKernel(k.function, k.steps, k.reason) for k in found.kernels
            ]
            with self.lock:
                self.view.similar = protocol.SimilarKernels(head, name, len(found.trace), kernels)

        self._start("Find similar kernels", work)

    def _return_to_rule(self, name: str, expected: str) -> None:
        """Remove the steps that schedule a kernel, and keep all others."""
        path = path_to(self.schedule)
        origin = unscheduled_version(path, name)
        status = relation(self.state, name).status
        if status not in ("left", "taken"):
            raise ProtocolError(f"{name!r} was not scheduled by a step")
        state, start = self.state, 0 if origin is None else len(origin.state.trace)
        if origin is None:  # the step that created the kernel scheduled it
            start = next(len(n.state.trace) for n in path if name in n.state.module.functions)

        removed: list[Trace] = []

        def edit(branch: Schedule) -> Replay | None:
            trace = without_schedule(state, name, start)
            if origin is not None and len(trace) == start:
                branch.goto(origin.id)
                return None
            branch.goto(path[0].id)
            removed.append(trace)
            return branch.replay(trace)

        def announce(outcome: Replay | None, before: Module) -> None:
            self._jumped_from(expected, None if outcome is None else self.document.pending)
            if outcome is not None:
                self.document.pending = Pending.of(removed[0], outcome)
            self._sync_selection()
            if outcome is not None and outcome.error is not None:
                self._add_problem(outcome.error)
            count = len(state.trace) - len(self.state.trace) - len(self.document.pending.steps)
            self._announce(
                f"{name} has its default rule again: {count} steps removed", "good", before
            )

        self._edit_in_background("Return to the default rule", expected, edit, announce)
