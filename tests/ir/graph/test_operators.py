"""Operators: shape inference, reference and loop-level definition agree at several sizes."""

from __future__ import annotations

import inspect
import zlib
from typing import Any

import numpy as np
import pytest

from tilewright.ir.dtype import from_numpy
from tilewright.ir.graph.builder import GraphBuilder, operand
from tilewright.ir.graph.nodes import Call, TensorInfo, TupleInfo, Value
from tilewright.ir.graph.operators import OPERATORS, LoweredGraph, get_operator, lower_call
from tilewright.ir.interpreter import run_graph, run_prim
from tilewright.ir.module import Module
from tilewright.ir.script import parse, to_text
from tilewright.ir.structural_hash import explain_difference
from tilewright.ir.symbolic import Expr, Var, as_expr, evaluate, parse_expr, var
from tilewright.ir.verify import verify
from tilewright.schedules import Schedule

from tests.ir.graph.case_table import Case, T
from tests.ir.graph.cases import CASES


class Program:
    """The call of a case on symbolic shapes."""

    def __init__(self, case: Case, *unused: T) -> None:
        self.case = case
        self.symbols = {name: var(name, lower=0) for name in ("n", "m")}
        self.builder = GraphBuilder("main")
        args = [self.argument(k, a) for k, a in enumerate(case.args)]
        for k, more in enumerate(unused):
            self.argument(len(args) + k, more)
        self.value = self.builder.emit(case.op, *args, **case.attributes)
        self.call = self.builder.finish([self.value]).bindings[-1].right
        self.function = self.builder.finish(self.results())

    def results(self) -> list[Value]:
        """The result, or the fields of a tuple result."""
        info = self.value.info
        if not isinstance(info, TupleInfo):
            return [self.value]
        return [self.builder.item(self.value, k) for k in range(len(info.fields))]

    def schedule(self) -> Schedule:
        """The program with lowered operators."""
        schedule = Schedule(Module().with_functions(self.function))
        schedule.legalize()
        return schedule

    def legalized(self, arrays: list[Any]) -> tuple[Any, ...]:
        """The results of the program with lowered operators."""
        return run_graph(self.schedule().module, arrays)

    def dim(self, dim: int | str) -> Expr:
        found = parse_expr(dim, self.symbols) if isinstance(dim, str) else as_expr(dim)
        assert isinstance(found, Expr)
        return found

    def argument(self, position: int, argument: Any) -> Any:
        if isinstance(argument, T):
            info = TensorInfo(tuple(self.dim(d) for d in argument.shape), argument.dtype)
            return self.builder.param(f"p{position}", info)
        if isinstance(argument, tuple):
            return tuple(self.dim(d) for d in argument)
        return argument

    def env(self, sizes: dict[str, int]) -> dict[Var, int]:
        return {self.symbols[name]: size for name, size in sizes.items()}

    def values(self, sizes: dict[str, int]) -> list[Any]:
        rng = np.random.default_rng(zlib.crc32(str(self.case).encode()))
        names = sizes | {"n*m": sizes["n"] * sizes["m"], "n+m": sizes["n"] + sizes["m"]}
        env = self.env(sizes)
        return [
            a.draw(names, rng)
            if isinstance(a, T)
            else tuple(int(evaluate(self.dim(d), env)) for d in a)
            if isinstance(a, tuple)
            else a
            for a in self.case.args
        ]

    def infos(self) -> tuple[TensorInfo, ...]:
        info = self.value.info
        fields = info.fields if isinstance(info, TupleInfo) else (info,)
        return tuple(f for f in fields if isinstance(f, TensorInfo))


def flat(found: Any) -> tuple[np.ndarray[Any, Any], ...]:
    return found if isinstance(found, tuple) else (found,)


def close(have: Any, want: Any, tolerance: float) -> None:
    """Compare arrays; bfloat16, which `assert_allclose` does not support, as float32."""
    if have.dtype.name == "bfloat16":
        have, want = have.astype(np.float32), want.astype(np.float32)
    np.testing.assert_allclose(have, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_inference_reference_and_loops_agree(case: Case) -> None:
    program = Program(case)
    assert isinstance(program.call, Call)
    lowered = lower_call(program.call, program.value.info, "f")
    for sizes in case.at:
        values, env = program.values(sizes), program.env(sizes)
        expected = flat(get_operator(case.op).reference(values, program.call.attributes))
        for info, array in zip(program.infos(), expected, strict=True):
            assert info.rank == array.ndim
            assert info.dtype.numpy == array.dtype
            if info.shape is None:  # a data-dependent size
                continue
            assert tuple(evaluate(d, env) for d in info.shape) == array.shape
            if info.elements is not None:
                known = [int(evaluate(e, env)) for e in info.elements]
                assert known == [int(v) for v in array.ravel()]
        tensors = [v for v in values if isinstance(v, np.ndarray)]
        if isinstance(lowered, LoweredGraph):
            for have, want in zip(program.legalized(tensors), expected, strict=True):
                close(have, want, case.tolerance)
            continue
        found = [np.full_like(e, 77) for e in expected]
        scalars = dict(
            zip(
                (v.name for v in lowered.function.scalar_params),
                (int(evaluate(s, env)) for s in lowered.scalars),
                strict=True,
            )
        )
        run_prim(lowered.function, [*tensors, *found], scalars)
        for have, want in zip(found, expected, strict=True):
            close(have, want, case.tolerance)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_loops_are_well_formed_and_survive_a_round_trip(case: Case) -> None:
    program = Program(case)
    assert isinstance(program.call, Call)
    lowered = lower_call(program.call, program.value.info, "f")
    if isinstance(lowered, LoweredGraph):
        module = program.schedule().module
        verify(module)
    else:
        verify(lowered.function)
        module = Module().with_functions(lowered.function)
    assert not explain_difference(module, parse(to_text(module)))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_float64_is_computed_in_float64(case: Case) -> None:
    program = Program(case)
    assert isinstance(program.call, Call)
    values = program.values(case.at[0])
    wide = [
        v.astype(from_numpy(v.dtype).wide.numpy) if isinstance(v, np.ndarray) else v for v in values
    ]
    found = get_operator(case.op).reference(wide, program.call.attributes, wide=True)
    for info, array in zip(program.infos(), flat(found), strict=True):
        assert array.dtype == info.dtype.wide.numpy


def test_every_operator_has_a_case() -> None:
    assert {c.op for c in CASES} == set(OPERATORS)


@pytest.mark.parametrize("op", sorted(OPERATORS))
def test_every_operator_is_documented(op: str) -> None:
    """The docstring of the class has all sections; that of a table lists the operator."""
    class_ = type(OPERATORS[op])
    text = inspect.getdoc(class_) or ""
    assert all(f"\n{s}\n{'-' * len(s)}\n" in text for s in ("Parameters", "Returns", "Examples"))
    if sum(type(o) is class_ for o in OPERATORS.values()) > 1:
        assert f"\n``{op}``" in text


def test_views() -> None:
    assert {name for name, op in OPERATORS.items() if op.is_view} == {
        "reshape",
        "expand_dims",
        "squeeze",
        "view_as_real",
        "view_as_complex",
    }


def test_numbers_become_literals() -> None:
    assert not isinstance(operand(2), Value)
