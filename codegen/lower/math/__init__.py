"""Elementwise functions as thread-IR values: single operations or polynomials.

Importing this package imports every module below it, which register expansions.
"""

import importlib
import pkgutil

from .control import Code
from .functions import binary_function, combined, unary_function

__all__ = ["Code", "binary_function", "combined", "unary_function"]

for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_module.name)
