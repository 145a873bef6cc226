"""Elementwise functions as thread-IR values: single operations or polynomials.

Importing this package imports every module below it, which register expansions.
"""

import importlib
import pkgutil

from .control import Code
from .conversions import converted, reinterpreted
from .functions import apply_function, combined

__all__ = ["Code", "apply_function", "combined", "converted", "reinterpreted"]

for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_module.name)
