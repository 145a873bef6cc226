"""Every operator, compiled by the default rules, equals its reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright.ir.graph.nodes import Call
from tilewright.ir.graph.operators import get_operator
from tilewright.ir.module import Module

from tests.ir.graph.cases import CASES, Case, T
from tests.ir.graph.test_operators import Program, close, flat


def with_sizes(case: Case) -> Program:
    """A case in a function that has its symbols as whole dimensions of one more parameter."""
    return Program(case, T(("n", "m", 0)))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_compiled_operators_equal_their_reference(case: Case) -> None:
    program = with_sizes(case)
    assert isinstance(program.call, Call)
    module = Module().with_functions(program.function)
    run: Any = tilewright.compile(module, target="cpu")
    tolerance = max(case.tolerance, 1e-5)
    for sizes in case.at:
        values = program.values(sizes)
        expected = flat(get_operator(case.op).reference(values, program.call.attributes))
        tensors = [v for v in values if isinstance(v, np.ndarray)]
        found = flat(run(*tensors, np.zeros((sizes["n"], sizes["m"], 0), np.float32)))
        for have, want in zip(map(np.asarray, found), expected, strict=True):
            assert have.shape == want.shape
            assert have.dtype == want.dtype
            close(have, want, tolerance)
