"""What the parts of the flow lowering share while one function is lowered."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from ....ir.dtype import DType
from ....ir.errors import MalformedProgramError
from ....ir.graph.nodes import ConstantRef, GraphFunc, Info, Operand, TensorInfo, Value
from ....ir.host import layout, nodes as host
from ....ir.module import Module
from ....ir.symbolic import Bool, Expr, Fact, FloorDiv, Mod, Var, const_value, free_vars, ne
from ....ir.symbolic.traverse import postorder
from ....ir.target import Target
from ....ir.thread.nodes import Launch
from ...manifest import LaunchSpec, Site

VECTOR_BYTES: Final = 16
"""The widest access of a GPU's thread."""

DLPACK_CODES: Mapping[str, int] = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6}


@dataclass(frozen=True, slots=True)
class Kernel:
    """What a launch has to know of a kernel: its symbols in order, and bytes of scratch.

    One that runs on a device has a ``grid``, and the bytes of ``shared`` memory that its launch
    asks for.
    """

    symbols: tuple[Var, ...]
    scratch: Expr | None = None
    threads: Var | None = None
    grid: Launch | None = None
    shared: int = 0


def dtype_code(dtype: DType) -> int:
    """Give DLPack's code * 256 + bits."""
    return DLPACK_CODES[dtype.kind] * 256 + dtype.bytes * 8


def integer(value: int) -> host.Value:
    """A number."""
    return host.Integer(value)


def term(expr: Expr) -> host.Value:
    """A symbolic integer, or the number that it is."""
    known = const_value(expr)
    return host.Term(expr) if known is None else host.Integer(known)


CALL = host.Local("call", "ptr")
INSTANCE = host.Local("instance", "ptr")
SLOT = host.Local("slot", "ptr")
OWN = host.Local("own", "ptr")
VIEWS = host.Local("views", "ptr")
KEYS = host.Local("keys", "ptr")
LATE = host.Local("late", "ptr")
SINK = host.Local("sink", "ptr")


@dataclass
class Context:
    """The statements being made, and what is known so far."""

    module: Module
    function: GraphFunc
    kernels: Mapping[str, Kernel]
    target: Target = field(default_factory=Target)
    sites: list[Site] = field(default_factory=lambda: [Site("check", "no error")])
    launches: list[LaunchSpec] = field(default_factory=list[LaunchSpec])
    constants: list[str] = field(default_factory=list[str])
    libraries: list[str] = field(default_factory=list[str])
    handles: list[str] = field(default_factory=list[str])
    out: list[host.Statement] = field(default_factory=list[host.Statement])
    bound: set[Var] = field(default_factory=set[Var])
    nonzero: set[Expr] = field(default_factory=set[Expr])
    pending: list[Fact] = field(default_factory=list[Fact])
    pointers: dict[Value, host.Value] = field(default_factory=dict[Value, host.Value])
    counter: int = 0

    # ------------------------------------------------------------ statements

    def emit(self, *statements: host.Statement) -> None:
        """Add statements to the list being made."""
        self.out.extend(statements)

    def local(self, name: str, kind: host.Kind = "int") -> host.Local:
        """Make a new variable."""
        self.counter += 1
        return host.Local(f"{name}_{self.counter}", kind)

    def assign(self, name: str, value: host.Value, kind: host.Kind = "int") -> host.Local:
        """Give a new variable a value."""
        made = self.local(name, kind)
        self.emit(host.Assign(made, value))
        return made

    def invoke(self, function: str, *args: host.Value, kind: host.Kind = "int") -> host.Local:
        """Call a support function for its result."""
        made = self.local(function.removeprefix("tw_"), kind)
        self.emit(host.Invoke(function, args, made))
        return made

    @contextmanager
    def nested(self) -> Generator[list[host.Statement], None, None]:
        """Collect the statements of an inner list; what it binds is forgotten behind it."""
        outer, bound, nonzero = self.out, set(self.bound), set(self.nonzero)
        pending = list(self.pending)
        self.out = []
        try:
            yield self.out
        finally:
            self.out, self.bound, self.nonzero = outer, bound, nonzero
            self.pending = pending

    # ------------------------------------------------------------ checks

    def site(self, site: Site) -> int:
        """Number a check."""
        self.sites.append(site)
        return len(self.sites) - 1

    def guard(self, condition: host.Value, site: Site, *numbers: host.Value) -> None:
        """End the call with a named error unless the condition holds."""
        self.emit(host.Guard(condition, self.site(site), CALL, numbers))

    def bind(self, symbol: Var, value: host.Value, *, natural: bool = False) -> None:
        """Bind a symbol, and check what its declaration says of it.

        ``natural`` numbers, such as dimensions, are known to be 0 or more.
        """
        self.emit(host.BindSymbol(symbol, value))
        self.bound.add(symbol)
        low, high, step = symbol.lower, symbol.upper, symbol.multiple_of
        here = host.Term(symbol)
        if low is not None and not (natural and low <= 0):
            ok = host.Comparison("ge", here, integer(low))
            self.guard(ok, Site("bound", f"{symbol.name} >= {low}", names=(symbol.name,)), here)
        if high is not None:
            ok = host.Comparison("le", here, integer(high))
            self.guard(ok, Site("bound", f"{symbol.name} <= {high}", names=(symbol.name,)), here)
        if step > 1:
            rest = host.Arithmetic("mod", here, integer(step))
            ok = host.Comparison("eq", rest, integer(0))
            text = f"{symbol.name} is a multiple of {step}"
            self.guard(ok, Site("bound", text, names=(symbol.name,)), here)

    def claim(self, predicate: Bool, site: Site) -> None:
        """Check a predicate; the values of its symbols are noted."""
        self.divisors(predicate)
        names = sorted(free_vars(predicate), key=lambda v: v.serial)[:4]
        named = Site(
            site.kind, site.text, site.param, site.dim, site.other,
            tuple(v.name for v in names), site.origin,
        )  # fmt: skip
        self.guard(host.Claim(predicate), named, *(host.Term(v) for v in names))

    def facts(self) -> None:
        """Check the facts whose symbols are all bound by now."""
        ready = [f for f in self.pending if free_vars(f.predicate) <= self.bound]
        self.pending = [f for f in self.pending if f not in ready]
        for fact in ready:
            site = Site("fact", str(fact.predicate), origin=str(fact.origin))
            self.claim(fact.predicate, site)

    def divisors(self, term_: Expr | Bool) -> None:
        """Check that no division in a term is by zero, once a divisor."""
        for divisor in symbolic_divisors(term_):
            if divisor in self.nonzero:
                continue
            self.nonzero.add(divisor)
            self.divisors(divisor)
            if (divisor.lower or 0) > 0 or (divisor.upper or 0) < 0:
                continue
            self.claim(ne(divisor, 0), Site("divisor", str(divisor)))

    def ready(self, expr: Expr, site: str) -> host.Value:
        """Give a term whose symbols are all bound, after checking its divisors."""
        missing = free_vars(expr) - self.bound
        if missing:
            names = ", ".join(sorted(v.name for v in missing))
            raise MalformedProgramError(
                f"{expr} needs {names}, which nothing determines",
                where=f"function {self.function.name!r}, {site}",
                hint="a symbol is determined by a parameter's shape, an integer or a match_cast",
            )
        self.divisors(expr)
        return term(expr)

    # ------------------------------------------------------------ devices

    @property
    def remote(self) -> bool:
        """Whether tensors lie in memory that the host may not touch."""
        return self.target.kind == "cuda"

    @property
    def device(self) -> int:
        """DLPack's number of where tensors lie."""
        return layout.CUDA if self.remote else layout.HOST

    def alignment(self, dtype: DType) -> int:
        """Give what a tensor's address has to be a multiple of.

        Kernels of a GPU read 16 bytes at once, and fault where those are not aligned.
        """
        return max(dtype.bytes, VECTOR_BYTES) if self.remote else dtype.bytes

    def fetch(self, width: host.Width, data: host.Value, offset: int, size: int) -> host.Value:
        """Read a word of a tensor, wherever it lies."""
        if not self.remote:
            return host.Read(width, data, integer(offset))
        word = self.local("word", "ptr")
        self.emit(host.Reserve(word, 8))
        self.copy(word, host.Moved(data, integer(offset)), integer(size))
        return host.Read(width, word, integer(0))

    def copy(self, target: host.Value, source: host.Value, size: host.Value) -> None:
        """Copy bytes of tensors, wherever they lie."""
        if not self.remote:
            self.emit(host.Invoke("tw_copy_bytes", (target, source, size)))
            return
        code = self.local("code", "code")
        self.emit(host.Invoke("tw_copy_between", (CALL, target, source, size), code))
        fine = host.Comparison("eq", code, integer(0))
        self.guard(fine, Site("device", "copy", names=("code", "bytes")), code, size)

    # ------------------------------------------------------------ operands

    def pointer(self, operand: Operand) -> host.Value:
        """Give the address of a tensor operand."""
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
                    f"{getattr(operand, 'name', operand)!r} has no memory",
                    where=f"function {self.function.name!r}",
                    hint="plan_memory gives every tensor its memory",
                )

    def tensor(self, operand: Operand) -> TensorInfo:
        """Give the annotation of a tensor operand."""
        info: Info | None = operand.info if isinstance(operand, Value | ConstantRef) else None
        if not isinstance(info, TensorInfo):
            raise MalformedProgramError(
                f"{getattr(operand, 'name', operand)!r} is not a tensor",
                where=f"function {self.function.name!r}",
            )
        return info

    def dims(self, operand: Operand) -> tuple[Expr, ...]:
        """Give the dimensions of a tensor operand."""
        shape = self.tensor(operand).shape
        if shape is None:
            raise MalformedProgramError(
                f"the shape of {getattr(operand, 'name', operand)!r} is not known",
                where=f"function {self.function.name!r}",
                hint="a match_cast says what it is",
            )
        return shape


def symbolic_divisors(term_: Expr | Bool) -> Sequence[Expr]:
    """List the divisors inside a term that are not numbers, each after those inside of it."""
    found: list[Expr] = []
    for part in postorder(term_):
        match part:
            case FloorDiv(divisor=divisor) | Mod(divisor=divisor):
                if const_value(divisor) is None and divisor not in found:
                    found.append(divisor)
            case _:
                pass
    return found
