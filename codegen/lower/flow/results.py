"""Results: made where their storage is, or copied at the end, or the caller's own array."""

from __future__ import annotations

from collections.abc import Mapping

from ....ir.dtype import DType
from ....ir.graph.lives import tensor_bytes
from ....ir.graph.nodes import GraphFunc, Operand, TensorInfo, Value
from ....ir.host import nodes as host
from ....ir.host.support.results import HEADER
from ....ir.symbolic import Expr
from ...manifest import ResultSpec, Site
from .context import CALL, Context, dtype_code, integer
from .sizes import Sizes


def result_code(dtype: DType) -> int:
    """Give the dtype a result is made with: NumPy takes bfloat16 only as 16-bit integers."""
    return 256 + 16 if dtype.kind == "bfloat" else dtype_code(dtype)


class Results:
    """Makes the results of one function."""

    def __init__(self, context: Context, sizes: Sizes, aliases: Mapping[Value, Operand]) -> None:
        """Remember the function and which values are other names of its parameters."""
        self.context = context
        self.sizes = sizes
        self.aliases = aliases
        self.made: set[int] = set()
        self.blocks: dict[int, host.Value] = {}

    @property
    def function(self) -> GraphFunc:
        """The function."""
        return self.context.function

    def make(self, position: int, size: Expr) -> host.Value:
        """Allocate a result and give the address of its elements."""
        context, operand = self.context, self.function.results[position]
        dims, dtype = context.dims(operand), context.tensor(operand).dtype
        self.sizes.check([*dims, size])
        name = self.names()[position]
        where = context.ready(size, f"result {name}")
        word = integer(2 * len(self.function.params) + position)
        block = context.invoke(
            "tw_make_result", CALL, word, integer(len(dims)), integer(result_code(dtype)), where,
            kind="ptr",
        )  # fmt: skip
        present = host.Comparison("ne", block, host.NullPointer())
        context.guard(present, Site("memory", f"result {name}"), where)
        for k, dim in enumerate(dims):
            place = integer(HEADER + 8 * k)
            context.emit(host.Write("i64", block, place, context.ready(dim, f"result {name}")))
        self.made.add(position)
        return context.invoke("tw_finish_result", block, kind="ptr")

    def finish(self) -> None:
        """Copy the results that are not made where they are wanted."""
        for position, operand in enumerate(self.function.results):
            if position in self.made or self.param_of(operand) >= 0:
                continue
            source = self.context.pointer(operand)
            size = tensor_bytes(self.context.tensor(operand))
            target = self.make(position, size)
            count = self.context.ready(size, "a result")
            self.context.copy(target, source, count)

    def param_of(self, operand: Operand) -> int:
        """Give the parameter written in place that a result is, or -1."""
        while isinstance(operand, Value) and operand in self.aliases:
            operand = self.aliases[operand]
        for k, param in enumerate(self.function.params):
            if param.value is operand and param.access != "in":
                return k
        return -1

    def names(self) -> tuple[str, ...]:
        """Give a name to every result."""
        func = self.function
        if len(func.result_names) == len(func.results):
            return func.result_names
        return tuple(getattr(r, "name", f"result{k}") for k, r in enumerate(func.results))

    def specs(self) -> tuple[ResultSpec, ...]:
        """Describe the results for the caller's side."""
        specs: list[ResultSpec] = []
        for name, operand in zip(self.names(), self.function.results, strict=True):
            info: TensorInfo = self.context.tensor(operand)
            rank = len(info.shape or ())
            specs.append(ResultSpec(name, info.dtype.name, rank, self.param_of(operand)))
        return tuple(specs)
