"""The ``offload`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.graph.devices import device_named
from ....ir.graph.nodes import (
    DEFAULT_DEVICE,
    Binding,
    Call,
    GraphFunc,
    Operand,
    TensorInfo,
    Value,
    operand_info,
)
from ....ir.graph.visit import all_values, map_bindings, map_updates, users
from ....ir.identity import Names, UidSource
from ...apply import Primitive, Rewrite
from ...handles import BindingRef, FunctionRef, Handle
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ..graph._functions import graph_problem


@primitive(family="memory", returns=tuple[BindingRef, BindingRef])
@dataclass(frozen=True, slots=True)
class Offload(Primitive):
    """Keep a tensor in the memory of another device between two of its uses.

    Before::

        h = relu(x)
        y = matmul(h, w)
        ...
        z = add(y, h)

    After (``value=h``, ``before=z``, ``device="cpu"``)::

        h = relu(x)
        h_away = to_device(h, device="cpu")
        y = matmul(h, w)
        ...
        h_back = to_device(h_away, device="default")
        z = add(y, h_back)

    Parameters
    ----------
    value : BindingRef
        The tensor.
    before : BindingRef
        The first binding that uses the tensor again.
    device : str
        The device: ``"cpu"`` is host memory, ``"cpu:1"`` a device of its own.

    Notes
    -----
    The results are the handles of the two copies. The memory of the tensor on the default device is
    free from the last use before ``before`` on. A device that does not exist at run time is an
    error when the program is loaded. Cost: two copies of the tensor.

    Names elsewhere: TVM ``relax.op.to_vdevice``; Halide: none.

    References
    ----------
    BladeDISC++ (arXiv 2412.16985), §2.3 (eviction and reload).

    Examples
    --------
    >>> import tilewright as tw
    >>> sch = tw.Schedule(
    ...     tw.parse('''
    ... @graph_func
    ... def main(x: Tensor[(4,), f32]):
    ...     h = relu(x)
    ...     y = exp(h)
    ...     z = add(y, h)
    ...     return z
    ... ''')
    ... )
    >>> _ = sch.offload("h", before="z")
    >>> print(sch)
    @graph_func
    def main(x: Tensor[(4,), f32]):
        h: Tensor[(4,), f32] = relu(x)
        h_away: Tensor((4,), f32, device="cpu") = to_device(h, device="cpu")
        y: Tensor[(4,), f32] = exp(h)
        h_back: Tensor[(4,), f32] = to_device(h_away, device="default")
        z: Tensor[(4,), f32] = add(y, h_back)
        return z
    """

    class Requires(Requirement):
        """The requirements of ``offload``."""

        DATAFLOW_STAGE = "the function is a graph-level function in the dataflow stage"
        TENSOR_ON_DEFAULT_DEVICE = "the value is a tensor of known shape on the default device"
        LATER_BINDING = (
            "the value and the later binding are outside of branches and loops, in order"
        )
        USED_LATER = "the later binding, or one after it, uses the value"
        DEVICE = "the device is another one, by its kind and ordinal"

    value: BindingRef
    before: BindingRef
    device: str = "cpu"

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the function, the value, the order of the bindings, and the device."""
        requires = self.Requires
        wrong = list(
            graph_problem(state, FunctionRef(self.value.function), requires.DATAFLOW_STAGE)
        )
        yield from wrong
        if wrong:
            return
        if device_named(self.device) is None:
            yield Problem(
                requires.DEVICE,
                f"{self.device!r} is not another device; devices are 'cpu', 'cpu:1', 'cuda', ...",
                (self.value,),
            )
        graph = state.module.graph(self.value.function)
        order = {b.value.uid: k for k, b in enumerate(graph.bindings)}
        first, last = order.get(self.value.uid), order.get(self.before.uid)
        if first is None or last is None or first >= last:
            yield Problem(
                requires.LATER_BINDING,
                f"{self.before.name or 'the later binding'} is not after "
                f"{self.value.name or 'the value'} among the outermost bindings of {graph.name!r}",
                (self.value, self.before),
            )
            return
        value = graph.bindings[first].value
        if not _is_placeable(value):
            yield Problem(
                requires.TENSOR_ON_DEFAULT_DEVICE,
                f"{value.name!r} is {value.info}",
                (self.value,),
            )
        rest = graph.bindings[last:]
        used = any(b in rest for b in users(graph).get(value, ()))
        if not used and value not in graph.returned:
            yield Problem(
                requires.USED_LATER,
                f"{value.name!r} is not used from {graph.bindings[last].value.name!r} on",
                (self.value, self.before),
            )

    def rewrite(self, state: State) -> Rewrite:
        """Insert the two copies, and use the second one in the later bindings."""
        graph = state.module.graph(self.value.function)
        names, mint = Names(v.name for v in all_values(graph)), UidSource(state.ordinal)
        value = next(b.value for b in graph.bindings if b.value.uid == self.value.uid)
        away = _transfer(value, value.name, self.device, names.fresh(f"{value.name}_away"), mint)
        back = _transfer(
            away.value, value.name, DEFAULT_DEVICE, names.fresh(f"{value.name}_back"), mint
        )
        later = next(k for k, b in enumerate(graph.bindings) if b.value.uid == self.before.uid)
        made = next(k for k, b in enumerate(graph.bindings) if b.value is value) + 1

        def change(operand: Operand) -> Operand:
            return back.value if operand is value else operand

        bindings = (
            *graph.bindings[:made],
            away,
            *graph.bindings[made:later],
            back,
            *map_bindings(graph.bindings[later:], change),
        )
        changed = replace(
            graph,
            bindings=bindings,
            results=tuple(map(change, graph.results)),
            updates=map_updates(graph.updates, change),
        )
        handles: tuple[Handle, ...] = tuple(
            BindingRef(graph.name, b.value.uid, b.value.name) for b in (away, back)
        )
        return Rewrite(state.module.with_functions(changed), handles)

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for a tensor whose uses are far from each other."""
        found = state.module.functions.get(selection.function)
        if not isinstance(selection, BindingRef) or not isinstance(found, GraphFunc):
            return
        order = {b.value: k for k, b in enumerate(found.bindings)}
        for binding in found.bindings:
            if binding.value.uid == selection.uid and found.stage == "dataflow":
                uses = [u for u in users(found).get(binding.value, ()) if u.value in order]
                last = max(uses, key=lambda u: order[u.value], default=None)
                distance = 0 if last is None else order[last.value] - order[binding.value]
                if last is not None and distance > 2 and _is_placeable(binding.value):
                    yield cls(selection, BindingRef(found.name, last.value.uid, last.value.name))


def _is_placeable(value: Value) -> bool:
    info = value.info
    known = isinstance(info, TensorInfo) and info.shape is not None
    return known and isinstance(info, TensorInfo) and info.device == DEFAULT_DEVICE


def _transfer(source: Value, origin: str, device: str, name: str, mint: UidSource) -> Binding:
    """Return the binding of a copy on another device."""
    info = operand_info(source)
    if not isinstance(info, TensorInfo):
        raise TypeError(f"{source.name!r} is not a tensor")
    value = Value(mint(), name, replace(info, device=device))
    return Binding(value, Call("to_device", (source,), (("device", device),)), frozenset({origin}))
