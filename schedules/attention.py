"""Attention in a graph: two matrix products with a softmax between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ..ir.dtype import f32
from ..ir.graph.nodes import (
    Binding,
    Call,
    ConstantRef,
    Dims,
    GraphFunc,
    Operand,
    ScalarLiteral,
    TensorInfo,
    Value,
    operand_info,
)
from ..ir.graph.operators import infer_call
from ..ir.graph.visit import users
from ..ir.loop.nodes import Binary, BinaryOp, Condition, Element, Number, Where
from ..ir.symbolic import Expr, Facts, as_expr, const_value, is_proved, var

Indices = tuple[Expr, ...]
Read = Callable[[Operand, Indices], Element]
"""Loads the element of an operand at indices."""

_ZERO: Final = as_expr(0)
_MATRIX: Final = 2
_SCALES: Final[Mapping[str, BinaryOp]] = {"multiply": "mul", "divide": "div"}


@dataclass(frozen=True)
class Source:
    """A tensor that attention reads, perhaps through permutations and repetitions.

    Parameters
    ----------
    operand : Operand
        The tensor in memory.
    at : callable
        The indices of the tensor for indices of the operand of the product.
    """

    operand: Operand
    at: Callable[[Indices], Indices]


@dataclass(frozen=True)
class ScoreStep:
    """An element-wise step from the scores to the operand of the softmax.

    Parameters
    ----------
    op : str
        ``mul``, ``div``, ``add``, or ``where`` and ``where_not``: another number where the factor
        is false, or true.
    factor : Source or float
        The other operand.
    other : float
        The number that replaces scores.
    """

    op: str
    factor: Source | float
    other: float = -float("inf")

    @property
    def keeps_lowest(self) -> bool:
        """Whether minus infinity surely stays minus infinity."""
        if isinstance(self.factor, Source):
            return self.op != "add" and self.other == -float("inf")
        return 0 < self.factor < float("inf")

    def apply(self, score: Element, at: Indices, read: Read) -> Element:
        """Return the score after the step, at indices of the scores."""
        if isinstance(self.factor, Source):
            other = read(self.factor.operand, self.factor.at(at))
        else:
            other = Number(self.factor, f32)
        if self.op == "where":
            return Where(other, score, Number(self.other, f32))
        if self.op == "where_not":
            return Where(other, Number(self.other, f32), score)
        op: Any = self.op
        return Binary(op, score, other)


@dataclass(frozen=True)
class CausalStep:
    """The step that replaces the scores of keys after ``query + offset`` by minus infinity."""

    offset: Expr

    @property
    def keeps_lowest(self) -> bool:
        """Whether minus infinity surely stays minus infinity."""
        return True

    def apply(self, score: Element, at: Indices, read: Read) -> Element:
        """Return the score after the step, at indices of the scores."""
        del read
        kept = Condition(at[-1] <= at[-2] + self.offset)
        return Where(kept, score, Number(-float("inf"), f32))


@dataclass(frozen=True)
class Attention:
    """Scaled dot-product attention that a binding computes.

    Parameters
    ----------
    outer : tuple of Expr
        The dimensions before the matrices: batches and heads.
    queries, keys : Expr
        The numbers of queries and of keys.
    width, depth : int
        The elements of a key, and of a value.
    query, key, value : Source
        The operands; the indices of ``key`` are those of the key, not of its transpose.
    steps : tuple
        The steps from scores to the operand of the softmax, in order.
    zero_rows : bool
        Whether the result for a query without keys is 0; otherwise, it is NaN.
    inner : tuple of Value
        The scores and weights, which the kernel does not store.
    """

    outer: tuple[Expr, ...]
    queries: Expr
    keys: Expr
    width: int
    depth: int
    query: Source
    key: Source
    value: Source
    steps: tuple[ScoreStep | CausalStep, ...]
    zero_rows: bool
    inner: tuple[Value, ...] = ()

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The tensors that the attention reads, each once."""
        factors = (s.factor for s in self.steps if isinstance(s, ScoreStep))
        sources = (self.query, self.key, self.value, *factors)
        return tuple(dict.fromkeys(s.operand for s in sources if isinstance(s, Source)))


class Recognition:
    """The attentions of one graph function."""

    def __init__(self, graph: GraphFunc) -> None:
        """Find the definitions and users of values."""
        self._calls = {b.value: b.right for b in graph.bindings if isinstance(b.right, Call)}
        self._uses = users(graph)
        self._returned = frozenset(graph.returned)
        self._facts: Facts = graph.facts

    def attention(self, binding: Binding) -> Attention | None:
        """Return the attention whose result a binding is, or None."""
        product = self._call(binding.value, "matmul")
        if product is None or product.attributes:
            return None
        weights = self._inner(product.args[0], "softmax")
        if weights is None:
            return None
        attributes = dict(weights.attributes)
        scores = _shape(weights.args[0])
        if scores is None or attributes.get("axis", -1) not in (-1, len(scores) - 1):
            return None
        zero_rows = attributes.get("masked_rows", "nan") == "zero"
        steps: list[ScoreStep | CausalStep] = []
        operand = weights.args[0]
        inner: list[Operand] = [product.args[0], operand]
        while (step := self._step(operand, scores)) is not None:
            one, operand = step
            steps.insert(0, one)
            inner.append(operand)
        first = self._inner(operand, "matmul")
        if first is None or first.attributes or _shape(operand) != scores:
            return None
        if not all(map(self._is_complete, (first, weights, product))):
            return None
        operands = (*first.args, product.args[1])
        found = self._made(binding, operands, scores, tuple(steps), zero_rows)
        values = tuple(v for v in inner if isinstance(v, Value))
        return None if found is None else replace(found, inner=values)

    def _made(
        self,
        binding: Binding,
        operands: tuple[Operand, ...],
        scores: Indices,
        steps: tuple[ScoreStep | CausalStep, ...],
        zero_rows: bool,  # noqa: FBT001
    ) -> Attention | None:
        result = _shape(binding.value)
        shapes = [_shape(x) for x in operands]
        if result is None:
            return None
        width, depth = (const_value(s[-1]) if s else None for s in (shapes[0], shapes[-1]))
        outer = scores[:-_MATRIX]
        if not width or not depth or result[:-_MATRIX] != outer:
            return None
        sources: list[Source] = []
        for operand, shape in zip(operands, shapes, strict=True):
            if shape is None or not _is_batch_of(shape, outer):
                return None
            source = self._source(operand, shape, outer)
            if not isinstance(source.operand, Value) or not _is_f32(source.operand):
                return None
            sources.append(source)
        query, transposed, value = sources
        key = Source(transposed.operand, lambda at: transposed.at((*at[:-2], at[-1], at[-2])))
        at = tuple(var(f"i{k}") for k in range(len(scores)))
        if key.at(at)[-1] != at[-1]:
            return None  # the elements of a key are not adjacent
        counts = scores[-2], scores[-1]
        return Attention(outer, *counts, width, depth, query, key, value, steps, zero_rows)

    def _is_complete(self, call: Call) -> bool:
        """Return whether the requirements of an operator are proved, so that none is checked."""
        found = infer_call(call.op, call.args, call.attributes, self._facts)
        return all(is_proved(r.predicate, self._facts) for r in found.requirements)

    def _call(self, operand: Operand, op: str) -> Call | None:
        found = self._calls.get(operand) if isinstance(operand, Value) else None
        return found if found is not None and found.op == op else None

    def _inner(self, operand: Operand, op: str) -> Call | None:
        """Return the call of an operator whose result only the attention uses."""
        return self._call(operand, op) if self._is_inner(operand) else None

    def _is_inner(self, operand: Operand) -> bool:
        if not isinstance(operand, Value) or operand in self._returned or not _is_f32(operand):
            return False
        uses = self._uses.get(operand, [])
        return len(uses) == 1 and operand in self._calls

    def _step(
        self, operand: Operand, scores: Indices
    ) -> tuple[ScoreStep | CausalStep, Operand] | None:
        """Return the step that computes an operand, and the scores before it."""
        if not self._is_inner(operand) or not isinstance(operand, Value):
            return None
        call = self._calls[operand]
        if _shape(operand) != scores:
            return None
        match call.op, call.args:
            case ("multiply" | "divide") as op, (Value() as x, ScalarLiteral(value=factor)):
                return ScoreStep(_SCALES[op], float(factor)), x
            case "where", (condition, Value() as x, ScalarLiteral(value=other)):
                found = self._condition(condition, scores, ("where", float(other)))
                return None if found is None else (found, x)
            case "where", (condition, ScalarLiteral(value=other), Value() as x):
                found = self._condition(condition, scores, ("where_not", float(other)))
                return None if found is None else (found, x)
            case "add", (x, y):
                if not self._is_scores(x, scores):
                    x, y = y, x
                if not self._is_scores(x, scores) or not _is_f32(y):
                    return None
                added = self._factor(y, scores)
                return None if added is None else (ScoreStep("add", added), x)
            case _:
                return None

    def _is_scores(self, operand: Operand, scores: Indices) -> bool:
        """Return whether an operand is computed from the scores."""
        while isinstance(operand, Value) and self._is_inner(operand) and _shape(operand) == scores:
            call = self._calls[operand]
            if call.op == "matmul":
                return True
            tensors = [a for a in call.args if self._is_inner(a) and _shape(a) == scores]
            if len(tensors) != 1:
                return False
            operand = tensors[0]
        return False

    def _condition(
        self, operand: Operand, scores: Indices, form: tuple[str, float]
    ) -> ScoreStep | CausalStep | None:
        """Return the step that replaces scores where a condition is false, or true."""
        op, other = form
        causal = self._causal(operand)
        if causal is not None and form == ("where", -float("inf")):
            return causal
        info = operand_info(operand)
        if not isinstance(info, TensorInfo) or info.dtype.kind != "bool":
            return None
        found = self._factor(operand, scores)
        return None if found is None else ScoreStep(op, found, other)

    def _causal(self, operand: Operand) -> CausalStep | None:
        """Return the step for a causal mask, perhaps with more dimensions of extent 1."""
        wider = self._call(operand, "expand_dims")
        shape = _shape(operand)
        if wider is not None and shape is not None:
            operand, outer = wider.args[0], shape[:-_MATRIX]
            if any(const_value(d) != 1 for d in outer) or _shape(operand) != shape[-_MATRIX:]:
                return None
        mask = self._call(operand, "causal_mask")
        if mask is None or not isinstance(mask.args[0], Dims):
            return None
        return CausalStep(mask.args[0].dims[2])

    def _factor(self, operand: Operand, scores: Indices) -> Source | None:
        """Return an operand that broadcasts to the scores."""
        shape = _shape(operand)
        if shape is None or not _broadcasts(shape, scores):
            return None
        if not isinstance(operand, Value | ConstantRef):
            return None
        return Source(operand, lambda at: _broadcast(shape, at))

    def _source(self, operand: Operand, shape: Indices, outer: Indices) -> Source:
        """Return the tensor of which an operand of a product is a permutation or a repetition."""
        rank = len(outer)

        def at(indices: Indices) -> Indices:
            batch = _broadcast(shape[:-_MATRIX], indices[:rank])
            return (*batch, *indices[rank:])

        source = Source(operand, at)
        while isinstance(source.operand, Value) and source.operand in self._calls:
            call = self._calls[source.operand]
            inner = _before(call, _shape(source.operand))
            if inner is None:
                break
            source = _composed(call.args[0], inner, source)
        return source


def _composed(operand: Operand, inner: Callable[[Indices], Indices], outer: Source) -> Source:
    return Source(operand, lambda at: inner(outer.at(at)))


def _before(call: Call, shape: Indices | None) -> Callable[[Indices], Indices] | None:
    """Return the map from indices of the result of a call that moves elements to its operand."""
    source = _shape(call.args[0]) if call.args else None
    if source is None or shape is None:
        return None
    attributes: dict[str, Any] = dict(call.attributes)
    match call.op:
        case "permute_dims":
            axes = attributes.get("axes") or tuple(reversed(range(len(source))))
            axes = tuple(a % len(source) for a in axes)
            return lambda at: tuple(at[axes.index(k)] for k in range(len(source)))
        case "broadcast_to":
            return lambda at: _broadcast(source, at)
        case "expand_dims":
            kept = _kept_axes(source, shape)
            return None if kept is None else lambda at: tuple(at[k] for k in kept)
        case "reshape":
            return _merged(source, shape)
        case _:
            return None


def _kept_axes(source: Indices, shape: Indices) -> tuple[int, ...] | None:
    """Return the axes of a shape that are not new; None if the extents do not determine them."""
    wide = tuple(k for k, d in enumerate(shape) if const_value(d) != 1)
    if tuple(shape[k] for k in wide) == source:
        return wide
    return None


def _merged(source: Indices, shape: Indices) -> Callable[[Indices], Indices] | None:
    """Return the indices before two dimensions became one; None for any other change of shape."""
    if len(source) != len(shape) + 1:
        return None
    k = next((i for i, d in enumerate(shape) if source[i] != d), len(shape) - 1)
    inner = const_value(source[k + 1])
    if not inner or source[k + 2 :] != shape[k + 1 :] or source[k] * inner != shape[k]:
        return None
    return lambda at: (*at[:k], at[k] // inner, at[k] % inner, *at[k + 1 :])


def _shape(operand: Operand) -> Indices | None:
    info = operand_info(operand)
    return info.shape if isinstance(info, TensorInfo) else None


def _is_f32(operand: Operand) -> bool:
    info = operand_info(operand)
    return isinstance(info, TensorInfo) and info.dtype is f32


def _is_batch_of(shape: Indices, outer: Indices) -> bool:
    return len(shape) >= _MATRIX and _broadcasts(shape[:-_MATRIX], outer)


def _broadcasts(shape: Indices, wanted: Indices) -> bool:
    if len(shape) > len(wanted):
        return False
    last = wanted[len(wanted) - len(shape) :]
    return all(a == b or const_value(a) == 1 for a, b in zip(shape, last, strict=True))


def _broadcast(shape: Indices, at: Indices) -> Indices:
    last = at[len(at) - len(shape) :]
    return tuple(_ZERO if const_value(d) == 1 else i for d, i in zip(shape, last, strict=True))
