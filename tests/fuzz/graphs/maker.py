"""A random graph program in construction: values in scope, lines, parameters and constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from tilewright.errors import TilewrightError
from tilewright.ir.dtype import DTYPES, f32, i64
from tilewright.ir.graph.nodes import Dims, ScalarLiteral, TensorInfo, TupleInfo, Value
from tilewright.ir.graph.operators import infer_call
from tilewright.ir.symbolic import Var, as_expr, const_value, evaluate, product, to_text, var

from tests.fuzz.graphs.program import GraphProgram
from tests.fuzz.program import Indices

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Sequence

    from tilewright.ir.symbolic import Expr

    Shape = tuple[Expr, ...]
    Operand = "Tensor | float | int | bool | Shape"

FLOATS = ("f16", "bf16", "f32", "f64", "f8_e4m3", "f8_e5m2")
EXACT = {
    "f16": 2.0**11, "bf16": 2.0**8, "f32": 2.0**24, "f64": 2.0**53, "f8_e4m3": 2.0**4,
    "f8_e5m2": 2.0**3,
}  # fmt: skip
"""The magnitude up to which every integer is exact in a float dtype."""

FINITE = {
    "f16": 2e4, "bf16": 1e30, "f32": 1e30, "f64": 1e100, "f8_e4m3": 400.0, "f8_e5m2": 4e4,
}  # fmt: skip
"""The magnitude up to which values of a float dtype may grow."""

WHOLE = {
    "bool": 1, "i8": 128, "u8": 255, "i32": 2.0**31, "i64": 2.0**63, "i4": 8, "u4": 15, "i2": 2,
    "u2": 3,
}  # fmt: skip
UNSIGNED = ("u8", "u4", "u2")
DATA = {"f16": 1, "bf16": 1, "f32": 3, "f64": 3, "f8_e4m3": 3, "f8_e5m2": 3} | WHOLE
"""The largest magnitude of the data of inputs."""

NARROW = ("i4", "i4", "u4", "i2", "u2", "f8_e4m3", "f8_e5m2")
NARROWED = 0.15
"""The share of narrow dtypes."""

STATE = 8.0
"""The largest magnitude of floats in a state, so that they remain exact in every call."""

LARGEST = 67
"""The largest value of a symbol."""

MEASURED = "z"
"""The first letter of symbols whose values depend on the data."""

MOST = 1100
"""The largest value of such a symbol."""

PARAMS = 7
"""The largest number of parameters of a function."""


NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Tensor:
    """A value in scope.

    Parameters
    ----------
    text : str
        Its name, or the reference of a constant.
    shape, dtype : tuple of Expr, str
        Its annotation.
    bound : float
        The largest magnitude of its elements.
    exact : bool
        Whether its elements do not depend on rounding.
    """

    text: str
    shape: Shape
    dtype: str
    bound: float
    exact: bool = True

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def is_float(self) -> bool:
        """Whether its elements are floats."""
        return self.dtype in FLOATS

    @property
    def info(self) -> str:
        """Its annotation as text."""
        return annotation(self.shape, self.dtype)

    @property
    def key(self) -> tuple[Shape, str]:
        """Its shape and dtype."""
        return self.shape, self.dtype


def annotation(shape: Iterable[Expr], dtype: str) -> str:
    """Return the annotation of a tensor as text."""
    return f"Tensor[{shape_text(shape)}, {dtype}]"


def shape_text(shape: Iterable[Expr]) -> str:
    """Return a shape as text."""
    dims = [to_text(d) for d in shape]
    return f"({', '.join(dims)}{',' if len(dims) == 1 else ''})"


def largest(term: Expr) -> int:
    """Return the largest value of a dimension."""
    most = {v: MOST if v.name.startswith(MEASURED) else LARGEST for v in term.free}
    return int(evaluate(term, most))


def least(term: Expr) -> int:
    """Return the least value of a dimension."""
    return int(evaluate(term, {v: v.lower or 0 for v in term.free}))


@dataclass
class Scope:
    """The parameters, values and lines of a function or of a branch."""

    values: list[Tensor] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    params: list[str] = field(default_factory=list)
    symbols: set[Var] = field(default_factory=set)
    given: set[Var] = field(default_factory=set)
    closed: bool = False
    index: Expr | None = None

    def define(self, shape: Iterable[Expr]) -> None:
        """Define the symbols that are dimensions by themselves."""
        self.symbols |= {d for d in shape if isinstance(d, Var)}

    def defines(self, shape: Iterable[Expr]) -> bool:
        """Return whether the symbols of a shape are defined."""
        return all(d.free <= self.symbols for d in shape)


class GraphMaker:
    """A source of random parts of one graph program."""

    def __init__(self, rng: random.Random, *, rounding: bool = False) -> None:
        self.rng = rng
        self.rounding = rounding
        self.symbols: dict[str, Var] = {}
        self.constants: dict[str, tuple[Shape, str]] = {}
        self.functions: list[str] = []
        self.kernels: set[str] = set()
        self.indices: dict[str, Indices] = {}
        self.defined: dict[str, str] = {}
        self.unknown: dict[str, str] = {}
        self.measured: list[str] = []
        self.work: list[Expr] = []
        self.rounded: list[str] = []
        self.scope = Scope()
        self.count = 0
        self.depth = 0
        self.states: dict[str, Tensor] = {}
        self.latest: dict[str, Tensor] = {}
        self.updates: Mapping[Callable[[GraphMaker], object], int] = {}

    # ------------------------------------------------------------ choices

    def chance(self, probability: float) -> bool:
        """Return True with a probability."""
        return self.rng.random() < probability

    def name(self, base: str = "v") -> str:
        """Return a new name."""
        self.count += 1
        return f"{base}{self.count}"

    def symbol(self, name: str, *, least: int | None = None) -> Expr:
        """Return a symbol, declared at its first use."""
        if name not in self.symbols:
            lower = self.rng.randint(0, 1) if least is None else least
            self.symbols[name] = var(name, lower=lower)
        return self.symbols[name]

    def dim(self) -> Expr:
        """Draw a dimension: a symbol, or a constant; in a loop also the number of iterations."""
        if self.scope.index is not None and self.chance(0.2):
            return self.scope.index
        if self.chance(0.55):
            return self.symbol(self.rng.choice(["n", "n", "m"]))
        return as_expr(self.rng.choice([1, 2, 3, 4, 4, 8, 16, 5] + [0] * self.chance(0.2)))

    def shape(self, *ranks: int) -> Shape:
        """Draw a shape of one of some ranks."""
        return tuple(self.dim() for _ in range(self.rng.choice(ranks or (0, 1, 2, 2, 2, 3))))

    def dtype(self) -> str:
        """Draw a dtype, most often f32."""
        options = ("f32", "f32", "f32", "f32", "f16", "bf16", "i32", "i8", "f64", "i64")
        return self.rng.choice(NARROW if self.chance(NARROWED) else options)

    def pick(self, fits: Callable[[Tensor], bool] = lambda _: True) -> Tensor | None:
        """Draw a value in scope that fits, more often a recent one."""
        found = [t for t in self.scope.values if fits(t)]
        if not found:
            return None
        return self.rng.choice(found[-3:] if self.chance(0.6) else found)

    # ------------------------------------------------------------ sources

    def param(
        self, shape: Shape, dtype: str, *, indices: Indices | None = None, shown: str = ""
    ) -> Tensor | None:
        """Add a parameter to the current function; None if it has enough."""
        if self.scope.closed or len(self.scope.params) >= PARAMS:
            return None
        name = self.name("x")
        known = () if shown else shape
        if any(v.name in self.measured for d in known for v in d.free):
            return None
        self.scope.define(known)
        self.scope.given |= {d for d in known if isinstance(d, Var)}
        if not all(d.free <= self.scope.given for d in known):  # not those of a match_cast
            return None
        self.scope.params.append(f"{name}: {shown or annotation(shape, dtype)}")
        if indices is not None:
            self.indices[name] = indices
        made = Tensor(name, shape, dtype, DATA[dtype])
        self.scope.values.append(made)
        return made

    def constant(self, shape: Shape, dtype: str) -> Tensor:
        """Add a constant to the program, or use one again."""
        same = [k for k, info in self.constants.items() if info == (shape, dtype)]
        key = self.rng.choice(same) if same and self.chance(0.3) else ""
        if not key:
            key = f"w{len(self.constants)}" + self.rng.choice(["", ".weight", ".bias"])
            self.constants[key] = shape, dtype
        return Tensor(f'const("{key}")', shape, dtype, min(3, DATA[dtype]))

    def like(self, x: Tensor) -> Operand:
        """Return an operand that broadcasts to a value: a value, a constant, or a number."""
        same = [t for t in self.scope.values if t.dtype == x.dtype and fits_into(t.shape, x.shape)]
        choice = self.rng.random()
        if same and choice < 0.5:
            return self.rng.choice(same)
        if choice < 0.7 and x.dtype != "bool":
            number = self.rng.choice([0, 1, 2, 3, -1, -2])
            if x.is_float:
                return float(number)
            return number % 2 if x.dtype in ("i2", *UNSIGNED) else number
        shape = self.narrowed(x.shape)
        if all(const_value(d) is not None for d in shape) and choice < 0.95:
            return self.constant(shape, x.dtype)
        return self.param(shape, x.dtype) or x

    def narrowed(self, shape: Shape) -> Shape:
        """Return a shape that broadcasts to a shape."""
        found = shape[self.rng.randint(0, len(shape)) :] if self.chance(0.5) else shape
        return tuple(as_expr(1) if self.chance(0.15) else d for d in found)

    # ------------------------------------------------------------ bindings

    def emit(
        self,
        op: str,
        *args: Operand,
        bound: float = -1.0,
        rounds: bool = False,
        **attributes: object,
    ) -> Tensor | None:
        """Add a call of an operator; None if its result could be too large, or it needs a check.

        ``bound`` is the largest magnitude of the result, by default that of the operands.
        """
        found = self._inferred(op, args, attributes)
        if not isinstance(found, TensorInfo) or found.shape is None:
            return None
        terms = [d for a in args if isinstance(a, tuple) for d in a]
        if not self.scope.defines([*found.shape, *terms]):
            return None
        tensors = [a for a in args if isinstance(a, Tensor)]
        numbers = [abs(a) for a in args if isinstance(a, int | float)]
        most = max([0.0, *(t.bound for t in tensors), *numbers]) if bound < 0 else bound
        made = self.result(found.shape, found.dtype.name, most, tensors, rounds=rounds)
        if made is None:
            return None
        shown = [*map(operand_text, args), *(f"{k}={v!r}" for k, v in attributes.items())]
        self.bind(made, f"{made.text} = {op}({', '.join(shown)})")
        return made

    def emit_tuple(
        self, op: str, *args: Operand, bound: float = -1.0, **attributes: object
    ) -> list[Tensor]:
        """Add a call of an operator with several results, and their bindings."""
        found = self._inferred(op, args, attributes)
        if not isinstance(found, TupleInfo):
            return []
        whole = self.name("t")
        shown = [*map(operand_text, args), *(f"{k}={v!r}" for k, v in attributes.items())]
        self.scope.lines.append(f"{whole} = {op}({', '.join(shown)})")
        tensors = [a for a in args if isinstance(a, Tensor)]
        infos = [(f.shape or (), f.dtype.name) for f in found.fields if isinstance(f, TensorInfo)]
        return self.items(whole, infos, tensors, bound)

    def items(
        self,
        whole: str,
        infos: Sequence[tuple[Shape, str]],
        sources: Sequence[Tensor],
        bound: float = -1.0,
    ) -> list[Tensor]:
        """Bind the fields of a tuple; some of them stay unused."""
        made = []
        most = max((t.bound for t in sources), default=1.0) if bound < 0 else bound
        for k, (shape, dtype) in enumerate(infos):
            item = self.result(shape, dtype, most, sources)
            if item is not None:
                self.bind(item, f"{item.text} = {whole}[{k}]")
                made.append(item)
        return made

    def result(
        self,
        shape: Shape,
        dtype: str,
        bound: float,
        sources: Sequence[Tensor],
        *,
        rounds: bool = False,
    ) -> Tensor | None:
        """Return a new value; None if its elements could be too large."""
        if dtype not in FLOATS:
            return Tensor(self.name(), shape, dtype, min(bound, WHOLE.get(dtype, bound)))
        if bound > FINITE[dtype]:
            return None
        exact = all(t.exact for t in sources) and bound <= EXACT[dtype] and not rounds
        if not exact and not self.rounding:
            return None
        return Tensor(self.name(), shape, dtype, bound, exact)

    def bind(self, made: Tensor, line: str) -> None:
        """Add a binding."""
        self.scope.lines.append(line)
        self.scope.values.append(made)
        self.work.append(product(made.shape))
        if not made.exact:
            self.rounded.append(made.text)

    def remember(self, old: Tensor, new: Tensor) -> None:
        """Note that a value is the successor of the present value of a state."""
        fits = new.exact and (not new.is_float or new.bound <= STATE)
        for name, present in self.latest.items():
            if present.text == old.text and fits:
                self.latest[name] = new

    def _inferred(self, op: str, args: Sequence[Operand], attributes: dict) -> object:
        operands = tuple(self._operand(a) for a in args)
        given = tuple((k, v) for k, v in attributes.items())
        try:
            found = infer_call(op, operands, given)  # type: ignore[arg-type]
        except TilewrightError:
            return None
        return None if found.requirements else found.info

    def _operand(self, operand: Operand) -> object:
        match operand:
            case Tensor():
                info = TensorInfo(operand.shape, DTYPES[operand.dtype])
                return Value(1, operand.text, info)
            case tuple():
                return Dims(operand)
            case float():
                return ScalarLiteral(operand, f32)
            case _:
                return ScalarLiteral(operand, i64)

    # ------------------------------------------------------------ text

    def function(
        self, name: str, scope: Scope, results: Sequence[str], last: Mapping[str, str] = NONE
    ) -> str:
        """Return the text of a graph function; ``last`` are the last values of parameters."""
        if last:
            changes = ", ".join(f"{k}={v}" for k, v in last.items())
            results = [*results, f"updates({changes})"]
        lines = "\n".join(f"    {line}" for text in scope.lines for line in text.split("\n"))
        head = f"@graph_func\ndef {name}({', '.join(scope.params)}):"
        return f"{head}\n{lines}\n    return {', '.join(results)}\n"

    def program(self, family: str, results: Sequence[str]) -> GraphProgram:
        """Return the program with ``main`` as the current scope."""
        last = {k: t.text for k, t in self.latest.items() if t.text != k or self.chance(0.5)}
        main = self.function("main", self.scope, results, last)
        symbols = [f'{s} = symbols("{s}", lower={v.lower})' for s, v in self.symbols.items()]
        constants = [
            f'constant("{k}", {shape_text(s)}, {t})' for k, (s, t) in self.constants.items()
        ]
        work = dict.fromkeys(to_text(w) for w in self.work)
        return GraphProgram(
            family, "\n".join([*symbols, *constants, "", *self.functions, main]),
            tuple(self.rounded), self.indices, self.defined, self.unknown, tuple(work),
            tuple(self.measured),
        )  # fmt: skip


def fits_into(source: Shape, target: Shape) -> bool:
    """Return whether a shape broadcasts to another one."""
    if len(source) > len(target):
        return False
    pairs = zip(reversed(source), reversed(target), strict=False)
    return all(a is b or const_value(a) == 1 for a, b in pairs)


def operand_text(operand: Operand) -> str:
    """Return an operand as text."""
    match operand:
        case Tensor():
            return operand.text
        case tuple():
            return shape_text(operand)
        case _:
            return repr(operand)
