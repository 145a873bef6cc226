"""The adapters of BLAS: scalars in single precision."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
from hypothesis import example, given, strategies as st

from tilewright.codegen.build.rtlib_object import rtlib_address
from tilewright.codegen.rtlib import gemm

SINGLE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)


@given(st.floats())
@example(1e-40)
@example(2.0**-149)
@example(2.0**-150)
@example(1.5 * 2.0**-149)
@example(3.5e38)
@example(-3.4028235677973366e38)
@example(-0.0)
def test_scalars_are_rounded_to_nearest(value: float) -> None:
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    with np.errstate(over="ignore"):
        expected = np.float32(value)
    for function in (SINGLE(rtlib_address(gemm.single)), gemm.single):
        found = np.array([function(bits)], np.int64).astype(np.uint32).view(np.float32)[0]
        assert np.isnan(found) if np.isnan(expected) else found == expected
        assert np.signbit(found) == np.signbit(expected)
