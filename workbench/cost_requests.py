"""Requests for the costs of the displayed graph, which jobs count."""

from __future__ import annotations

from typing import Literal

from ..ir.graph.nodes import GraphFunc
from ..ir.module import Module
from ..schedules import State
from .editor import Editor
from .graph_costs import LoweredGraph, lowered_graph, operation_costs
from .inputs import shapes_text
from .jobs import Progress
from .protocol_runs import CostKind, GraphCosts
from .serialization import ProtocolError

UNITS: dict[CostKind, Literal["FLOP", "B"]] = {"flops": "FLOP", "bytes": "B", "memory": "B"}


class CostRequests(Editor):
    """An editor that counts the costs of the operations of its graph."""

    _lowered: tuple[Module, GraphFunc, LoweredGraph] | None = None

    def _count_costs(self, kind: CostKind) -> None:
        """Start a job that counts the costs of the graph at the head, for the current view."""
        graph, view = self.graph, self.view
        if graph is None:
            raise ProtocolError(
                "the program has no graph-level function",
                hint="sch.describe(kernel) states the costs of a loop-level function",
            )
        state, head, samples = self.state, self.schedule.head.id, self.samples(graph)
        self.jobs.cancel(view.costs_job)

        def work(progress: Progress) -> None:
            progress(-1.0, "lowering each operation")
            lowered = self._lowered_at(state, graph)
            progress(0.5, "counting")
            items = operation_costs(graph, lowered, kind, samples)
            if not progress.canceled:
                view.costs = GraphCosts(
                    kind, UNITS[kind], graph.name, head, shapes_text(samples), items
                )

        view.costs_job = self._start(f"Count the costs of {graph.name}", work, "lower")

    def _lowered_at(self, state: State, graph: GraphFunc) -> LoweredGraph:
        """Return the lowered graph, cached for the last program."""
        last = self._lowered
        if last is not None and last[0] is state.module and last[1] is graph:
            return last[2]
        lowered = lowered_graph(state, graph.name)
        self._lowered = (state.module, graph, lowered)
        return lowered
