"""The table of combiners."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.ir.dtype import DTYPES, bool_, f32, i8, i32, i64
from tilewright.ir.interpreter.loops import call_prim
from tilewright.ir.loop.combiners import (
    COMBINERS,
    REDUCERS,
    ReducerDtypeError,
    identity_of,
    is_named,
    named_reducer,
    reducer_of,
)
from tilewright.ir.loop.nodes import BufferParam
from tilewright.ir.module import Module
from tilewright.ir.script import parse
from tilewright.schedules.rules import with_default_schedule
from tilewright.target.target import Target

from tests.codegen.kernels import LEVELS, build
from tests.ir.loop.reducer_programs import PROGRAMS, SIZES, check, inputs, outputs


@pytest.mark.parametrize("combiner", ["min", "max"])
def test_identities_are_numbers_in_their_dtype(combiner):
    for dtype in DTYPES.values():
        if not dtype.is_complex and dtype != bool_:
            value = np.asarray(identity_of(combiner, dtype).value).astype(dtype.numpy)
            assert not np.isnan(value.astype(np.float64)), dtype


def test_each_combiner_is_a_reducer_of_one_value():
    for name in COMBINERS:
        reducer = reducer_of(name, i32)
        assert reducer is reducer_of(name, i32)
        assert reducer.identities == (identity_of(name, i32),)
        assert len(reducer.left) == len(reducer.right) == len(reducer.results) == 1


def test_the_reducers_of_the_table_are_unique_objects():
    dtypes = {"argmax": (f32, i64), "argmin": (i8, i32), "logsumexp": (f32, f32)}
    dtypes["linear_recurrence"] = (f32, f32)
    for name in REDUCERS:
        of = dtypes.get(name, (f32, f32, f32))
        reducer = named_reducer(name, of)
        assert reducer is named_reducer(name, of)
        assert is_named(reducer)
        assert tuple(x.dtype for x in reducer.left) == of
        assert tuple(x.dtype for x in reducer.results) == of
        assert reducer.commutative is (name != "linear_recurrence")


@pytest.mark.parametrize(
    ("name", "dtypes"),
    [
        ("argmax", (bool_, i64)),
        ("argmin", (f32, f32)),
        ("welford", (f32, f32)),
        ("logsumexp", (i32, i32)),
    ],
)
def test_other_dtypes_are_rejected(name, dtypes):
    with pytest.raises(ReducerDtypeError, match=f"{name} is not defined for dtypes"):
        named_reducer(name, dtypes)


def test_identities_are_values_of_their_dtype():
    for dtype in (d for d in DTYPES.values() if d.is_integer or d.is_float):
        for name in ("add", "mul", "min", "max"):
            assert identity_of(name, dtype).dtype == dtype


def module_of(name: str) -> Module:
    return parse('n, m = symbols("n m", lower=0)\n' + PROGRAMS[name])


@pytest.mark.parametrize("name", PROGRAMS)
def test_users_in_the_interpreter(name):
    module = module_of(name)
    assert str(parse(str(module))) == str(module)
    for n, m in SIZES:
        given = inputs(name, n, m)
        check(name, call_prim(module.prim(name), given), given)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_users_by_the_default_rules_of_a_cpu(name, level):
    target = Target("cpu", features=(level,))
    func = with_default_schedule(module_of(name), target).prim(name)
    kernel = build(func, level)
    params = [p for p in func.params if isinstance(p, BufferParam)]
    for n, m in SIZES:
        given = inputs(name, n, m)
        rest, made = iter([a.copy() for a in given]), iter(outputs(name, n, m))
        arrays = [next(made) if p.access == "out" else next(rest) for p in params]
        assert kernel(*arrays) == 0
        written = [a for a, p in zip(arrays, params, strict=True) if p.access != "in"]
        check(name, written, given)


@pytest.mark.parametrize("name", PROGRAMS)
def test_users_by_the_default_rules_of_a_gpu(name):
    module = module_of(name)
    exe = compile(module, "simt")
    access = [p.access for p in module.prim(name).params if isinstance(p, BufferParam)]
    for n, m in SIZES:
        given = inputs(name, n, m)
        passed = [a.copy() for a in given]
        made = exe(*passed)
        updated = [a for a, kind in zip(passed, access, strict=False) if kind == "inout"]
        results = updated or (made if isinstance(made, tuple) else (made,))
        check(name, results, given)


TERMS = 10_000_000
DEPTH = 64 + 64 + TERMS // (64 * 64 * 64) + 1 + 7
"""The terms that one partial result combines: per block, per block of these, of those, of lanes."""


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("moments", "normal"),
        ("log_sum", "equal"),
        ("log_sum", "normal"),
        ("attention", "normal"),
        ("argmax", "normal"),
        ("argmin", "equal"),
        ("sums", "normal"),
        ("sums", "equal"),
        ("states", "normal"),
    ],
)
def test_ten_million_terms_by_the_default_rules(name, kind):
    """The bounds are those of the helper for as many terms as are combined in sequence.

    A scan combines all of them in sequence.
    """
    target = Target("cpu", features=(LEVELS[-1],))
    func = with_default_schedule(module_of(name), target).prim(name)
    rng = np.random.default_rng(0)
    x = np.full((1, TERMS), 0.1, np.float32)
    v = np.full(TERMS, 0.7, np.float32)
    if kind == "normal":
        x = rng.normal(3, 2, (1, TERMS)).astype(np.float32)
        v = rng.normal(3, 2, TERMS).astype(np.float32)
    given = [x, v] if name == "attention" else [x]
    if name == "states":
        given = [rng.uniform(-1, 1, (1, TERMS)).astype(np.float32), x]
    results = outputs(name, 1, TERMS)
    assert build(func, LEVELS[-1])(*given, *results) == 0
    check(name, results, given, terms=TERMS if name in ("sums", "states") else DEPTH)
