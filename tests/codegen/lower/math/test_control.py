"""Code of element functions consists of vector instructions and calls no library."""

from __future__ import annotations

import re

import pytest

from tilewright.codegen.llvm import emit_module
from tilewright.codegen.llvm.compile import assembly
from tilewright.codegen.lower import lower_kernel
from tilewright.ir.dtype import f32
from tilewright.target.target import Target

from tests.codegen.functions import UNARY, program
from tests.codegen.kernels import ALL_LEVELS

SEVERAL = {
    "pow": 2, "atan2": 2, "hypot": 2, "fmod": 2, "mod": 2, "nextafter": 2, "copysign": 2,
    "ldexp": 2, "fma": 3,
}  # fmt: skip
SCALAR = re.compile(
    r"\tv?(?:add|sub|mul|div|sqrt|fn?m(?:add|sub)\d+|min|max|round|rndscale)s[sd]\t.*"
)


@pytest.mark.parametrize("level", ALL_LEVELS)
@pytest.mark.parametrize(("op", "arity"), [*((op, 1) for op in UNARY), *SEVERAL.items()])
def test_code_has_vectors_only(op: str, arity: int, level: str, every_level: object) -> None:
    del every_level
    target = Target("cpu", features=(level,))
    kernel = lower_kernel(program(((op, f32),), f32, arity), target)
    code = assembly(emit_module([kernel.function], target), target)
    assert not re.findall(r"\tcallq?\t.*", code)
    assert not SCALAR.findall(code)
    wide = "zmm" if level == "avx512" else "ymm"
    assert wide in code
