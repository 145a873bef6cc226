"""Inputs of the user instead of random ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import tilewright as tw
from tilewright.workbench.given_inputs import GivenInputsError, given_inputs
from tilewright.workbench.symbols import SampleError

from tests.workbench.conftest import MATMUL, NETWORK

if TYPE_CHECKING:
    from tests.workbench.conftest import Client


def zeros(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.zeros(shape, dtype)


def test_shapes_determine_the_sizes() -> None:
    matmul = tw.parse(MATMUL).prim("matmul")
    given, sizes = given_inputs(matmul, [zeros(5, 16), zeros(16, 24)])
    assert sizes == {"n": 5}
    assert given.fit(matmul, {"n": 5})
    assert not given.fit(matmul, {"n": 6})


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([zeros(5, 16)], "got 1 inputs; function 'matmul' takes 2"),
        ([zeros(5, 16), zeros(16, 24, dtype="float64")], "'B' has dtype float64; expected f32"),
        ([zeros(5, 16), zeros(16)], "'B' has 1 dimensions; expected 2"),
        ([zeros(5, 17), zeros(16, 24)], r"'A' has the sizes \(5, 17\)"),
        ([zeros(5, 16), 3], "'B' is not an array of f32"),
        ([zeros(5, 16), "x"], "an input of type str"),
    ],
)
def test_inputs_that_do_not_fit_are_errors(inputs: list[object], message: str) -> None:
    with pytest.raises(GivenInputsError, match=message):
        given_inputs(tw.parse(MATMUL).prim("matmul"), inputs)


def test_sizes_outside_of_the_range_are_errors() -> None:
    main = tw.parse(NETWORK).functions["main"]
    with pytest.raises(SampleError, match="n = 65 violates"):
        given_inputs(main, [zeros(65, 8)])


def test_a_session_measures_and_verifies_with_the_inputs(network: Client) -> None:
    session = network.session
    inputs = np.full((10, 8), 3.0, np.float32)
    session.set_inputs([inputs])
    assert session.samples(session.entry) == {"n": 10}
    values = session._bench._inputs(session.schedule.head, session.entry, {"n": 10})
    assert values[0] is inputs
    for action in ("measure", "compile"):
        network.send("run", action=action, function="")
        session.jobs.wait()
    assert session.document.measurement is not None
    assert session.document.measurement.conditions.endswith(", given inputs")
    assert session.document.verdict is not None
    assert session.document.verdict.agrees

    # At other sizes the inputs are random.
    network.send("sample", function="main", symbol="n", value=4)
    recipe = session._bench._inputs(session.schedule.head, session.entry, {"n": 4})
    assert [array.shape for array in recipe.arrays] == [(4, 8)]
    network.send("run", action="measure", function="")
    session.jobs.wait()
    assert "given" not in session.document.measurement.conditions
