"""Import handlers of ONNX operators that are products of matrices and tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..dtype import f32, i64
from ..symbolic import as_expr, const_value, maximum, product
from .control_flow import Iteration, LoopForm, emit_loop
from .formulas import Formula, positions, size_of, stacked
from .onnx_context import OnnxContext, onnx_op
from .onnx_schema import malformed
from .tensors import Imported


@dataclass(frozen=True, slots=True)
class _Labeled:
    """A tensor with a label per dimension."""

    x: Formula
    labels: tuple[str, ...]

    def ordered(self, labels: Sequence[str]) -> Formula:
        """Return the tensor with other dimensions, of size 1 for labels that it lacks."""
        kept = [v for v in labels if v in self.labels]
        found = self.x.permute(*(self.labels.index(v) for v in kept))
        return found.unsqueeze(*(k for k, v in enumerate(labels) if v not in self.labels))


@onnx_op("Einsum")
def einsum(c: OnnxContext) -> Imported:
    """Import a sum of products, by matrix products of two operands at a time."""
    text = str(c.attributes["equation"]).replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    operands = c.given()
    if len(terms) != len(operands):
        raise malformed(c.node, f"{text!r} has {len(terms)} terms for {len(operands)} operands")
    pairs = zip(operands, terms, strict=True)
    labeled = [_Labeled(Formula(c, x), _labels(c, term, x.rank)) for x, term in pairs]
    result = _result_labels(c, right if arrow else None, labeled, left)
    found = _diagonal(labeled[0])
    for k, other in enumerate(labeled[1:], start=1):
        later = {v for rest in labeled[k + 1 :] for v in rest.labels}
        found = _contracted(found, _diagonal(other), {*result, *later})
    dropped = [k for k, v in enumerate(found.labels) if v not in result]
    summed = found.x.sum(*dropped) if dropped else found.x
    kept = tuple(v for v in found.labels if v in result)
    if set(kept) != set(result):
        raise malformed(c.node, f"{text!r} has a result of labels that no operand has")
    return _Labeled(summed, kept).ordered(result).x


def _labels(c: OnnxContext, term: str, rank: int) -> tuple[str, ...]:
    """Return a label per dimension; those of an ellipsis are numbered from the last one."""
    before, dots, after = term.partition("...")
    count = rank - len(before) - len(after)
    if count < 0 or (count and not dots) or (not (before + after).isalpha() and before + after):
        raise malformed(c.node, f"term {term!r} does not match an operand of rank {rank}")
    return (*before, *(f"...{k}" for k in reversed(range(count))), *after)


def _result_labels(
    c: OnnxContext, term: str | None, labeled: Sequence[_Labeled], left: str
) -> tuple[str, ...]:
    every = [v for x in labeled for v in x.labels]
    dotted = sorted({v for v in every if v.startswith(".")}, key=lambda v: -int(v[3:]))
    if term is None:
        counts = left.replace(".", "").replace(",", "")
        return (*dotted, *sorted(v for v in set(counts) if counts.count(v) == 1))
    before, dots, after = term.partition("...")
    found = (*before, *(dotted if dots else ()), *after)
    if len(set(found)) != len(found):
        raise malformed(c.node, f"the result {term!r} has a label twice")
    return found


def _diagonal(x: _Labeled) -> _Labeled:
    """Return the diagonal of dimensions with one label."""
    labels, found = list(x.labels), x.x
    for label in dict.fromkeys(x.labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            order = [k for k in range(found.rank) if k not in (first, second)]
            found = found.permute(*order, first, second)
            size = found.shape[-1]
            rest = found.shape[:-2]
            flat = found.reshape(*rest, found.shape[-2] * size)
            at = positions(found.e, found.shape[-2]) * (size_of(found.e, size) + 1)
            found = flat.take(at, len(rest))
            labels = [labels[k] for k in order] + [label]
    return _Labeled(found, tuple(labels))


def _contracted(a: _Labeled, b: _Labeled, kept: set[str]) -> _Labeled:
    """Return the product of two tensors, summed over labels that nothing else has."""
    own = [
        [v for v in x.labels if v not in y.labels and v not in kept] for x, y in ((a, b), (b, a))
    ]
    a, b = (_summed(x, dropped) for x, dropped in zip((a, b), own, strict=True))
    both = [v for v in a.labels if v in b.labels]
    batch = [v for v in both if v in kept]
    inner = [v for v in both if v not in kept]
    rows = [v for v in a.labels if v not in both]
    columns = [v for v in b.labels if v not in both]
    if not inner:
        labels = (*batch, *rows, *columns)
        return _Labeled(a.ordered(labels) * b.ordered(labels), labels)
    left, right = a.ordered([*batch, *rows, *inner]), b.ordered([*batch, *inner, *columns])
    n = len(batch)
    ends = left.shape[n : n + len(rows)], right.shape[n + len(inner) :]
    depth = [left.e.same_size(p, q, "summed dimensions are equal") for p, q in zip(
        left.shape[n + len(rows) :], right.shape[n : n + len(inner)], strict=True)]  # fmt: skip
    left = left.reshape(*left.shape[:n], product(ends[0]), product(depth))
    right = right.reshape(*right.shape[:n], product(depth), product(ends[1]))
    found = left @ right
    found = found.reshape(*found.shape[:n], *ends[0], *ends[1])
    return _Labeled(found, (*batch, *rows, *columns))


def _summed(x: _Labeled, dropped: Sequence[str]) -> _Labeled:
    if not dropped:
        return x
    axes = [x.labels.index(v) for v in dropped]
    return _Labeled(x.x.sum(*axes), tuple(v for v in x.labels if v not in dropped))


@onnx_op("Det")
def determinant(c: OnnxContext) -> Imported:
    """Import the determinants of matrices, by elimination with the greatest pivots."""
    given = Formula(c, c.input(0))
    size = given.shape[-1]
    c.same_size(given.shape[-2], size, "a determinant is that of a square matrix")
    lead = given.shape[:-2]
    x = given.reshape(product(lead), size, size)
    start = Formula(c, c.uniform(1.0, (x.shape[0],), x.dtype))

    def step(now: Iteration) -> tuple[list[Imported], list[Imported]]:
        a, found = (Formula(c, v) for v in now.carried)
        at = positions(c, size)
        index = size_of(c, now.index)
        column = a.cut(2, now.index, now.index + 1)
        below = (at >= index).unsqueeze(1)
        sizes = below.choose(column.apply("abs"), -1.0, x.dtype).squeeze(2)
        chosen = Formula(c, c.apply("argmax", c.plain(sizes.x), axis=1, keepdims=True))
        swapped = at.equal(chosen).choose(index, at, i64)
        order = at.equal(index).choose(chosen, swapped, i64)
        rows = order.unsqueeze(2).expand(*a.shape)
        a = a.call("gather_elements", rows, axis=1)
        pivot = a.cut(1, now.index, now.index + 1)
        top = pivot.cut(2, now.index, now.index + 1)
        zero = top.equal(0.0)
        factor = zero.choose(0.0, a.cut(2, now.index, now.index + 1), x.dtype) / zero.choose(
            1.0, top, x.dtype
        )
        factor = (at > index).unsqueeze(1).choose(factor, 0.0, x.dtype)
        sign = chosen.squeeze(1).equal(index).choose(1.0, -1.0, x.dtype)
        return [(a - factor * pivot).x, (found * sign * top.squeeze(1, 2)).x], []

    _, found = emit_loop(c, LoopForm([x.x, start.x], step, count=size))
    return Formula(c, found).reshape(*lead).x


@onnx_op("TfIdfVectorizer")
def term_counts(c: OnnxContext) -> Imported:
    """Import the numbers of occurrences of sequences of integers, perhaps with weights."""
    if "pool_int64s" not in c.attributes:
        raise malformed(c.node, "only pools of integers have tensors")
    x = Formula(c, c.input(0)).to(i64)
    rows = x.unsqueeze(0) if x.rank == 1 else x
    pool, starts = list(c.attributes["pool_int64s"]), list(c.attributes["ngram_counts"])
    ordinals, mode = list(c.attributes["ngram_indexes"]), str(c.attributes["mode"])
    least, most = c.integer("min_gram_length"), c.integer("max_gram_length")
    width = max(ordinals) + 1
    columns: dict[int, Formula] = {}
    first = 0
    for k, begin in enumerate(starts):
        length = k + 1
        end = starts[k + 1] if k + 1 < len(starts) else len(pool)
        for n, at in enumerate(range(begin, end, length)):
            if least <= length <= most:
                gram = pool[at : at + length]
                skips = 1 if length == 1 else c.integer("max_skip_count") + 1
                count = _occurrences(c, rows, gram, skips)
                ordinal = ordinals[first + n]
                columns[ordinal] = columns[ordinal] + count if ordinal in columns else count
        first += (end - begin) // length
    zero = Formula(c, c.uniform(0, (rows.shape[0],), i64))
    weights = c.attributes.get("weights")
    made = [_weighted(columns.get(k, zero), mode, weights, ordinals, k) for k in range(width)]
    found = stacked(made, 1)
    return (found.squeeze(0) if x.rank == 1 else found).x


def _occurrences(c: OnnxContext, rows: Formula, gram: Sequence[int], skips: int) -> Formula:
    """Return how often a sequence occurs in each row, with elements at each distance."""
    total: Formula | None = None
    for skip in range(1, skips + 1):
        extent = skip * (len(gram) - 1)
        size = rows.shape[1] - extent
        known = const_value(size)
        size = maximum(size, 0) if known is None else as_expr(max(known, 0))
        if const_value(size) == 0:
            continue
        match: Formula | None = None
        for k, value in enumerate(gram):
            same = rows.take(positions(c, size, skip * k), 1).equal(value)
            match = same if match is None else match & same
        if match is None:
            continue
        count = match.to(i64).sum(1)
        total = count if total is None else total + count
    return Formula(c, c.uniform(0, (rows.shape[0],), i64)) if total is None else total


def _weighted(
    count: Formula,
    mode: str,
    weights: Sequence[float] | None,
    ordinals: Sequence[int],
    ordinal: int,
) -> Formula:
    weight = float(weights[ordinal]) if weights and ordinal < len(ordinals) else 1.0
    match mode:
        case "TF":
            return count.to(f32)
        case "IDF":
            return (count > 0).choose(weight, 0.0, f32)
        case _:
            return count.to(f32) * weight
