"""Results of a function: allocated as storage, copied at the end, or arguments of the caller."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ....ir.graph.live_ranges import tensor_bytes
from ....ir.graph.nodes import GraphFunc, Operand, TensorInfo, Value
from ....ir.host import nodes as host
from ....ir.symbolic import Expr, Var, free_vars, to_text
from ...manifest import CheckSite, ResultSpec
from ...rtlib import layout
from ...rtlib.results import HEADER
from .context import CALL, HostContext, dtype_code, integer
from .entry import describe
from .sizes import Sizes


def names_of_results(func: GraphFunc) -> tuple[str, ...]:
    """Return the names of the results of a function."""
    if len(func.result_names) == len(func.results):
        return func.result_names
    return tuple(getattr(r, "name", f"result{k}") for k, r in enumerate(func.results))


def _symbols(dims: Iterable[Expr]) -> Iterator[Var]:
    return (symbol for dim in dims for symbol in free_vars(dim))


def _flag(mode: host.Value, flag: int) -> host.Value:
    return host.Arithmetic("and", mode, integer(flag))


def has_flag(mode: host.Value, flag: int) -> host.Value:
    """Return the condition that the mode of a call has a flag."""
    return host.Comparison("ne", _flag(mode, flag), integer(0))


class Results:
    """The emitter of the results of one function."""

    def __init__(
        self, context: HostContext, sizes: Sizes, aliases: Mapping[Value, Operand]
    ) -> None:
        """Initialize; ``aliases`` maps values to the operands that they are aliases of."""
        self.context = context
        self.sizes = sizes
        self.aliases = aliases
        self.made: set[int] = set()
        self.known: frozenset[Var] = frozenset()
        self.blocks: dict[int, host.Value] = {}

    @property
    def function(self) -> GraphFunc:
        """The graph function that is lowered."""
        return self.context.function

    def make(self, position: int, size: Expr) -> host.Value:
        """Emit the allocation of a result; return the address of its elements."""
        context, operand = self.context, self.function.results[position]
        dims, dtype = context.dims(operand), context.tensor(operand).dtype
        self.sizes.check([*dims, size])
        name = self.names()[position]
        where = context.ready(size, f"result {name}")
        word = integer(2 * len(self.function.params) + position)
        block = context.invoke(
            "tw_make_result", CALL, word, integer(len(dims)), integer(dtype_code(dtype)), where,
            kind="ptr",
        )  # fmt: skip
        present = host.Comparison("ne", block, host.NullPointer())
        context.guard(present, CheckSite("memory", f"result {name}"), where)
        for k, dim in enumerate(dims):
            offset = integer(HEADER + 8 * k)
            context.emit(host.Write("i64", block, offset, context.ready(dim, f"result {name}")))
        if not set(_symbols(dims)) <= self.known:
            self.fit(position, block)
        self.made.add(position)
        return context.invoke("tw_finish_result", block, kind="ptr")

    def compare_given(self, mode: host.Value) -> None:
        """Emit the comparison of tensors of the caller with the shapes of results.

        It precedes all kernels, for the shapes that are known at entry; others are compared when
        the result is made. A query gets the dimensions that are known at entry.
        """
        context = self.context
        self.known = frozenset(context.bound)
        with context.nested() as body:
            for position, operand in enumerate(self.function.results):
                if self.param_of(operand) < 0:
                    self.compare(position, context.dims(operand), mode)
        if body:
            context.emit(host.When(has_flag(mode, layout.GIVEN), tuple(body)))

    def compare(self, position: int, dims: tuple[Expr, ...], mode: host.Value) -> None:
        """Emit the comparison of one result; its word in the call is the block, or null."""
        context, name = self.context, self.names()[position]
        word = layout.CALL_OPERANDS + 16 * len(self.function.params) + 8 * position
        block = context.assign("given", host.Read("ptr", CALL, integer(word)), "ptr")
        with context.nested() as body:
            for k, dim in enumerate(dims):
                if free_vars(dim) <= self.known:
                    size = context.ready(dim, f"result {name}")
                    context.emit(host.Write("i64", block, integer(HEADER + 8 * k), size))
            if set(_symbols(dims)) <= self.known:
                with context.nested() as check:
                    self.fit(position, block)
                asked = host.Comparison("eq", _flag(mode, layout.QUERY), integer(0))
                context.emit(host.When(asked, tuple(check)))
        context.emit(host.When(host.Comparison("ne", block, host.NullPointer()), tuple(body)))

    def fit(self, position: int, block: host.Value) -> None:
        """Emit the check that a tensor of the caller has the shape of the result."""
        same = host.Comparison("ne", self.context.invoke("tw_fits", block), integer(0))
        self.context.guard(same, CheckSite("output", self.names()[position], other=position))

    def finish(self) -> None:
        """Emit copies of the results whose storage is not the result itself."""
        for position, operand in enumerate(self.function.results):
            if position in self.made or self.param_of(operand) >= 0:
                continue
            source = self.context.pointer(operand)
            size = tensor_bytes(self.context.tensor(operand))
            target = self.make(position, size)
            count = self.context.ready(size, "a result")
            self.context.copy(target, source, count)

    def param_of(self, operand: Operand) -> int:
        """Return the position of the out or inout parameter that a result aliases, or -1."""
        while isinstance(operand, Value) and operand in self.aliases:
            operand = self.aliases[operand]
        for k, param in enumerate(self.function.params):
            if param.value is operand and param.access in ("out", "inout"):
                return k
        return -1

    def names(self) -> tuple[str, ...]:
        """Return the names of the results."""
        return names_of_results(self.function)

    def symbols(self) -> tuple[Var, ...]:
        """Return the symbols in the shapes of the results."""
        dims = (d for r in self.function.results for d in self.context.tensor(r).shape or ())
        return tuple(sorted(set(_symbols(dims)), key=lambda symbol: symbol.serial))

    def specs(self, names: Mapping[Var, str]) -> tuple[ResultSpec, ...]:
        """Return the descriptions of the results for the manifest; ``names`` are of symbols."""
        specs: list[ResultSpec] = []
        for name, operand in zip(self.names(), self.function.results, strict=True):
            info: TensorInfo = self.context.tensor(operand)
            rank = len(info.shape or ())
            kind = info.dtype.name
            shape = tuple(to_text(dim, names) for dim in info.shape or ())
            text = describe(info)
            specs.append(ResultSpec(name, kind, rank, self.param_of(operand), text, shape))
        return tuple(specs)
