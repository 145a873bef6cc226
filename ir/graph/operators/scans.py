"""Running sums."""

from __future__ import annotations

import numpy as np

from ...loop.builder import identity_of
from ...loop.nodes import Binary, Condition, IterKind, Load, Stmt, Store, Where
from ...symbolic import Expr, SymInt
from ..nodes import Info, TensorInfo
from .evaluation import Array, Evaluation
from .inference import CallFacts
from .lowering import Lowering
from .operator import Operator, operator
from .signature import AttributeSpec, OperandSpec, Signature


@operator
class CumSum(Operator):
    """The sum of all elements up to and including each along ``axis``."""

    name = "cumsum"
    signature = Signature((OperandSpec("x", dtypes="number"),), (AttributeSpec("axis", "int", 0),))

    def deduce(self, call: CallFacts) -> Info:
        """Keep shape and dtype."""
        x = call.require_rank(0, 1)
        call.attributes.axis("axis", x.rank)
        return TensorInfo(x.shape, x.dtype)

    def evaluate(self, run: Evaluation) -> Array:
        """Sum."""
        x = run.array(0)
        return np.cumsum(x, axis=run.attributes.axis("axis", x.ndim), dtype=x.dtype)

    def define(self, low: Lowering) -> None:
        """One block, ordered along the axis, that adds to the element before."""
        x, out = low.sources[0], low.out
        axis = low.attributes.axis("axis", x.rank)
        zero = identity_of("add", out.dtype)

        def body(*iters: Expr) -> Stmt:
            before = Load(out, (*iters[:axis], iters[axis] - 1, *iters[axis + 1 :]))
            start = Where(Condition(iters[axis] >= 1), before, zero)
            return Store(out, iters, Binary("add", start, x(*iters)))

        kinds: list[tuple[SymInt, IterKind]] = [
            (d, "ordered" if k == axis else "spatial") for k, d in enumerate(x.shape)
        ]
        low.builder.block(kinds, body, name=self.name)
