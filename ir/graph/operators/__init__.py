"""Graph-level operators, one family per file.

Importing this package imports every module in it, and so registers the operators. Each operator
has a signature, shape inference, a NumPy reference, and a loop-level definition in one class.

Examples
--------
>>> "matmul" in OPERATORS, get_operator("reshape").is_view
(True, True)
"""

import importlib
import pkgutil

from ....errors import ShapeMismatchError
from .attention import scaled_dot_product_attention
from .custom import CustomOperator, custom_operator
from .errors import OperandError, OperatorAttributeError, UnknownOperatorError
from .lowering import LoweredGraph, LoweredOperator
from .operator import (
    OPERATORS,
    Operator,
    decompose_call,
    get_operator,
    infer_call,
    lower_call,
)
from .shape_inference import Inferred, Requirement

__all__ = [
    "OPERATORS",
    "CustomOperator",
    "Inferred",
    "LoweredGraph",
    "LoweredOperator",
    "OperandError",
    "Operator",
    "OperatorAttributeError",
    "Requirement",
    "ShapeMismatchError",
    "UnknownOperatorError",
    "custom_operator",
    "decompose_call",
    "get_operator",
    "infer_call",
    "lower_call",
    "scaled_dot_product_attention",
]

for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_module.name)
