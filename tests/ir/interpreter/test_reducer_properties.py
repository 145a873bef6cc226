"""Properties of declared reducers, checked on random values."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.ir.dtype import f32, f64, i32, i64
from tilewright.ir.interpreter.reducer_properties import (
    ReducerPropertyWarning,
    broken_properties,
    warn_of_reducers,
)
from tilewright.ir.loop.combiners import COMBINERS, REDUCERS, named_reducer, reducer_of
from tilewright.ir.loop.nodes import Block
from tilewright.ir.loop.visit import walk
from tilewright.ir.script import parse

TEXT = """
@prim_func
def f(x: Buffer[(20,), f32], y: Out[(), f32]):
    for k in range(20):
        with block("y"):
            vk = reduce(k)
            @reducer(identity={identity})
            def both(a: f32, b: f32):
                return {value}
            with init(): y[()] = {identity}
            y[()] = both(x[vk])
"""

BROKEN = {
    ("a - b", "0.0"): ("not associative", "not commutative", "not neutral for its identity"),
    ("a + b", "0.0"): (),
    ("a * b", "0.0"): ("not neutral for its identity",),
    ("(a + b) * 0.5", "0.0"): ("not associative", "not neutral for its identity"),
    ("max(a, b)", "-inf"): (),
    ("max(a, b)", "0.0"): ("not neutral for its identity and negative values",),
    ("a + b - a * b", "0.0"): (),
    ("a", "0.0"): ("not commutative", "not neutral for its identity"),
}


def program(value, identity):
    return parse(TEXT.format(value=value, identity=identity))


@pytest.mark.parametrize(("value", "identity"), BROKEN)
def test_properties(value, identity):
    function = program(value, identity).prim("f")
    block = next(s for s in walk(function.body) if isinstance(s, Block))
    assert broken_properties(block.reducer) == BROKEN[value, identity]


def test_the_table_has_its_properties(monkeypatch):
    monkeypatch.setattr("tilewright.ir.interpreter.reducer_properties.is_named", lambda _: False)
    dtypes = {"argmax": (f32, i64), "argmin": (i32, i32), "logsumexp": (f64, f64)}
    dtypes["linear_recurrence"] = (f32, f32)
    for name in REDUCERS:
        broken = broken_properties(named_reducer(name, dtypes.get(name, (f32, f32, f32))))
        counts = name == "welford"  # of samples, which are not negative
        assert broken == (("not neutral for its identity and negative values",) if counts else ())
    for name in COMBINERS:
        of = i32 if name in ("and", "or", "xor") else f32
        assert broken_properties(reducer_of(name, of)) == ()


def test_debug_code_of_a_wrong_reducer_warns():
    module = program("a - b", "0.0")
    with pytest.warns(ReducerPropertyWarning, match="'both' of block 'y' .* is not associative"):
        compile(module, "cpu", debug=True)
    x = np.ones(20, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_reducers(program("a + b", "0.0").prim("f"))
        assert compile(program("a + b", "0.0"), "cpu", debug=True)(x) == 20
