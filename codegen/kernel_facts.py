"""Facts about the kernels of a program, for explanations of executables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from ..errors import MalformedProgramError
from ..ir.analysis import flops, footprint
from ..ir.graph.nodes import (
    Binding,
    GraphFunc,
    KernelVersion,
    LaunchKernel,
    TensorInfo,
    Value,
    ViewTensor,
)
from ..ir.graph.plan import plan_memory
from ..ir.graph.visit import inner_bindings
from ..ir.loop.nodes import Buffer, BufferParam, Let, PrimFunc
from ..ir.loop.visit import walk
from ..ir.module import Module
from ..ir.symbolic import Expr, substitute, to_text, total
from ..schedules.state import State
from ..schedules.trace import TraceStep
from .entry_names import INTO, public_name
from .lower.host.bindings import kernel_symbols
from .manifest import FactSpec, KernelFacts

_Source: TypeAlias = tuple[Value, Expr, str]
"""A tensor, and the offset and the annotation of a view of it."""

SCHEDULED = ("scheduled", True)
"""The attribute of a scheduled kernel."""


@dataclass(frozen=True, slots=True)
class _Launch:
    """A launch of a kernel, or of one of its versions."""

    launch: LaunchKernel
    binding: Binding
    kernel: str
    scalars: tuple[Expr, ...]
    version: KernelVersion | None = None


def kernel_facts(
    source: Module, ready: Module, state: State, *, debug: bool
) -> tuple[KernelFacts, ...]:
    """Return the facts about each kernel of each function, in program order.

    Parameters
    ----------
    source : Module
        The program before compilation.
    ready : Module
        The scheduled program, which contains the kernels.
    state : State
        The state after the default schedules.
    debug : bool
        Whether every access is checked at run time.
    """
    scheduled = _Schedules(state)
    made: dict[tuple[str, str], KernelFacts] = {}
    for entry in _entries(ready):
        operations, views = _operations(source, entry.name), _views(entry.bindings)
        sources = _sources(entry.bindings)
        by_kernel: dict[str, list[_Launch]] = {}
        for launch in _launches(entry.bindings):
            by_kernel.setdefault(launch.kernel, []).append(launch)
        function = public_name(entry.name)
        for kernel, launches in by_kernel.items():
            func, before = ready.prim(kernel), source.functions.get(kernel)
            names = {n for launch in launches for n in _results(func, launch, views)}
            if "prepare_for" not in dict(entry.attributes):  # packs weights for these operations
                names = names.union(*(launch.binding.origins for launch in launches))
            made[function, kernel] = replace(
                _facts_of(func, launches, sources),
                function=function,
                computes=tuple(text for name, text in operations.items() if name in names),
                groups=scheduled.groups(kernel),
                steps=scheduled.steps(kernel),
                scheduled=isinstance(before, PrimFunc) and SCHEDULED in before.attributes,
                debug=debug,
            )
    return tuple(made.values())


def with_lowering(
    facts: Sequence[KernelFacts],
    limits: Mapping[str, tuple[str, ...]],
    temporaries: Mapping[str, tuple[str, ...]],
) -> tuple[KernelFacts, ...]:
    """Return the facts with those that lowering found, by the names of the kernels."""
    return tuple(
        replace(f, limits=limits.get(f.kernel, ()), temporaries=temporaries.get(f.kernel, ()))
        for f in facts
    )


def with_steps_of(facts: Sequence[KernelFacts], state: State) -> tuple[KernelFacts, ...]:
    """Return the facts with the steps of the schedule that was compiled.

    The artifact does not contain these steps, because it is the same for every schedule that
    produces the same program.
    """
    scheduled = _Schedules(state)
    return tuple(
        replace(f, groups=scheduled.groups(f.kernel), steps=scheduled.steps(f.kernel))
        if f.scheduled and not f.steps
        else f
        for f in facts
    )


def _entries(ready: Module) -> Iterator[GraphFunc]:
    """Yield the functions in memory stage, one for each public name."""
    seen: set[str] = set()
    for graph in sorted(ready.graphs, key=lambda g: g.name.endswith(INTO)):
        if public_name(graph.name) not in seen:
            seen.add(public_name(graph.name))
            yield plan_memory(ready, graph)


def _launches(bindings: Sequence[Binding]) -> Iterator[_Launch]:
    for binding in bindings:
        match binding.right:
            case LaunchKernel() as launch:
                yield _Launch(launch, binding, launch.function, launch.scalars)
                for version in launch.versions:
                    scalars = version.scalars
                    yield _Launch(launch, binding, version.function, scalars, version)
            case right:
                for inner in inner_bindings(right):
                    yield from _launches(inner)


def _facts_of(
    func: PrimFunc, launches: Sequence[_Launch], sources: Mapping[Value, _Source]
) -> KernelFacts:
    first = launches[0]
    version = first.version
    return KernelFacts(
        kernel=func.name,
        function="",
        launches=len(launches),
        version_of="" if version is None else first.launch.function,
        guard="" if version is None else to_text(version.guard),
        operations=_sum([flops(func)] * len(launches), func, launches),
        bytes=_sum([_bytes(func, x, sources) for x in launches], func, launches),
        facts=tuple(
            FactSpec(to_text(f.predicate), str(f.origin), f.discharge.value) for f in func.facts
        ),
        indices=tuple(
            f"{s.load} in [{s.lower}, {s.upper}), {s.mode}"
            for s in walk(func.body)
            if isinstance(s, Let)
        ),
    )


def _bytes(func: PrimFunc, launch: _Launch, sources: Mapping[Value, _Source]) -> Expr:
    """Return the size in bytes of the arguments of a launch, each tensor once."""
    seen: set[object] = set()
    repeated: list[Buffer] = []
    for argument, buffer in zip(launch.launch.args, func.buffer_params, strict=True):
        tensor = sources.get(argument, argument) if isinstance(argument, Value) else argument
        if tensor in seen:
            repeated.append(buffer)
        seen.add(tensor)
    return footprint(func, repeated)


def _sum(terms: Sequence[Expr], func: PrimFunc, launches: Sequence[_Launch]) -> str:
    """Return the sum of a term per launch, in the symbols of the function that launches.

    The text is empty if a term contains other symbols than those of the arguments, such as loop
    variables.
    """
    sums: list[Expr] = []
    for term, launch in zip(terms, launches, strict=True):
        symbols = sorted(term.free, key=lambda v: v.serial)
        dims = [_dims(a) for a in launch.launch.args]
        try:
            values = kernel_symbols(func, symbols, dims, launch.scalars)
        except MalformedProgramError:
            return ""
        sums.append(substitute(term, dict(zip(symbols, values, strict=True))))
    return to_text(total(tuple(sums)))


def _dims(operand: object) -> tuple[Expr, ...]:
    info = getattr(operand, "info", None)
    return info.shape or () if isinstance(info, TensorInfo) else ()


def _operations(source: Module, entry: str) -> dict[str, str]:
    """Return the text of each operation of the source by the name of its value.

    These are the operations of the function, or of all functions if it is not in the source.
    """
    own = [g for g in source.graphs if g.name == entry]
    return {
        binding.value.name: f"{binding.value.name} = {binding.right}"
        for graph in own or source.graphs
        for binding in graph.bindings
    }


def _views(bindings: Sequence[Binding]) -> dict[Value, list[Value]]:
    """Return the views of each tensor."""
    views: dict[Value, list[Value]] = {}
    for binding in bindings:
        match binding.right:
            case ViewTensor(storage=storage):
                views.setdefault(storage, []).append(binding.value)
            case _:
                pass
    return views


def _sources(bindings: Sequence[Binding]) -> dict[Value, _Source]:
    """Return the tensor, the offset and the shape of each view."""
    return {
        binding.value: (binding.right.storage, binding.right.offset, str(binding.right.info))
        for binding in bindings
        if isinstance(binding.right, ViewTensor)
    }


def _results(
    func: PrimFunc, launch: _Launch, views: Mapping[Value, Sequence[Value]]
) -> Iterator[str]:
    """Yield the names of the operations that a launch computes.

    These are the names of the tensors that it writes, and of views of them. The origins contain the
    names of the operations that were fused into the kernel.
    """
    params = [p for p in func.params if isinstance(p, BufferParam)]
    pending = [
        argument
        for argument, param in zip(launch.launch.args, params, strict=True)
        if param.access != "in" and isinstance(argument, Value)
    ]
    while pending:
        value = pending.pop()
        yield value.name
        pending += views.get(value, ())


class _Schedules:
    """The steps and the composite steps of a trace, by function."""

    def __init__(self, state: State) -> None:
        self._steps: dict[str, list[str]] = {}
        self._groups: dict[str, Counter[tuple[bool, tuple[str, ...]]]] = {}
        for number, step in enumerate(state.trace.steps):
            if step.op.startswith("get_"):
                continue
            groups = [g for g in state.trace.groups if number in g]
            chosen = {f for g in groups for f in _functions_of(g.call(), state)}
            names = tuple(g.op for g in groups)
            for function in _functions_of(step, state):
                self._steps.setdefault(function, []).append(step.op)
                self._groups.setdefault(function, Counter())[function in chosen, names] += 1

    def steps(self, kernel: str) -> tuple[str, ...]:
        """Return the names of the steps of a kernel, without queries."""
        return tuple(self._steps.get(kernel, ()))

    def groups(self, kernel: str) -> tuple[str, ...]:
        """Return the composite steps, from outer to inner, with the most steps of a kernel.

        Those with the kernel or a part of it as an argument have priority over those of graphs.
        """
        counts = self._groups.get(kernel)
        if not counts:
            return ()
        return max(counts, key=lambda found: (found[0], counts[found]))[1]


def _functions_of(step: TraceStep, state: State) -> dict[str, None]:
    """Return the functions of the handles that are arguments of a step, without duplicates."""
    return dict.fromkeys(handle.function for handle in state.operands(step))
