"""The node cases of ONNX that compare all pairs of elements."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.errors import TilewrightError
from tilewright.ir.importers import from_onnx
from tilewright.ir.importers.onnx_file import newest_opset
from tilewright.ir.interpreter.graph import run_graph

from tests.ir.importers.onnx_models import parsed
from tests.ir.importers.onnx_nodes import interpreted, node_cases

CASES = node_cases("nonmaxsuppression", "unique", opset=newest_opset())


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_interpreter_returns_the_results_of_onnx(name: str) -> None:
    interpreted(CASES[name], atol=1e-7)


def test_boxes_of_symbolic_number_are_chosen_as_in_onnx_runtime() -> None:
    import onnxruntime

    text = "float[b, n, 4] x, float[b, c, n] s, int64 m, float o, float t"
    made = parsed("y = NonMaxSuppression(x, s, m, o, t)", 11, text)
    made.graph.output[0].type.tensor_type.elem_type = 7
    del made.graph.output[0].type.tensor_type.shape.dim[:]
    session = onnxruntime.InferenceSession(made.SerializeToString())
    run = tw.compile(from_onnx(made))
    rng = np.random.default_rng(0)
    for count in (1, 12, 30):
        x = rng.uniform(0, 3, (2, count, 4)).astype(np.float32)
        s = rng.uniform(0, 1, (2, 3, count)).astype(np.float32)
        limits = [np.array(4), np.array(0.2, np.float32), np.array(0.3, np.float32)]
        given = dict(zip("xsmot", [x, s, *limits], strict=True))
        np.testing.assert_array_equal(run(*given.values()), session.run(None, given)[0])


@pytest.mark.parametrize("order", [0, 1])
def test_distinct_rows_of_a_symbolic_number(order: int) -> None:
    body = f"y, first, number, count = Unique<axis = 0, sorted = {order}>(x)"
    run = tw.compile(from_onnx(parsed(body, 11, "float[n, m] x")))
    x = np.random.default_rng(0).integers(0, 2, (9, 3)).astype(np.float32)
    expected = np.unique(x, axis=0)
    found = run(x)
    assert sorted(map(tuple, found)) == sorted(map(tuple, expected))
    (found,) = run_graph(from_onnx(parsed(body, 11, "float[n, m] x")), [np.flip(x, 0)])
    if order:
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_array_equal(found[0], x[-1])


def test_a_pooling_of_boxes_without_a_limit_is_empty() -> None:
    (found,) = run_graph(
        from_onnx(parsed("y = NonMaxSuppression(x, s)", 11, "float[b, n, 4] x, float[b, c, n] s")),
        [np.ones((1, 2, 4), np.float32), np.ones((1, 1, 2), np.float32)],
    )
    assert found.shape == (0, 3)


def test_an_axis_out_of_range_is_rejected() -> None:
    with pytest.raises(TilewrightError, match="axis 2 is out of range"):
        from_onnx(parsed("y = Unique<axis = 2>(x)", 11, "float[n, m] x"))
