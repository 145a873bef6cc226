"""The slice update operator."""

from __future__ import annotations

from ...loop.nodes import Condition, Element, Store, Where
from ...symbolic import Expr, all_of
from ..nodes import Info, Operand, TensorInfo
from .composition import Composer
from .evaluation import Array, Evaluation
from .gradients import GradientCall, zeros
from .lowering import Lowering
from .operator import Operator, operator
from .shape_inference import CallFacts, shape_text
from .signature import OperandSpec, Signature


@operator
class UpdateSlice(Operator):
    """Replace a box of a tensor by another tensor.

    Parameters
    ----------
    x : tensor
        Any dtype, shape ``(d0, ..., dn)``.
    update : tensor
        The dtype and rank of `x`, shape ``(u0, ..., un)``.
    begin : tuple of integers
        The index of the first replaced element, with ``0 <= begin[k] <= dk - uk``.

    Returns
    -------
    tensor
        A copy of `x` with the box replaced.

    Raises
    ------
    OperandError
        If dtypes or ranks differ.
    ShapeMismatchError
        If the box is not inside `x`.

    Notes
    -----
    JAX: ``dynamic_update_slice``.

    Examples
    --------
    >>> import numpy as np
    >>> UpdateSlice().reference((np.zeros(4), np.array([1.0, 2.0]), (1,)))
    array([0., 1., 2., 0.])
    """

    name = "update_slice"
    is_update = True
    signature = Signature(
        (OperandSpec("x"), OperandSpec("update"), OperandSpec("begin", ("dims",)))
    )

    def deduce(self, call: CallFacts) -> Info:
        """Return the shape of ``x``; require that the update is inside it."""
        x = call.tensor(0)
        update = call.require_rank(1, x.rank, x.rank)
        call.require_same_dtype((0, 1))
        begin = call.dims(2)
        if len(begin) != x.rank:
            raise call.error(
                2, f"expected one integer per dimension of x ({x.rank}), got {len(begin)}"
            )
        text = f"update of shape {shape_text(update.shape)} at {shape_text(begin)}"
        for k, (start, size, most) in enumerate(zip(begin, update.shape, x.shape, strict=True)):
            inside = all_of(start >= 0, start + size <= most)
            call.require(
                inside, f"{text} must be within x of shape {shape_text(x.shape)}; axis {k}"
            )
        return TensorInfo(x.shape, x.dtype)

    def evaluate(self, run: Evaluation) -> Array:
        """Copy ``x`` and write the update with NumPy."""
        x, update, begin = run.array(0), run.array(1), run.dims(2)
        out = x.copy()
        out[tuple(slice(b, b + n) for b, n in zip(begin, update.shape, strict=True))] = update
        return out

    def define(self, low: Lowering) -> None:
        """Define one block that selects the source by index; in place, one that writes the box."""
        x, update = low.sources[:2]
        begin = low.call.dims(2)
        if low.in_place:
            low.builder.block(
                [(size, "spatial") for size in update.shape],
                lambda *own: Store(
                    low.out, tuple(b + i for b, i in zip(begin, own, strict=True)), update(*own)
                ),
                name=self.name,
            )
            return

        def value(*indices: Expr) -> Element:
            own = tuple(i - b for i, b in zip(indices, begin, strict=True))
            inside = [c for o, n in zip(own, update.shape, strict=True) for c in (o >= 0, o < n)]
            return Where(Condition(all_of(*inside)), update(*own), x(*indices))

        low.builder.compute(low.out, value, name=self.name)

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Return the cotangent of the elements that are kept, or of the update."""
        g, begin, update = call.cotangent(graph), call.facts.dims(2), call.tensor(1)
        if not position:
            erased = zeros(graph, TensorInfo(update.shape, update.dtype))
            return graph.emit("update_slice", g, erased, begin)
        ends = tuple(b + d for b, d in zip(begin, update.shape, strict=True))
        return graph.emit("strided_slice", g, begin, ends, axes=tuple(range(update.rank)))
