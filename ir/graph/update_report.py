"""The report which updates of a memory-stage function are in place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..loop.nodes import BufferParam, PrimFunc
from ..module import Module
from .nodes import Binding, CopyTensor, GraphFunc, LaunchKernel, Operand, Value, ViewTensor
from .visit import inner_bindings


@dataclass(frozen=True, slots=True)
class UpdateReport:
    """One update of a tensor.

    Parameters
    ----------
    value : str
        Name of the tensor that is written.
    kernel : str
        Name of the kernel that writes it; empty for the copy of a last value to its parameter.
    memory : str
        Name of the parameter or storage that contains the tensor.
    in_place : bool
        Whether no copy is needed.
    reason : str
        Why a copy is needed; empty if the update is in place.
    """

    value: str
    kernel: str
    memory: str
    in_place: bool
    reason: str = ""


def updates_of(module: Module, func: GraphFunc) -> tuple[UpdateReport, ...]:
    """Return the updates of a memory-stage function in program order.

    These are the tensors that kernels read and write, and copies of last values to parameters.

    Examples
    --------
    >>> from ..script import parse
    >>> from .plan import plan_memory
    >>> module = parse('''
    ... @prim_func
    ... def twice(c: InOut[(8,), f32]):
    ...     for i in range(8):
    ...         c[i] = c[i] * 2.0
    ...
    ... @graph_func
    ... def main(s: State[Tensor[(8,), f32]], x: Tensor[(8,), f32]):
    ...     a = call_tir(twice, s, updates=(0,))
    ...     b = call_tir(twice, x, updates=(0,))
    ...     return b, updates(s=a)
    ... ''')
    >>> for update in updates_of(module, plan_memory(module, module.graph())):
    ...     print(update.value, update.memory, update.in_place, update.reason)
    s s True
    b b_storage False parameter 'x' has access mode 'in'
    """
    return tuple(_Reports(module, func).reports(func.bindings))


class _Reports:
    """The memory of the tensors so far, and the reasons of their copies."""

    def __init__(self, module: Module, func: GraphFunc) -> None:
        self._module = module
        self._params = {p.value for p in func.params}
        self._memory: dict[Value, Value] = {}
        self._copies: dict[Value, str] = {}

    def reports(self, bindings: Sequence[Binding]) -> Iterator[UpdateReport]:
        for binding in bindings:
            for inner in inner_bindings(binding.right):
                yield from self.reports(inner)
            match binding.right:
                case ViewTensor(storage=storage):
                    self._memory[binding.value] = self._memory.get(storage, storage)
                case CopyTensor(target=target, reason=reason):
                    self._copies[target] = reason
                    if target in self._params:
                        yield UpdateReport(target.name, "", target.name, False, reason)
                case LaunchKernel() as launch:
                    yield from self._launch(launch)
                case _:
                    pass

    def _launch(self, launch: LaunchKernel) -> Iterator[UpdateReport]:
        callee = self._module.functions.get(launch.function)
        params = callee.params if isinstance(callee, PrimFunc) else ()
        buffers = (p for p in params if isinstance(p, BufferParam))
        for param, operand in zip(buffers, launch.args, strict=False):
            if param.access in ("inout", "state"):
                yield self._update(launch.function, operand)

    def _update(self, kernel: str, operand: Operand) -> UpdateReport:
        if not isinstance(operand, Value):
            return UpdateReport("", kernel, "", True)
        memory = self._memory.get(operand, operand)
        reason = self._copies.pop(operand, "")
        return UpdateReport(operand.name, kernel, memory.name, not reason, reason)
