"""Writes the graph of an imported model: every computation once, nothing that is not needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..dtype import DType
from ..errors import TilewrightError
from ..graph.builder import Argument, AttributeArgument, GraphBuilder, operand
from ..graph.nodes import ConstantRef, Operand, TensorInfo, TupleInfo, Value
from ..graph.operators import Requirement
from ..identity import NO_ORIGIN, Origins
from ..module import Array, Constant
from ..symbolic import Bool, Expr, Min, all_of, as_expr, const_value, eq, is_proved, negate, to_text
from .constants import known_elements, small_elements
from .tensors import Imported, Iota, Stacked, Uniform

_ONE = as_expr(1)


class ImportMismatchError(TilewrightError):
    """The source model does something that its own annotations contradict."""

    title = "Model cannot be imported"


class Emitter:
    """Emits operators for one function, sharing what is computed twice."""

    def __init__(self, builder: GraphBuilder) -> None:
        """Write into a builder."""
        self.builder = builder
        self.origins: Origins = NO_ORIGIN
        self.constants: dict[str, Constant] = {}
        self._done: dict[tuple[object, ...], Value] = {}
        self._permuted: dict[Operand, tuple[Operand, tuple[int, ...]]] = {}

    def emit(
        self, op: str, *args: Argument, name: str | None = None, **attributes: AttributeArgument
    ) -> Value:
        """Apply an operator, or give the value of the same call made before."""
        operands = tuple(operand(a) for a in args)
        if op == "permute_dims" and operands[0] in self._permuted:
            return self._permute_again(
                self._permuted[operands[0]], integers(attributes["axes"]), name
            )
        key = (op, tuple(map(_key, operands)), repr(sorted(attributes.items())))
        if key not in self._done:
            self._done[key] = self.builder.emit(
                op, *operands, name=name, origins=self.origins, **attributes
            )
        found = self._done[key]
        if op == "permute_dims":
            self._permuted[found] = operands[0], integers(attributes["axes"])
        return found

    def _permute_again(
        self, before: tuple[Operand, tuple[int, ...]], axes: tuple[int, ...], name: str | None
    ) -> Value:
        """Reorder once instead of twice."""
        source, first = before
        return self.emit("permute_dims", source, name=name, axes=tuple(first[a] for a in axes))

    def tensor(self, value: Value | ConstantRef) -> Imported:
        """Take a value as it is."""
        info = value.info
        if not isinstance(info, TensorInfo) or info.shape is None:
            raise ImportMismatchError(f"a tensor of known shape was expected, not {info}")
        return Imported(info.shape, info.dtype, value)

    def constant(
        self,
        key: str,
        sizes: tuple[int, ...],
        dtype: DType,
        load: Callable[[], Array],
        source: str = "",
    ) -> Imported:
        """Refer to a constant; small ones are looked at."""
        shape = tuple(as_expr(d) for d in sizes)
        self.constants.setdefault(key, Constant(sizes, dtype, load, source=source))
        info = TensorInfo(shape, dtype, elements=small_elements(sizes, dtype, load))
        known = known_elements(sizes, dtype, load)
        return Imported(shape, dtype, self.builder.constant(key, info), known)

    def apply(
        self, op: str, *args: Argument, name: str | None = None, **attributes: AttributeArgument
    ) -> Imported:
        """Apply an operator, and take its result as it is."""
        return self.tensor(self.emit(op, *args, name=name, **attributes))

    def items(self, value: Value) -> list[Imported]:
        """Take the fields of a tuple."""
        count = len(value.info.fields) if isinstance(value.info, TupleInfo) else 0
        return [self.tensor(self.builder.item(value, k)) for k in range(count)]

    # ---------------------------------------------------------------- materialising

    def compact(self, x: Imported) -> Value | ConstantRef:
        """Give a tensor that broadcasts to the value's shape."""
        if x.operand is not None:
            return x.operand
        match x.known:
            case Uniform(value=value):
                return self.emit("full", (1,) * x.rank, value, dtype=x.dtype.name)
            case Iota(axis=axis, start=start):
                return self._counted(x, axis, start)
            case Stacked(parts=parts):
                return self._stacked(parts)
            case None:
                raise ImportMismatchError("a value of the source model has no elements")

    def _counted(self, x: Imported, axis: int, start: Expr) -> Value:
        found = self.emit("arange", (start, start + x.shape[axis], 1), dtype=x.dtype.name)
        others = tuple(k for k in range(x.rank) if k != axis)
        return self.emit("expand_dims", found, axes=others) if others else found

    def _stacked(self, parts: Sequence[Imported]) -> Value:
        shape = self.broadcast_shapes([p.shape for p in parts])
        columns = [Imported((*shape, _ONE), p.dtype, self._column(p)) for p in parts]
        return self.emit("concat", *(self.plain(c) for c in columns), axis=len(shape))

    def _column(self, x: Imported) -> Value:
        return self.emit("expand_dims", self.compact(x), axes=(x.rank,))

    def plain(self, x: Imported) -> Value | ConstantRef:
        """Give a tensor of exactly the value's shape."""
        if x.operand is None and isinstance(x.known, Uniform):
            return self.emit("full", x.shape, x.known.value, dtype=x.dtype.name)
        found = self.compact(x)
        have = found.info.shape if isinstance(found.info, TensorInfo) else None
        if have == x.shape:
            return found
        return self.emit("broadcast_to", found, x.shape)

    def factor(self, x: Imported) -> Operand | float | int | bool:
        """Give an operand of an element-wise operator: a number where one is enough."""
        if isinstance(x.known, Uniform):
            return x.known.value
        return self.compact(x)

    def elements(self, x: Imported) -> tuple[Expr, ...] | None:
        """Give the symbolic values of a small integer tensor, where they are known."""
        found = self.plain(x)
        return found.info.elements if isinstance(found.info, TensorInfo) else None

    # ---------------------------------------------------------------- shapes

    def same_size(self, left: Expr, right: Expr, reason: str) -> Expr:
        """Require that two sizes are equal, by proof or by a run-time check."""
        predicate = equal_sizes(left, right)
        if left is right or is_proved(predicate, self.builder.facts):
            return right if isinstance(left, Min) else left
        text = f"{reason}: {to_text(left)} and {to_text(right)}"
        if is_proved(negate(predicate), self.builder.facts):
            raise ImportMismatchError(text, where=", ".join(sorted(self.origins)))
        self.builder.check(Requirement(predicate, text), self.origins)
        return right if isinstance(left, Min) else left

    def broadcast_shapes(self, shapes: Sequence[tuple[Expr, ...]]) -> tuple[Expr, ...]:
        """Combine shapes right-aligned; dimensions that are not 1 are required to be equal."""
        rank = max((len(s) for s in shapes), default=0)
        result = [_ONE] * rank
        for shape in shapes:
            for k, dim in enumerate(shape, start=rank - len(shape)):
                if const_value(result[k]) == 1:
                    result[k] = dim
                elif const_value(dim) != 1:
                    result[k] = self.same_size(result[k], dim, "shapes do not broadcast")
        return tuple(result)

    def uniform(self, value: float, shape: Sequence[Expr], dtype: DType) -> Imported:
        """A tensor of one number, not made until it is needed."""
        kind = bool if dtype.kind == "bool" else float if dtype.is_float else int
        return Imported(tuple(shape), dtype, known=Uniform(kind(value)))


def equal_sizes(left: Expr, right: Expr) -> Bool:
    """State that two sizes are equal; ``min(a, b) == a`` is better known as ``a <= b``."""
    for least, size in ((left, right), (right, left)):
        if isinstance(least, Min) and size in least.args:
            return all_of(*(size <= other for other in least.args))
    return eq(left, right)


def integers(value: AttributeArgument) -> tuple[int, ...]:
    """Read an attribute that holds integers."""
    items = value if isinstance(value, Sequence) else ()
    return tuple(v for v in items if isinstance(v, int))


def _key(value: Operand) -> object:
    match value:
        case Value():
            return value
        case _:
            return repr(value)
