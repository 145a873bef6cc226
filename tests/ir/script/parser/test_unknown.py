"""Names that do not exist: similar names, and the names of other systems."""

from __future__ import annotations

import pytest

from tilewright.ir.dtype import DTYPES
from tilewright.ir.loop.element_functions import FUNCTIONS
from tilewright.ir.script import UnknownNameError, parse
from tilewright.ir.script.parser.unknown import DTYPE_NAMES, FUNCTION_NAMES, LOOP_NAMES

PROGRAM = """@prim_func
def f(x: Buffer[(8,), {dtype}], y: Out[(8,), f32]):
    for i in {loop}(8):
        y[i] = {value}
"""


def hint_of(dtype: str = "f32", loop: str = "range", value: str = "x[i]") -> str:
    with pytest.raises(UnknownNameError) as caught:
        parse(PROGRAM.format(dtype=dtype, loop=loop, value=value))
    return caught.value.hint


def test_the_equivalents_exist() -> None:
    assert set(DTYPE_NAMES.values()) <= DTYPES.keys()
    assert set(FUNCTION_NAMES.values()) <= {*FUNCTIONS, "where"}
    for loop in set(LOOP_NAMES.values()):
        assert parse(PROGRAM.format(dtype="f32", loop=loop, value="x[i]"), check=False).prims


def test_names_of_other_systems() -> None:
    assert hint_of(dtype="float32") == "write f32"
    assert hint_of(dtype='"float16"') == "write f16"
    assert hint_of(dtype="torch.int64") == "write i64"
    assert hint_of(loop="T.serial") == "write serial"
    assert hint_of(loop="prange") == "write parallel"
    assert hint_of(value="np.exp(x[i])") == "write exp"
    assert hint_of(value="np.arcsinh(x[i])") == "write asinh"
    assert hint_of(value="T.if_then_else(i < 4, x[i], 0.0)") == "write where"
    assert hint_of(value="float32(i)") == "write f32"


def test_similar_names() -> None:
    assert hint_of(value="sigmiod(x[i])") == "did you mean 'sigmoid'?"
    assert hint_of(loop="vectorized_") == "did you mean 'vectorized'?"


def test_a_scope_is_checked() -> None:
    text = PROGRAM.format(dtype="f32", loop="range", value="x[i]").replace(
        "    for", '    t = alloc((8,), f32, scope="sharde")\n    for'
    )
    with pytest.raises(UnknownNameError, match="no memory scope 'sharde'") as caught:
        parse(text)
    assert caught.value.hint == "did you mean 'shared'?"


def test_an_unknown_name_without_a_similar_one() -> None:
    assert hint_of(value="z[i]") == "add a parameter z: Buffer[(n,), f32], or allocate the buffer"
    assert hint_of(value="z") == 'declare a symbol above the function: z = symbols("z")'
