"""Matrix products of groups of rows, each with a matrix of its own."""

from __future__ import annotations

import numpy as np

from ...loop.combiners import identity_of
from ...loop.nodes import Binary, Block, Buffer, For, IterKind, IterVar, Let, Load, Stmt, Store
from ...loop.ranges import loop_var
from ...loop.regions import access_regions
from ...symbolic import Expr, Var, as_expr, const_value, var
from ..nodes import Info, Operand, TensorInfo
from .composition import Composer
from .errors import OperandError
from .evaluation import Array, Evaluation, accumulator_dtype
from .gradients import GradientCall, transposed
from .lowering import Lowering, accumulator, buffer_source, cast_to
from .operator import Operator, operator
from .shape_inference import CallFacts
from .signature import OperandSpec, Signature


@operator
class GroupedMatMul(Operator):
    """Multiply consecutive groups of rows by one matrix per group.

    Parameters
    ----------
    x : tensor
        A numeric dtype, shape ``(s, k)``.
    w : tensor
        The same dtype, shape ``(g, k, n)``.
    offsets : tensor
        An integer dtype, shape ``(g + 1,)``, not decreasing, values in ``[0, s]``. Rows
        ``offsets[i]`` to ``offsets[i + 1] - 1`` are group ``i``.

    Returns
    -------
    tensor
        The dtype of `x`, shape ``(s, n)``; rows of no group are 0.

    Raises
    ------
    OperandError
        If the dtypes or ranks are different from these.
    ShapeMismatchError
        If the sizes disagree.

    Notes
    -----
    The layers of a mixture of experts multiply the rows of each expert in this way. Offsets that
    decrease, or are out of range, are a run-time error. 16-bit floats are accumulated in float32.
    PyTorch: ``torch._grouped_mm`` with the ends of the groups, without the first offset.

    Examples
    --------
    >>> x, w = np.array([[1.0], [2.0], [3.0]]), np.array([[[10.0]], [[100.0]]])
    >>> GroupedMatMul().reference((x, w, np.array([0, 1, 3])))
    array([[ 10.],
           [200.],
           [300.]])
    """

    name = "grouped_matmul"
    signature = Signature(
        (
            OperandSpec("x", dtypes="field"),
            OperandSpec("w", dtypes="field"),
            OperandSpec("offsets", dtypes="integer"),
        )
    )

    def deduce(self, call: CallFacts) -> Info:
        """Return the rows of `x` and the columns of `w`; require that the other sizes agree."""
        ranks = (2, 3, 1)
        x, w, offsets = (call.tensor(k) for k in range(3))
        for k, (operand, rank) in enumerate(zip((x, w, offsets), ranks, strict=True)):
            if operand.rank != rank:
                raise call.error(k, f"expected rank {rank}, got {operand.rank}")
        dtype = call.require_same_dtype((0, 1))
        call.require_equal(x.shape[1], w.shape[1], "inner dimensions of a grouped matmul")
        call.require_equal(offsets.shape[0], w.shape[0] + 1, "offsets of one group more than of w")
        return TensorInfo((x.shape[0], w.shape[2]), dtype)

    def evaluate(self, run: Evaluation) -> Array:
        """Multiply each group with NumPy."""
        x, w, offsets = run.arrays()
        if np.any(np.diff(offsets) < 0) or np.any((offsets < 0) | (offsets > len(x))):
            raise OperandError(
                f"offsets {offsets.tolist()} are not increasing numbers of rows in [0, {len(x)}]",
                where=f"operator {self.name}",
            )
        wide = accumulator_dtype(x.dtype)
        found = np.zeros((len(x), w.shape[2]), wide)
        with np.errstate(all="ignore"):
            for k, matrix in enumerate(w):
                rows = slice(offsets[k], offsets[k + 1])
                found[rows] = x[rows].astype(wide) @ matrix.astype(wide)
        return found.astype(x.dtype)

    def define(self, low: Lowering) -> None:
        """Define zeros and one block for the products; 16-bit floats use a float32 temporary."""
        out = low.out
        wide = accumulator(out.dtype)
        target = out if wide == out.dtype else low.builder.temporary("partial", out.shape, wide)
        low.builder.compute(target, lambda *_: identity_of("add", wide), name="zeros")
        low.builder.statement(_groups(low, target))
        if target is not out:
            read = buffer_source(target)
            low.builder.compute(out, lambda *i: cast_to(out.dtype, read(*i)), name="rounded")

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand | None:
        """Multiply the cotangent by the transposed matrices; `w` has no gradient."""
        if position:
            return None
        _, w, offsets = call.args
        return graph.emit("grouped_matmul", call.cotangent(graph), transposed(graph, w), offsets)


def _groups(low: Lowering, target: Buffer) -> Stmt:
    """Return the loops over groups, their rows, columns, and terms."""
    x, w, _ = low.sources
    build = low.builder
    rows, (groups, terms, columns) = x.shape[0], w.shape
    g = loop_var(build.fresh("g"), groups)
    start, end = (_row(build.fresh(name), rows) for name in ("start", "end"))
    i = loop_var(build.fresh("i"), end - start)
    j, r = loop_var(build.fresh("j"), columns), loop_var(build.fresh("r"), terms)
    bound: tuple[tuple[Var, Expr, IterKind, Expr], ...] = (
        (g, groups, "spatial", g),
        (i, rows, "spatial", start + i),
        (j, columns, "spatial", j),
        (r, terms, "reduce", r),
    )
    iters = tuple(
        IterVar(loop_var(build.fresh(f"v{loop.name}"), extent), extent, kind, binding)
        for loop, extent, kind, binding in bound
    )
    vg, vi, vj, vr = (v.var for v in iters)
    wide = target.dtype
    product = Binary("mul", cast_to(wide, x(vi, vr)), cast_to(wide, w(vg, vr, vj)))
    body = Store(target, (vi, vj), Binary("add", Load(target, (vi, vj)), product))
    reads, writes = access_regions(body)
    nest: Stmt = Block(build.mint(), build.fresh("grouped"), iters, reads, writes, body)
    for loop, extent in ((r, terms), (j, columns), (i, end - start)):
        nest = For(build.mint(), loop, extent, nest)
    last = low.load(2, (g + 1,))
    nest = Let(end, start, rows + 1, last, "checked", nest)
    nest = Let(start, as_expr(0), rows + 1, low.load(2, (g,)), "checked", nest)
    return For(build.mint(), g, groups, nest)


def _row(name: str, rows: Expr) -> Var:
    """Return a variable for a number of rows."""
    return var(name, lower=0, upper=const_value(rows))
