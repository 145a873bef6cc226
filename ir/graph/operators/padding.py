"""Padding: elements around a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ...loop.combiners import identity_of
from ...loop.nodes import Condition, Element, Where
from ...symbolic import Bool, Expr, all_of, const_value, maximum, minimum, to_text
from ..nodes import Info, Operand, TensorInfo
from .composition import Composer
from .creation import require_sizes
from .evaluation import Array, Evaluation
from .gradients import GradientCall
from .lowering import Lowering
from .operator import Operator, operator
from .shape_inference import CallFacts, Tensor
from .signature import AttributeSpec, OperandSpec, Signature

_MODES: Final = ("constant", "edge", "reflect", "wrap")


@operator
class Pad(Operator):
    """Add elements before and after those of a tensor.

    Parameters
    ----------
    x : tensor
        Any dtype, shape ``(d0, ..., dn)``.
    before, after : tuple of integers
        The number of elements to add in each dimension, at least 0.
    value : number, default 0
        The value of the elements in mode ``"constant"``.
    mode : str, default "constant"
        ``"constant"`` adds elements with `value`, ``"edge"`` repeats the first and the last
        element, ``"reflect"`` mirrors the elements at the first and the last one, which are not
        repeated, and ``"wrap"`` continues with the elements of the other end.

    Returns
    -------
    tensor
        The dtype of `x`, shape ``(before0 + d0 + after0, ...)``.

    Raises
    ------
    OperandError
        If there is not one number per dimension, or a number is negative.
    ShapeMismatchError
        If a mode other than ``"constant"`` lacks the elements to repeat: ``"edge"`` needs one,
        ``"wrap"`` as many as are added, and ``"reflect"`` one more.

    Notes
    -----
    NumPy: ``pad``; ONNX: ``Pad``.

    Examples
    --------
    >>> Pad().reference((np.array([1, 2, 3]), (2,), (1,)), {"mode": "reflect"})
    array([3, 2, 1, 2, 3, 2])
    """

    name = "pad"
    signature = Signature(
        (
            OperandSpec("x"),
            OperandSpec("before", ("dims",)),
            OperandSpec("after", ("dims",)),
            OperandSpec("value", ("number",), optional=True),
        ),
        (AttributeSpec("mode", "str", "constant", _MODES),),
    )

    def deduce(self, call: CallFacts) -> Info:
        """Return the padded shape; require elements to repeat."""
        x, before, after = call.tensor(0), call.dims(1), call.dims(2)
        for position, given in ((1, before), (2, after)):
            if len(given) != x.rank:
                message = f"expected one number per dimension ({x.rank}), got {len(given)}"
                raise call.error(position, message)
            require_sizes(call, given)
        if call.has(3):
            call.require_number(3, x.dtype)
        self._require_elements(call, x, before, after)
        shape = tuple(b + d + a for b, d, a in zip(before, x.shape, after, strict=True))
        return TensorInfo(shape, x.dtype)

    @staticmethod
    def _require_elements(
        call: CallFacts, x: Tensor, before: Sequence[Expr], after: Sequence[Expr]
    ) -> None:
        mode = call.attributes.text("mode")
        if mode == "constant":
            return
        for axis, (b, d, a) in enumerate(zip(before, x.shape, after, strict=True)):
            most = maximum(b, a)
            if const_value(most) == 0:
                continue
            needed = {"edge": minimum(most, 1), "wrap": most, "reflect": most + 1}[mode]
            reason = (
                f"padding of {to_text(most)} elements in mode {mode!r} needs {to_text(needed)} "
                f"elements, but dimension {axis} has {to_text(d)}"
            )
            call.require(needed <= d, reason)

    def evaluate(self, run: Evaluation) -> Array:
        """Pad with NumPy."""
        x, mode = run.array(0), run.attributes.text("mode")
        widths = list(zip(run.dims(1), run.dims(2), strict=True))
        options: dict[str, Any] = {}
        if mode == "constant":
            options["constant_values"] = run.number(3) if run.has(3) else 0
        if not x.ndim:
            return x
        pad: Any = np.pad  # its annotations list the modes as literals
        return pad(x, widths, mode=mode, **options)

    def define(self, low: Lowering) -> None:
        """Define one block over the result."""
        x, before = low.sources[0], low.call.dims(1)
        mode = low.attributes.text("mode")
        fill = low.literal(3, x.dtype) if low.call.has(3) else identity_of("add", x.dtype)

        def value(*indices: Expr) -> Element:
            at: list[Expr] = []
            inside: list[Bool] = []
            after = low.call.dims(2)
            for i, b, d, a in zip(indices, before, x.shape, after, strict=True):
                own = i - b
                if mode == "constant":
                    inside += [own >= 0] * (const_value(b) != 0)
                    inside += [own < d] * (const_value(a) != 0)
                padded = const_value(b) != 0 or const_value(a) != 0
                at.append(_source(own, d, mode) if padded else own)
            found = x(*at)
            return Where(Condition(all_of(*inside)), found, fill) if inside else found

        low.builder.compute(low.out, value, name=self.name)

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand | None:
        """Slice the cotangent; padding that repeats elements has no gradient."""
        del position
        if call.attributes.text("mode") != "constant":
            return None
        before, shape = call.facts.dims(1), call.tensor(0).shape
        ends = tuple(b + d for b, d in zip(before, shape, strict=True))
        axes = tuple(range(len(shape)))
        return graph.emit("strided_slice", call.cotangent(graph), before, ends, axes=axes)


def _source(position: Expr, size: Expr, mode: str) -> Expr:
    """Return the index of the element that a position outside of a tensor repeats."""
    match mode:
        case "edge":
            return maximum(0, minimum(position, size - 1))
        case "reflect":
            distance = maximum(position, -position)
            return minimum(distance, (size - 1) * 2 - distance)
        case "wrap":
            return position % size
        case _:
            return position
