"""The backend ``"tilewright"`` of ``torch.compile``.

PyTorch splits a function into graphs of tensor operations and calls the backend for each. A graph
becomes a module, which is compiled for the sizes that PyTorch left symbolic. A graph that cannot be
imported runs in PyTorch, with a warning; `report` lists all graphs.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from ..display import Table
from ..errors import TilewrightError
from ..ir.importers.torch_call import readable, tensors
from ..ir.importers.torch_graph import ImportedGraph, from_graph, graph_decompositions
from ..target.target import Target
from .compiler import compile
from .runtime.function import NativeFunction


class TorchBackendError(TilewrightError):
    """An option of the backend that does not exist or has an invalid value."""

    title = "Invalid option of torch.compile"


class PyTorchGraphWarning(UserWarning):
    """A graph of ``torch.compile`` that runs in PyTorch."""


@dataclass(frozen=True, slots=True)
class BackendOptions:
    """The options of ``torch.compile(..., backend="tilewright", options={...})``.

    Parameters
    ----------
    target : str or Target, optional
        The target of `compile`; by default the host CPU.
    fallback : bool
        Whether a graph that cannot be imported or compiled runs in PyTorch, with a warning;
        otherwise the error is raised.
    """

    target: str | Target | None = None
    fallback: bool = True


@dataclass(slots=True)
class GraphReport:
    """One graph of ``torch.compile``.

    Parameters
    ----------
    kind : str
        ``inference``, ``forward`` or ``backward``.
    operators : int
        The number of operators of the graph.
    reason : str
        Why the graph runs in PyTorch; empty if it is compiled.
    kernels : int
        The number of kernels of the executable.
    calls : int
        The number of calls so far.
    """

    kind: str
    operators: int
    reason: str = ""
    kernels: int = 0
    calls: int = field(default=0)


_LOCK: Final = threading.Lock()
_REPORTS: Final[list[GraphReport]] = []


def report() -> Table:
    """Return a table of the graphs of this process: where each runs, and why.

    Examples
    --------
    >>> report().columns[:3]
    ('graph', 'kind', 'operators')
    """
    with _LOCK:
        rows = tuple(
            (k, r.kind, r.operators, r.kernels or None, r.calls,
             "PyTorch" if r.reason else "Tilewright", r.reason or None)
            for k, r in enumerate(_REPORTS)
        )  # fmt: skip
    columns = ("graph", "kind", "operators", "kernels", "calls", "runs in", "reason")
    return Table(columns, rows, "graphs of torch.compile")


def clear_report() -> None:
    """Forget all graphs of this process."""
    with _LOCK:
        _REPORTS.clear()


def backend(
    graph_module: Any,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Compile a graph of ``torch.compile``; PyTorch calls this function.

    Parameters
    ----------
    graph_module : torch.fx.GraphModule
        The graph.
    example_inputs : sequence
        Its inputs at the first call.
    options : Mapping of str to Any, optional
        The fields of `BackendOptions`.
    mode : str, optional
        The mode of ``torch.compile``; only ``"default"``.

    Raises
    ------
    TorchBackendError
        If an option does not exist.
    """
    from torch._dynamo.backends.common import aot_autograd

    chosen = _options(options, mode)

    def compiler(kind: str) -> Callable[[Any, Sequence[Any]], Callable[..., Any]]:
        return lambda graph, inputs: _compiled(graph, inputs, kind, chosen)

    build: Callable[..., Any] = cast("Any", aot_autograd)(
        fw_compiler=compiler("forward"),
        bw_compiler=compiler("backward"),
        inference_compiler=compiler("inference"),
        decompositions=graph_decompositions(),
        keep_inference_input_mutations=False,
    )
    return build(graph_module, example_inputs)


def _options(options: Mapping[str, Any] | None, mode: str | None) -> BackendOptions:
    given = dict(options or {})
    known = BackendOptions.__slots__
    unknown = [name for name in given if name not in known]
    if unknown:
        raise TorchBackendError(
            f"no option {unknown[0]!r}",
            where="argument 'options' of torch.compile",
            hint=f"the options are {', '.join(known)}",
        )
    if mode not in (None, "default"):
        raise TorchBackendError(
            f"no mode {mode!r}",
            where="argument 'mode' of torch.compile",
            hint="omit it; default schedules need no search",
        )
    return BackendOptions(**given)


def _compiled(
    graph: Any, inputs: Sequence[Any], kind: str, options: BackendOptions
) -> Callable[..., Any]:
    """Return the executable of a graph, or the graph itself if it is unsupported."""
    from torch._functorch._aot_autograd.utils import make_boxed_func

    entry = GraphReport(kind, sum(n.op == "call_function" for n in graph.graph.nodes))
    with _LOCK:
        _REPORTS.append(entry)
        number = len(_REPORTS) - 1
    try:
        _check_devices(inputs)
        run = _Runner(from_graph(graph), entry, options)
    except TilewrightError as error:
        if not options.fallback:
            raise
        entry.reason = " ".join(str(error).split())
        warnings.warn(
            f"graph {number} ({kind}, {entry.operators} operators) runs in PyTorch: {error}",
            PyTorchGraphWarning,
            stacklevel=2,
        )
        return make_boxed_func(_counted(graph.forward, entry))
    return make_boxed_func(run)


def _counted(function: Callable[..., Any], entry: GraphReport) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        entry.calls += 1
        return function(*args)

    return call


def _check_devices(inputs: Sequence[Any]) -> None:
    devices = {str(x.device) for x in inputs if hasattr(x, "device")} - {"cpu"}
    if devices:
        raise TorchBackendError(
            f"inputs are on {', '.join(sorted(devices))}; only tensors on the CPU are supported",
            hint="move the module and its inputs to the CPU",
        )


class _Runner:
    """A compiled graph, called with the inputs of the graph."""

    def __init__(self, graph: ImportedGraph, entry: GraphReport, options: BackendOptions) -> None:
        self._graph = graph
        self._entry = entry
        self._call: NativeFunction | None = None
        if any(o.result >= 0 for o in graph.outputs):
            executable = compile(graph.module, options.target, progress=False)
            entry.kernels = len(executable.kernels)
            self._call = executable["main"]
            self._owner = executable  # keeps the machine code

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Return the outputs of the graph for its inputs."""
        self._entry.calls += 1
        graph = self._graph
        results: list[Any] = []
        if self._call is not None:
            found = self._call.invoke([readable(inputs[k]) for k in graph.tensors])
            results = tensors(found)
        sizes = graph.sizes(inputs)
        return tuple(
            results[o.result] if o.result >= 0
            else inputs[o.input] if o.input >= 0
            else sizes.get(o)
            for o in graph.outputs
        )  # fmt: skip
