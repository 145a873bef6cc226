"""Reproducible random bits: random_bits."""

from __future__ import annotations

from typing import Final

import numpy as np

from ...dtype import i64, u64
from ...loop.element_functions import FUNCTIONS
from ...loop.nodes import Binary, Cast, Element, Index, Number
from ...symbolic import Expr, as_expr
from ..nodes import Info, TensorInfo
from .creation import require_sizes
from .errors import OperatorAttributeError
from .evaluation import Array, Evaluation
from .lowering import Lowering
from .operator import Operator, operator
from .shape_inference import CallFacts
from .signature import AttributeSpec, OperandSpec, Signature

_SEEDS: Final = 1 << 63


@operator
class RandomBits(Operator):
    """Create a tensor of reproducible random bits.

    Parameters
    ----------
    shape : tuple of integers
        The shape ``(...,)``; dimensions are non-negative.
    seed : int, default 0
        The key of the stream of bits, at least 0 and less than ``2**63``.

    Returns
    -------
    tensor
        Dtype u64, shape `shape`; element ``k`` in row-major order is word ``k`` of the stream.

    Raises
    ------
    OperatorAttributeError
        If the seed is out of range.
    ShapeMismatchError
        If a dimension is negative.

    Notes
    -----
    The bits are those of the counter-based generator Philox 4x32-10, so that they depend neither on
    the number of threads nor on the machine. Every call of a program gives the same bits. NumPy:
    ``random.Philox``; ONNX: ``RandomUniform`` and others; PyTorch: ``rand`` and others.

    Examples
    --------
    >>> RandomBits().reference(((2,),), {"seed": 1}).dtype
    dtype('uint64')
    """

    name = "random_bits"
    signature = Signature((OperandSpec("shape", ("dims",)),), (AttributeSpec("seed", "int", 0),))

    def deduce(self, call: CallFacts) -> Info:
        """Return the given shape; check the seed."""
        shape, seed = call.dims(0), call.attributes.integer("seed")
        if not 0 <= seed < _SEEDS:
            raise OperatorAttributeError(
                f"expected an integer from 0 to 2**63 - 1, got {seed}",
                where=f"attribute 'seed' of {self.name}",
            )
        require_sizes(call, shape)
        return TensorInfo(shape, u64)

    def evaluate(self, run: Evaluation) -> Array:
        """Draw the words one by one."""
        shape, seed = run.dims(0), np.uint64(run.attributes.integer("seed"))
        word = FUNCTIONS["random_bits"].reference
        count = int(np.prod(shape, dtype=np.int64))
        found = [word(np.uint64(k), seed) for k in range(count)]
        return np.array(found, np.uint64).reshape(shape)

    def define(self, low: Lowering) -> None:
        """Define one block that computes the word of each element from its position."""
        key = Number(low.attributes.integer("seed"), u64)

        def word(*indices: Expr) -> Element:
            position = as_expr(0)
            for index, size in zip(indices, low.out.shape, strict=True):
                position = position * size + index
            return Binary("random_bits", Cast(u64, Index(position, i64)), key)

        low.builder.compute(low.out, word, name=self.name)
