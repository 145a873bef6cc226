"""Entry checks: validation of arguments against annotations, and binding of symbols."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ....errors import MalformedProgramError
from ....ir.dtype import DType
from ....ir.graph.nodes import (
    GraphFunc,
    GraphParam,
    LaunchKernel,
    PrimInfo,
    TensorInfo,
    Value,
)
from ....ir.graph.visit import all_bindings
from ....ir.host import nodes as host
from ....ir.symbolic import (
    Discharge,
    Expr,
    Fact,
    Facts,
    Var,
    free_vars,
    is_proved,
    to_text,
    unknown_of,
)
from ...manifest import CheckSite, ParamSpec
from ...rtlib import layout
from ...rtlib.views import DEVICES, STRIDED, WRITTEN
from .context import CALL, VIEWS, HostContext, dtype_code, integer, term


def describe(info: TensorInfo | PrimInfo) -> str:
    """Return the text of an annotation in error messages."""
    if isinstance(info, PrimInfo):
        return str(info.dtype)
    if info.shape is None:
        return f"Tensor(rank {info.rank}, {info.dtype})" if info.rank else f"Tensor({info.dtype})"
    comma = "," if len(info.shape) == 1 else ""
    return f"Tensor(({', '.join(map(str, info.shape))}{comma}), {info.dtype})"


def param_info(func: GraphFunc, param: GraphParam) -> TensorInfo | PrimInfo:
    """Return the annotation of a parameter.

    Raises
    ------
    MalformedProgramError
        If the parameter is neither a tensor nor an integer.
    """
    info = param.value.info
    if isinstance(info, TensorInfo) or (isinstance(info, PrimInfo) and info.dtype.is_integer):
        return info
    raise MalformedProgramError(
        f"parameter {param.value.name!r} is neither a tensor nor an integer",
        where=f"function {func.name!r}",
        hint="pass the fields of a tuple and the dimensions of a shape as separate parameters",
    )


def param_spec(func: GraphFunc, param: GraphParam, names: Mapping[Var, str]) -> ParamSpec:
    """Return the description of a parameter for the manifest; ``names`` are those of symbols."""
    info = param_info(func, param)
    name, access = param.value.name, param.access
    if isinstance(info, PrimInfo):
        return ParamSpec(name, describe(info), "integer", info.dtype.name, 0, access)
    shape = tuple(to_text(d, names) for d in info.shape or ())
    initial = "" if param.initial is None else param.initial.key
    rank, kind = rank_of(info), info.dtype.name
    text, binds = describe(info), bool(info.elements)
    return ParamSpec(name, text, "tensor", kind, rank, access, shape, initial, binds)


def rank_of(info: TensorInfo) -> int:
    """Return the rank, or -1 if it is unknown."""
    if info.shape is not None:
        return len(info.shape)
    return -1 if info.rank is None else info.rank


def view_of(position: int) -> host.Value:
    """Return the address of the view of an argument."""
    return host.Moved(VIEWS, integer(layout.VIEW_BYTES * position))


class EntryChecks:
    """The emitter of the entry checks of one function, in the order of its signature."""

    def __init__(self, context: HostContext) -> None:
        """Initialize with the context that receives the statements."""
        self.context = context
        self.strides = asked_strides(context)
        self.later: list[tuple[int, int, Expr, host.Value]] = []

    def run(self) -> None:
        """Emit all checks: arguments, dimensions, facts, and aliases."""
        func = self.context.function
        for position, param in enumerate(func.params):
            info = param_info(func, param)
            if isinstance(info, PrimInfo):
                self.integer(position, info)
            else:
                self.tensor(position, param, info)
        self.dimensions()
        for position, param in enumerate(func.params):
            for dim, wanted in enumerate(self.strides.get(param.value, ())):
                self.stride(position, dim, wanted, param)
            if isinstance(param.value.info, TensorInfo):
                self.elements(position, param.value.info)
        self.context.pending = list(self.facts())
        self.context.facts()
        self.aliases()

    def integer(self, position: int, info: PrimInfo) -> None:
        """Emit the binding or the check of an integer parameter."""
        given = host.Read("i64", CALL, integer(layout.CALL_OPERANDS + 16 * position + 8))
        if info.value is not None:
            self.dimension(position, -1, info.value, given)

    def tensor(self, position: int, param: GraphParam, info: TensorInfo) -> None:
        """Emit the checks of one tensor, then of its dimensions."""
        context, view = self.context, view_of(position)
        context.emit(host.Invoke("tw_view_argument", (CALL, integer(position), view)))
        asked = WRITTEN if param.access != "in" else 0
        asked += STRIDED if param.value in self.strides else 0
        asked += DEVICES * context.device
        wanted = (dtype_code(info.dtype), rank_of(info), context.alignment(info.dtype), asked)
        problem = context.invoke("tw_check_argument", view, *map(integer, wanted))
        fine = host.Comparison("eq", problem, integer(0))
        context.guard(fine, CheckSite("argument", param=position), problem)
        if not info.shape:
            return
        shape = context.assign("shape", host.Read("ptr", view, integer(layout.VIEW_SHAPE)), "ptr")
        for dim, wanted_dim in enumerate(info.shape):
            self.dimension(position, dim, wanted_dim, host.Read("i64", shape, integer(8 * dim)))

    def dimension(self, position: int, dim: int, wanted: Expr, given: host.Value) -> None:
        """Emit the binding of a symbol at its first occurrence, or the check of a dimension."""
        match wanted:
            case Var() if wanted not in self.context.bound:
                self.context.bind(wanted, given, natural=dim >= 0)
            case _ if free_vars(wanted) <= self.context.bound:
                self.compare(position, dim, wanted, given)
            case _:
                held = self.context.assign("dim", given)
                self.later.append((position, dim, wanted, held))

    def compare(self, position: int, dim: int, wanted: Expr, given: host.Value) -> None:
        """Emit a check of a dimension against the annotation."""
        context = self.context
        context.divisors(wanted)
        symbols = sorted(free_vars(wanted), key=lambda v: v.serial)[:2]
        names = tuple(v.name for v in symbols)
        site = CheckSite("dimension", str(wanted), position, dim, names=names)
        numbers = (term(wanted), given, *(host.Term(v) for v in symbols))
        context.guard(host.Comparison("eq", given, term(wanted)), site, *numbers)

    def stride(self, position: int, dim: int, wanted: Expr, param: GraphParam) -> None:
        """Emit the binding or the check of a stride; extent 1 permits any stride."""
        context, view = self.context, view_of(position)
        size = integer(context.tensor(param.value).dtype.width)
        given = context.invoke("tw_stride_bytes", view, integer(dim))
        elements = context.assign("stride", host.Arithmetic("floordiv", given, size))
        if isinstance(wanted, Var) and wanted not in context.bound:
            context.bind(wanted, elements)
        expected = context.ready(wanted, f"stride of {param.value.name!r}")
        shape = host.Read("ptr", view, integer(layout.VIEW_SHAPE))
        single = host.Comparison("le", host.Read("i64", shape, integer(8 * dim)), integer(1))
        same = host.Comparison("eq", given, host.Arithmetic("mul", expected, size))
        site = CheckSite("stride", str(wanted), position, dim)
        context.guard(host.Either(single, same), site, expected, elements)

    def dimensions(self) -> None:
        """Solve remaining dimensions such as ``2 * n`` for one symbol each, then check the rest."""
        waiting, progress = self.later, True
        while waiting and progress:
            rest = [entry for entry in waiting if not self.resolve(*entry)]
            progress, waiting = len(rest) < len(waiting), rest
        for position, dim, wanted, given in waiting:
            self.context.ready(wanted, f"parameter {position}, dimension {dim}")
            self.compare(position, dim, wanted, given)

    def resolve(self, position: int, dim: int, wanted: Expr, given: host.Value) -> bool:
        """Bind the unknown ``n`` of a dimension ``a * n + b``; return whether it was resolved."""
        found = unknown_of(wanted, self.context.bound)
        if found is None and not free_vars(wanted) <= self.context.bound:
            return False
        if found is not None:
            symbol, factor, added = found
            rest = host.Arithmetic("sub", given, term(added))
            solved = host.Arithmetic("floordiv", rest, integer(factor))
            self.context.bind(symbol, self.context.assign(symbol.name, solved))
        self.compare(position, dim, wanted, given)
        return True

    def elements(self, position: int, info: TensorInfo) -> None:
        """Emit the binding or the check of symbols that are elements of an integer tensor."""
        for k, wanted in enumerate(info.elements or ()):
            data = host.Read("ptr", view_of(position), integer(layout.VIEW_DATA))
            given = self.context.assign("element", read_element(self.context, info.dtype, data, k))
            match wanted:
                case Var() if wanted not in self.context.bound:
                    self.context.bind(wanted, given)
                case _:
                    self.context.ready(wanted, f"element {k} of parameter {position}")
                    self.compare(position, -2 - k, wanted, given)

    def facts(self) -> Iterator[Fact]:
        """Yield the facts that do not follow from the others.

        The fact of a ``match_cast`` is checked as soon as its symbols are bound, at entry if
        possible: memory planning and earlier kernels rely on it.
        """
        facts = self.context.function.facts
        checked = Facts(f for f in facts if f.discharge is not Discharge.PROOF)
        for fact in facts:
            if fact.discharge is not Discharge.PROOF or not is_proved(fact.predicate, checked):
                yield fact

    def aliases(self) -> None:
        """Emit checks that written arguments do not overlap other arguments."""
        context = self.context
        tensors = [
            (k, p) for k, p in enumerate(context.function.params)
            if isinstance(p.value.info, TensorInfo)
        ]  # fmt: skip
        if all(p.access == "in" for _, p in tensors):
            return
        ends: dict[int, tuple[host.Value, host.Value]] = {}
        for k, _ in tensors:
            data = host.Read("ptr", view_of(k), integer(layout.VIEW_DATA))
            ends[k] = (data, context.invoke("tw_view_bytes", view_of(k)))
        for k, param in tensors:
            for j, other in tensors:
                if param.access != "in" and (other.access == "in" or j > k):
                    shared = context.invoke("tw_overlap", *ends[k], *ends[j])
                    disjoint = host.Comparison("eq", shared, integer(0))
                    context.guard(disjoint, CheckSite("alias", param=k, other=j))


def asked_strides(context: HostContext) -> dict[Value, tuple[Expr, ...]]:
    """Return the explicit strides that kernels declare for parameters of the function."""
    params = {p.value for p in context.function.params}
    asked: dict[Value, tuple[Expr, ...]] = {}
    for binding in all_bindings(context.function.bindings):
        if isinstance(binding.right, LaunchKernel):
            func = context.module.prim(binding.right.function)
            for buffer, arg in zip(func.buffer_params, binding.right.args, strict=True):
                if buffer.strides is not None and isinstance(arg, Value) and arg in params:
                    asked[arg] = buffer.strides
    return asked


def read_element(context: HostContext, dtype: DType, data: host.Value, position: int) -> host.Value:
    """Read one element of an integer tensor."""
    widths: dict[str, host.Width] = {"i64": "i64", "i32": "i32", "u8": "u8", "bool": "u8"}
    width = widths.get(dtype.name)
    if width is None:
        raise MalformedProgramError(
            f"elements of dtype {dtype} cannot be bound to symbols",
            hint="use dtype i64, i32, u8, or bool",
        )
    return context.fetch(width, data, dtype.alignment * position, dtype.alignment)
