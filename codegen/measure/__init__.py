"""Measurements of compiled programs: options, samples with statistics, and a verdict.

Example
-------
>>> from tilewright.codegen.measure import MeasureOptions
>>> MeasureOptions().caches
'hot'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...renamed import module_getattr
from .measure_options import MeasureOptions, MeasureOptionsError
from .measurement import Compared, Measurement
from .measurement_lock import exclusive_measurement
from .statistics import confidence, narrow

__all__ = [
    "Compared",
    "MeasureOptions",
    "MeasureOptionsError",
    "Measurement",
    "confidence",
    "exclusive_measurement",
    "narrow",
]

if not TYPE_CHECKING:  # a type checker reports former names as unknown
    __getattr__ = module_getattr(__name__)
