"""Write a tensor into another one at a place given by symbolic integers."""

from __future__ import annotations

from ...loop.nodes import Condition, Element, Where
from ...symbolic import Expr, all_of
from ..nodes import Info, TensorInfo
from .evaluation import Array, Evaluation
from .inference import CallFacts, shape_text
from .lowering import Lowering
from .operator import Operator, operator
from .signature import OperandSpec, Signature


@operator
class UpdateSlice(Operator):
    """``x`` with ``update`` written where its first element lies at ``begin``."""

    name = "update_slice"
    signature = Signature(
        (OperandSpec("x"), OperandSpec("update"), OperandSpec("begin", ("dims",)))
    )

    def deduce(self, call: CallFacts) -> Info:
        """Keep the shape; require that the update lies inside."""
        x = call.tensor(0)
        update = call.require_rank(1, x.rank, x.rank)
        call.require_same_dtype((0, 1))
        begin = call.dims(2)
        if len(begin) != x.rank:
            raise call.error(2, f"{len(begin)} integers for rank {x.rank}")
        text = f"update {shape_text(update.shape)} at {shape_text(begin)}"
        for k, (start, size, most) in enumerate(zip(begin, update.shape, x.shape, strict=True)):
            inside = all_of(start >= 0, start + size <= most)
            call.require(inside, f"{text} leaves {shape_text(x.shape)} in axis {k}")
        return TensorInfo(x.shape, x.dtype)

    def evaluate(self, run: Evaluation) -> Array:
        """Copy, then write."""
        x, update, begin = run.array(0), run.array(1), run.dims(2)
        out = x.copy()
        out[tuple(slice(b, b + n) for b, n in zip(begin, update.shape, strict=True))] = update
        return out

    def define(self, low: Lowering) -> None:
        """One block that chooses by position."""
        x, update = low.sources[:2]
        begin = low.call.dims(2)

        def value(*indices: Expr) -> Element:
            own = tuple(i - b for i, b in zip(indices, begin, strict=True))
            inside = [c for o, n in zip(own, update.shape, strict=True) for c in (o >= 0, o < n)]
            return Where(Condition(all_of(*inside)), update(*own), x(*indices))

        low.builder.compute(low.out, value, name=self.name)
