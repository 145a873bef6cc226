"""The shared state of lowering one graph function to host IR."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from ....errors import MalformedProgramError
from ....ir.dtype import DType
from ....ir.graph.devices import device_named
from ....ir.graph.nodes import (
    DEFAULT_DEVICE,
    ConstantRef,
    GraphFunc,
    Info,
    Operand,
    TensorInfo,
    Value,
)
from ....ir.host import nodes as host
from ....ir.module import Module
from ....ir.symbolic import (
    Bool,
    Discharge,
    Expr,
    Fact,
    Facts,
    FloorDiv,
    Mod,
    Origin,
    Var,
    conjuncts,
    const_value,
    free_vars,
    is_proved,
    ne,
)
from ....ir.symbolic.traverse import postorder
from ....ir.thread.function import LaunchGrid
from ....target.gpus import THREAD
from ....target.target import Target
from ....target.webgpu import OFFSET_ALIGNMENT
from ...manifest import CheckSite, LaunchSpec
from ...rtlib import layout

VECTOR_BYTES: Final = THREAD.vector_bits // 8
"""The size in bytes of the widest access of a GPU thread."""

FETCH: Final = "fetch"
"""The name of a copy of one element of a tensor to the host, which the call waits for."""


@dataclass(frozen=True, slots=True)
class HostKernel:
    """The calling convention of a kernel: its symbols in order, and its scratch in bytes.

    A kernel on a device has a ``grid`` and the size of its dynamic ``shared`` memory in bytes. A
    kernel with ``limits`` has a version with 32-bit indices, which runs if all are below ``2**31``.
    ``temporaries`` are the names, sizes in bytes, and offsets of the temporaries in the scratch.
    """

    symbols: tuple[Var, ...]
    scratch: Expr | None = None
    threads: Var | None = None
    grid: LaunchGrid | None = None
    shared: int = 0
    limits: tuple[Expr, ...] = ()
    temporaries: tuple[tuple[str, Expr, Expr], ...] = ()


def dtype_code(dtype: DType) -> int:
    """Return the DLPack type code * 256 + bits."""
    return dtype.dlpack * 256 + dtype.bits


def integer(value: int) -> host.Value:
    """Return a host constant."""
    return host.Integer(value)


def term(expr: Expr) -> host.Value:
    """Return a host term, or a constant if the expression is constant."""
    constant = const_value(expr)
    return host.Term(expr) if constant is None else host.Integer(constant)


_HELD: Final = Origin("an earlier check")

CALL = host.Local("call", "ptr")
INSTANCE = host.Local("instance", "ptr")
SLOT = host.Local("slot", "ptr")
OWN = host.Local("own", "ptr")
VIEWS = host.Local("views", "ptr")
KEYS = host.Local("keys", "ptr")
LATE = host.Local("late", "ptr")
SINK = host.Local("sink", "ptr")


def fact_site(fact: Fact) -> CheckSite:
    """Return the description of the check of a fact."""
    text, origin = str(fact.predicate), str(fact.origin)
    if fact.discharge is Discharge.MATCH_CAST:
        return CheckSite("check", f"{origin}: {text}", origin=origin)
    return CheckSite("fact", text, origin=origin)


@dataclass
class HostContext:
    """The emitted statements, and the symbols, checks, and pointers so far."""

    module: Module
    function: GraphFunc
    kernels: Mapping[str, HostKernel]
    target: Target = field(default_factory=Target)
    sites: list[CheckSite] = field(default_factory=lambda: [CheckSite("check", "no error")])
    launches: list[LaunchSpec] = field(default_factory=list[LaunchSpec])
    constants: list[str] = field(default_factory=list[str])
    libraries: list[str] = field(default_factory=list[str])
    handles: list[str] = field(default_factory=list[str])
    devices: list[str] = field(default_factory=list[str])
    out: list[host.Statement] = field(default_factory=list[host.Statement])
    bound: set[Var] = field(default_factory=set[Var])
    nonzero: set[Expr] = field(default_factory=set[Expr])
    pending: list[Fact] = field(default_factory=list[Fact])
    held: set[Bool] = field(default_factory=set[Bool])
    pointers: dict[Value, host.Value] = field(default_factory=dict[Value, host.Value])
    counter: int = 0

    def emit(self, *statements: host.Statement) -> None:
        """Append statements to the current list."""
        self.out.extend(statements)

    def local(self, name: str, kind: host.Kind = "int") -> host.Local:
        """Return a new local variable."""
        self.counter += 1
        return host.Local(f"{name}_{self.counter}", kind)

    def assign(self, name: str, value: host.Value, kind: host.Kind = "int") -> host.Local:
        """Emit an assignment to a new local variable; return the variable."""
        made = self.local(name, kind)
        self.emit(host.Assign(made, value))
        return made

    def invoke(self, function: str, *args: host.Value, kind: host.Kind = "int") -> host.Local:
        """Emit a call of a run-time library function; return its result."""
        made = self.local(function.removeprefix("tw_"), kind)
        self.emit(host.Invoke(function, args, made))
        return made

    @contextmanager
    def nested(self) -> Generator[list[host.Statement], None, None]:
        """Collect the statements of a nested list; symbols bound there are local to it.

        The conditions checked there hold in it only.
        """
        outer, bound, nonzero = self.out, set(self.bound), set(self.nonzero)
        pending, held = list(self.pending), set(self.held)
        self.out = []
        try:
            yield self.out
        finally:
            self.out, self.bound, self.nonzero = outer, bound, nonzero
            self.pending, self.held = pending, held

    def site(self, site: CheckSite) -> int:
        """Register a check; return its number."""
        self.sites.append(site)
        return len(self.sites) - 1

    def guard(self, condition: host.Value, site: CheckSite, *numbers: host.Value) -> None:
        """Emit a guard that ends the call with an error unless the condition holds."""
        self.emit(host.Guard(condition, self.site(site), CALL, numbers))

    def bind(self, symbol: Var, value: host.Value, *, natural: bool = False) -> None:
        """Emit the binding of a symbol and the checks of its declared bounds.

        ``natural`` states that the value is at least 0, as a dimension is.
        """
        self.emit(host.BindSymbol(symbol, value))
        self.bound.add(symbol)
        low, high, step = symbol.lower, symbol.upper, symbol.multiple_of
        here = host.Term(symbol)
        if low is not None and not (natural and low <= 0):
            ok = host.Comparison("ge", here, integer(low))
            self.guard(
                ok, CheckSite("bound", f"{symbol.name} >= {low}", names=(symbol.name,)), here
            )
        if high is not None:
            ok = host.Comparison("le", here, integer(high))
            self.guard(
                ok, CheckSite("bound", f"{symbol.name} <= {high}", names=(symbol.name,)), here
            )
        if step > 1:
            rest = host.Arithmetic("mod", here, integer(step))
            ok = host.Comparison("eq", rest, integer(0))
            text = f"{symbol.name} is a multiple of {step}"
            self.guard(ok, CheckSite("bound", text, names=(symbol.name,)), here)

    def claim(self, predicate: Bool, site: CheckSite) -> None:
        """Emit a check of a predicate that records the values of its symbols.

        A predicate that was checked before, on every path to here, is not checked again.
        """
        if predicate in self.held:
            return
        self.held.update(conjuncts(predicate))
        self.divisors(predicate)
        names = sorted(free_vars(predicate), key=lambda v: v.serial)[:4]
        named = CheckSite(
            site.kind, site.text, site.param, site.dim, site.other,
            tuple(v.name for v in names), site.origin,
        )  # fmt: skip
        self.guard(host.Claim(predicate), named, *(host.Term(v) for v in names))

    def facts(self) -> None:
        """Emit checks of the pending facts whose symbols are all bound."""
        ready = [f for f in self.pending if free_vars(f.predicate) <= self.bound]
        self.pending = [f for f in self.pending if f not in ready]
        for fact in ready:
            self.claim(fact.predicate, fact_site(fact))

    def require(self, claim: Bool, site: CheckSite) -> None:
        """Emit a check that a callee needs, in symbols of the caller, unless it is proved."""
        if claim in self.held or claim in self.function.facts.predicates:
            return
        known = (Fact(p, _HELD, Discharge.PROOF) for p in sorted(self.held, key=str))
        if not is_proved(claim, Facts((*self.function.facts, *known))):
            self.claim(claim, site)

    def divisors(self, term_: Expr | Bool) -> None:
        """Emit a check per divisor of a term that it is not zero."""
        for divisor in symbolic_divisors(term_):
            if divisor in self.nonzero:
                continue
            self.nonzero.add(divisor)
            self.divisors(divisor)
            if (divisor.lower or 0) > 0 or (divisor.upper or 0) < 0:
                continue
            self.claim(ne(divisor, 0), CheckSite("divisor", str(divisor)))

    def ready(self, expr: Expr, site: str) -> host.Value:
        """Return a term as a host value after checks of its divisors.

        Raises
        ------
        MalformedProgramError
            If a symbol of the term is not bound.
        """
        missing = free_vars(expr) - self.bound
        if missing:
            names = ", ".join(sorted(v.name for v in missing))
            raise MalformedProgramError(
                f"{expr} depends on {names}, whose value is not determined",
                where=f"function {self.function.name!r}, {site}",
                hint="declare the symbol as a dimension of a parameter, as an integer parameter, "
                "or in a match_cast",
            )
        self.divisors(expr)
        return term(expr)

    @property
    def remote(self) -> bool:
        """Whether tensors are in memory that the host cannot access."""
        return self.target.kind in layout.DEVICE_TYPES

    @property
    def device(self) -> int:
        """The DLPack device type of the tensors."""
        return layout.DEVICE_TYPES.get(self.target.kind, layout.HOST)

    @property
    def unit(self) -> int:
        """The bytes of which the sizes of storages are multiples, so that they start at them."""
        return OFFSET_ALIGNMENT if self.target.kind == "webgpu" else layout.ALIGNMENT

    def alignment(self, dtype: DType) -> int:
        """Return the required alignment of a tensor in bytes.

        GPU kernels use 16-byte accesses, which fault if they are misaligned.
        """
        return max(dtype.alignment, VECTOR_BYTES) if self.remote else dtype.alignment

    def fetch(self, width: host.Width, data: host.Value, offset: int, size: int) -> host.Value:
        """Emit a read of a word of a tensor in host or device memory."""
        if not self.remote:
            return host.Read(width, data, integer(offset))
        word = self.local("word", "ptr")
        self.emit(host.Reserve(word, 8))
        self.copy(word, host.Moved(data, integer(offset)), integer(size), site=FETCH)
        return host.Read(width, word, integer(0))

    def copy(
        self,
        target: host.Value,
        source: host.Value,
        size: host.Value,
        devices: tuple[str, str] = (DEFAULT_DEVICE, DEFAULT_DEVICE),
        stream: int = 0,
        *,
        site: str = "copy",
    ) -> None:
        """Emit a copy between tensors; ``devices`` are those of the target and of the source."""
        if not self.remote and devices == (DEFAULT_DEVICE, DEFAULT_DEVICE):
            self.emit(host.Invoke("tw_copy_bytes", (target, source, size)))
            return
        code = self.local("code", "code")
        numbers = (self.number(device) for device in devices)
        args = (CALL, target, source, size, *numbers, integer(stream))
        self.emit(host.Invoke("tw_copy_between", args, code))
        fine = host.Comparison("eq", code, integer(0))
        self.guard(fine, CheckSite("device", site, names=("code", "bytes")), code, size)

    def number(self, device: str) -> host.Value:
        """Return the number of a device in the runtime table; the call requires the device."""
        found = device_named(device)
        if found is None:
            return integer(0)
        if device not in self.devices:
            self.devices.append(device)
        kind = {"cpu": layout.HOST, "cuda": layout.CUDA}[found.kind]
        return integer(kind * layout.DEVICE_TYPE_UNIT + found.ordinal)

    def pointer(self, operand: Operand) -> host.Value:
        """Return the address of a tensor operand."""
        match operand:
            case Value() if operand in self.pointers:
                return self.pointers[operand]
            case ConstantRef(key=key):
                if key not in self.constants:
                    self.constants.append(key)
                table = host.Read("ptr", INSTANCE, integer(layout.INSTANCE_CONSTANTS))
                return host.Read("ptr", table, integer(8 * self.constants.index(key)))
            case _:
                raise MalformedProgramError(
                    f"{getattr(operand, 'name', operand)!r} has no storage",
                    where=f"function {self.function.name!r}",
                    hint="apply plan_memory, which allocates every tensor",
                )

    def tensor(self, operand: Operand) -> TensorInfo:
        """Return the annotation of a tensor operand."""
        info: Info | None = operand.info if isinstance(operand, Value | ConstantRef) else None
        if not isinstance(info, TensorInfo):
            raise MalformedProgramError(
                f"{getattr(operand, 'name', operand)!r} is not a tensor",
                where=f"function {self.function.name!r}",
            )
        return info

    def dims(self, operand: Operand) -> tuple[Expr, ...]:
        """Return the dimensions of a tensor operand."""
        shape = self.tensor(operand).shape
        if shape is None:
            raise MalformedProgramError(
                f"the shape of {getattr(operand, 'name', operand)!r} is unknown",
                where=f"function {self.function.name!r}",
                hint="state the shape with a match_cast",
            )
        return shape


def symbolic_divisors(term_: Expr | Bool) -> Sequence[Expr]:
    """Return the non-constant divisors in a term, each after the divisors nested in it."""
    found: list[Expr] = []
    for part in postorder(term_):
        match part:
            case FloorDiv(divisor=divisor) | Mod(divisor=divisor):
                if const_value(divisor) is None and divisor not in found:
                    found.append(divisor)
            case _:
                pass
    return found
