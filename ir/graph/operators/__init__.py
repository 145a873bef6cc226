"""The operators of the graph level, one family a file.

Every operator has a signature, a shape rule, a NumPy reference and a loop-level definition.

Examples
--------
>>> "matmul" in OPERATORS, get_operator("reshape").is_view
(True, True)
"""

# The families register their operators when they are imported.
from . import (
    activations,
    binary,
    casting,
    comparison,
    creation,
    extremes,
    indexing,
    matmul,
    movement,
    norms,
    reductions,
    scans,
    softmax,
    triangular,
    unary,
    updates,
    views,
    where,
)
from .attention import scaled_dot_product_attention
from .errors import OperandError, OperatorAttributeError, ShapeMismatchError, UnknownOperatorError
from .inference import Inferred, Requirement
from .lowering import Lowered
from .operator import OPERATORS, Operator, get_operator, infer_call, lower_call

FAMILIES = (
    activations,
    binary,
    casting,
    comparison,
    creation,
    extremes,
    indexing,
    matmul,
    movement,
    norms,
    reductions,
    scans,
    softmax,
    triangular,
    unary,
    updates,
    views,
    where,
)
"""The modules that define operators."""

__all__ = [
    "FAMILIES",
    "OPERATORS",
    "Inferred",
    "Lowered",
    "OperandError",
    "Operator",
    "OperatorAttributeError",
    "Requirement",
    "ShapeMismatchError",
    "UnknownOperatorError",
    "get_operator",
    "infer_call",
    "lower_call",
    "scaled_dot_product_attention",
]
