"""View operators: reshape, expand_dims, squeeze."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from ...loop.nodes import Element
from ...symbolic import Expr, as_expr, const_value, product
from ..nodes import Info, Operand, TensorInfo
from .composition import Composer
from .creation import require_sizes
from .errors import OperandError
from .evaluation import Array, Evaluation
from .gradients import GradientCall
from .lowering import Lowering
from .operator import Operator, operator
from .reindexing import grouped, reshaped_index
from .shape_inference import CallFacts, shape_text
from .signature import AttributeSpec, OperandSpec, Signature


class View(Operator):
    """The base class of operators that change only the shape of a tensor."""

    is_view: ClassVar[bool] = True

    @abstractmethod
    def concrete_shape(self, run: Evaluation) -> tuple[int, ...]:
        """Return the shape of the result for concrete operands."""

    def evaluate(self, run: Evaluation) -> Array:
        """Reshape with NumPy."""
        return run.array(0).reshape(self.concrete_shape(run))

    def define(self, low: Lowering) -> None:
        """Define one block that copies, for results that cannot share the storage."""
        x = low.sources[0]

        def value(*indices: Expr) -> Element:
            return x(*reshaped_index(indices, low.out.shape, x.shape))

        low.builder.compute(low.out, value, name=self.name)

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Reshape the cotangent to the shape of the operand."""
        del position
        return graph.emit("reshape", call.cotangent(graph), call.tensor(0).shape)


@operator
class Reshape(View):
    """Change the shape of a tensor; the elements keep their row-major order.

    Parameters
    ----------
    x : tensor
        Any dtype, any shape.
    shape : tuple of integers
        A shape with the same number of elements; :func:`resolved_shape` computes a dimension of -1.

    Returns
    -------
    tensor
        The dtype of `x`, shape `shape`.

    Raises
    ------
    ShapeMismatchError
        If the numbers of elements differ, or a dimension is negative.

    Notes
    -----
    Memory planning makes the result a view. NumPy: ``reshape``; ONNX: ``Reshape``.

    Examples
    --------
    >>> import numpy as np
    >>> Reshape().reference((np.arange(4), (2, 2)))
    array([[0, 1],
           [2, 3]])
    """

    name = "reshape"
    signature = Signature((OperandSpec("x"), OperandSpec("shape", ("dims",))))

    def deduce(self, call: CallFacts) -> Info:
        """Return the given shape; require the same number of elements."""
        x, shape = call.tensor(0), call.dims(1)
        require_sizes(call, shape)
        if product(shape) != product(x.shape):
            _require_same_count(call, shape, x.shape)
        return TensorInfo(shape, x.dtype, elements=x.elements)

    def concrete_shape(self, run: Evaluation) -> tuple[int, ...]:
        """Return the given shape."""
        return run.dims(1)


def _require_same_count(call: CallFacts, shape: tuple[Expr, ...], source: tuple[Expr, ...]) -> None:
    """Require equal products group by group, which keeps run-time checks simple."""
    reason = f"cannot reshape {shape_text(source)} to {shape_text(shape)}; number of elements"
    runs = grouped(shape, source)
    for left, right in runs:
        want, have = _product_at(shape, left), _product_at(source, right)
        call.require_equal(have, want, reason)
    rest = _product_beside(shape, [k for left, _ in runs for k in left])
    rest_of_source = _product_beside(source, [k for _, right in runs for k in right])
    call.require_equal(rest_of_source, rest, reason)


def _product_at(dims: tuple[Expr, ...], positions: Sequence[int]) -> Expr:
    return product(dims[k] for k in positions)


def _product_beside(dims: tuple[Expr, ...], positions: Sequence[int]) -> Expr:
    return product(d for k, d in enumerate(dims) if k not in positions)


def resolved_shape(source: Sequence[Expr], dims: Sequence[Expr]) -> tuple[Expr, ...]:
    """Replace a dimension of -1 by the value that keeps the number of elements of ``source``.

    Equal dimensions of both shapes are canceled first, so that the result is also correct for most
    empty tensors.

    Raises
    ------
    OperandError
        If more than one dimension is -1.

    Examples
    --------
    >>> resolved_shape((as_expr(4), as_expr(6)), (as_expr(4), as_expr(-1), as_expr(2)))[1]
    3
    """
    unknown = [k for k, d in enumerate(dims) if const_value(d) == -1]
    if not unknown:
        return tuple(dims)
    if len(unknown) > 1:
        text = f"expected at most one dimension of -1, got shape {shape_text(dims)}"
        raise OperandError(text, where="operand 'shape' of reshape")
    have, want = list(source), list[Expr]()
    for dim in (d for k, d in enumerate(dims) if k != unknown[0]):
        if dim in have:
            have.remove(dim)
        else:
            want.append(dim)
    total, rest = product(have), product(want)
    missing = total if const_value(rest) == 1 else total // rest
    return (*dims[: unknown[0]], missing, *dims[unknown[0] + 1 :])


@operator
class ExpandDims(View):
    """Insert dimensions of 1.

    Parameters
    ----------
    x : tensor
        Any dtype, any shape.
    axes : tuple of int
        The axes of the result that are 1.

    Returns
    -------
    tensor
        The dtype of `x`, the shape of `x` with the inserted dimensions.

    Notes
    -----
    Memory planning makes the result a view. NumPy: ``expand_dims``; ONNX: ``Unsqueeze``.

    Examples
    --------
    >>> import numpy as np
    >>> ExpandDims().reference((np.zeros((2, 3)),), {"axes": (0, -1)}).shape
    (1, 2, 3, 1)
    """

    name = "expand_dims"
    signature = Signature((OperandSpec("x"),), (AttributeSpec("axes", "ints"),))

    def deduce(self, call: CallFacts) -> Info:
        """Return the shape with the inserted dimensions."""
        x = call.tensor(0)
        rank = x.rank + len(call.attributes.integers("axes"))
        axes = call.attributes.axes("axes", rank)
        dims = iter(x.shape)
        shape = tuple(as_expr(1) if k in axes else next(dims) for k in range(rank))
        return TensorInfo(shape, x.dtype, elements=x.elements)

    def concrete_shape(self, run: Evaluation) -> tuple[int, ...]:
        """Return the shape with the inserted dimensions."""
        x = run.array(0)
        rank = x.ndim + len(run.attributes.integers("axes"))
        axes = run.attributes.axes("axes", rank)
        dims = iter(x.shape)
        return tuple(1 if k in axes else next(dims) for k in range(rank))


@operator
class Squeeze(View):
    """Remove dimensions of 1.

    Parameters
    ----------
    x : tensor
        Any dtype; its dimensions at `axes` are 1.
    axes : tuple of int
        The axes to remove.

    Returns
    -------
    tensor
        The dtype of `x`, the shape of `x` without the removed dimensions.

    Raises
    ------
    ShapeMismatchError
        If a removed dimension is not 1.

    Notes
    -----
    Memory planning makes the result a view. NumPy: ``squeeze``; ONNX: ``Squeeze``.

    Examples
    --------
    >>> import numpy as np
    >>> Squeeze().reference((np.zeros((1, 3)),), {"axes": (0,)}).shape
    (3,)
    """

    name = "squeeze"
    signature = Signature((OperandSpec("x"),), (AttributeSpec("axes", "ints"),))

    def deduce(self, call: CallFacts) -> Info:
        """Return the remaining shape; require that the removed dimensions are 1."""
        x = call.tensor(0)
        axes = call.attributes.axes("axes", x.rank)
        for axis in axes:
            reason = f"cannot squeeze axis {axis} of {shape_text(x.shape)}"
            call.require_equal(x.shape[axis], as_expr(1), reason)
        shape = tuple(d for k, d in enumerate(x.shape) if k not in axes)
        return TensorInfo(shape, x.dtype, elements=x.elements)

    def concrete_shape(self, run: Evaluation) -> tuple[int, ...]:
        """Return the remaining shape."""
        x = run.array(0)
        axes = run.attributes.axes("axes", x.ndim)
        return tuple(d for k, d in enumerate(x.shape) if k not in axes)
