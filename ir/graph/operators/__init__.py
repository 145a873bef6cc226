"""Graph-level operators, one family per file.

Every operator has a signature, shape inference, a NumPy reference and a loop-level definition.

Examples
--------
>>> "matmul" in OPERATORS, get_operator("reshape").is_view
(True, True)
"""

# Importing a family registers its operators.
from ....errors import ShapeMismatchError
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
from .errors import OperandError, OperatorAttributeError, UnknownOperatorError
from .lowering import LoweredOperator
from .operator import OPERATORS, Operator, get_operator, infer_call, lower_call
from .shape_inference import Inferred, Requirement

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
    "LoweredOperator",
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
