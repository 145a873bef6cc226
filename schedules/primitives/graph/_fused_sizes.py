"""Values that ``fuse_ops`` keeps in memory because the fused expressions would be too large."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....ir.analysis import PatternKind
from ....ir.analysis.value_size import (
    FUSED,
    LOAD,
    REPEATED,
    ValueSize,
    copies_of,
    result_size,
)
from ....ir.graph.nodes import Binding, CallTIR, GraphFunc, Value
from ....ir.loop.nodes import Buffer, PrimFunc
from ....ir.module import Module


class FusedSizes:
    """The sizes of values if all their operands are inlined, except those kept in memory.

    A value is kept if it has more than :data:`REPEATED` nodes and is used more than once, so that
    the size of an expression is linear in the number of operators; or if the expression of a user
    would exceed :data:`FUSED`.
    """

    def __init__(
        self,
        module: Module,
        graph: GraphFunc,
        kinds: Mapping[Value, PatternKind],
        uses: Mapping[Value, Sequence[Binding]],
    ) -> None:
        """Derive the sizes in program order."""
        self._module, self._kinds, self._uses = module, kinds, uses
        self._results = frozenset(graph.returned)
        self._sizes: dict[Value, ValueSize] = {}
        self._alone: dict[str, ValueSize] = {}
        self._loads: dict[str, Mapping[Buffer, int]] = {}
        self.kept: set[Value] = set()
        for binding in graph.bindings:
            if binding.value in kinds and isinstance(binding.right, CallTIR):
                self._add(binding.value, binding.right)

    def _add(self, value: Value, call: CallTIR) -> None:
        kind = self._kinds[value]
        if kind > PatternKind.REDUCTION:
            return
        kernel = self._module.prim(call.function)
        inlined = self._inlined(kernel, call)
        if kind == PatternKind.REDUCTION or not self._is_inner(value):
            return
        size = result_size(kernel, inlined) if inlined else self._size_alone(kernel)
        if size.nodes > REPEATED and self._copies(value) > 1:
            self.kept.add(value)
        else:
            self._sizes[value] = size

    def _is_inner(self, value: Value) -> bool:
        """Return whether a value may be inlined into all its users."""
        users = self._uses.get(value, ())
        last = PatternKind.REDUCTION
        kinds = (self._kinds.get(u.value, PatternKind.OPAQUE) for u in users)
        return value not in self._results and all(kind <= last for kind in kinds)

    def _copies(self, value: Value) -> int:
        """Return how often the users of a value compute it if it is inlined."""
        return sum(
            loads
            for user in self._uses[value]
            if isinstance(user.right, CallTIR)
            for operand, _, loads in self._operands(user.right)
            if operand is value
        )

    def _operands(self, call: CallTIR) -> list[tuple[Value, Buffer, int]]:
        """Return the tensor operands of a call with their parameters and numbers of loads."""
        kernel = self._module.prim(call.function)
        loads = self._loads.get(kernel.name)
        if loads is None:
            loads = self._loads[kernel.name] = copies_of(kernel.body)
        pairs = zip(call.args, kernel.buffer_params, strict=False)
        return [(a, b, loads.get(b, 0)) for a, b in pairs if isinstance(a, Value)]

    def _size_alone(self, kernel: PrimFunc) -> ValueSize:
        if kernel.name not in self._alone:
            self._alone[kernel.name] = result_size(kernel, {})
        return self._alone[kernel.name]

    def _inlined(self, kernel: PrimFunc, call: CallTIR) -> dict[Buffer, ValueSize]:
        """Return the operands to inline with their sizes, the smallest ones; keep the others."""
        alone = self._size_alone(kernel)
        found = [(v, b, n, self._sizes[v]) for v, b, n in self._operands(call) if v in self._sizes]
        nodes, inlined = alone.nodes, dict[Buffer, ValueSize]()
        for value, buffer, loads, size in sorted(found, key=lambda f: f[2] * f[3].nodes):
            nodes += loads * (size.nodes - LOAD.nodes)
            depth = alone.depth + size.depth - LOAD.depth
            if value not in self.kept and ValueSize(nodes, depth).within(FUSED):
                inlined[buffer] = size
            else:
                self.kept.add(value)
        return inlined
