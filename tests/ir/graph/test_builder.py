"""Inference of symbolic shapes: requirements are proved or checked at run time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.ir.dtype import bool_, f32, i64
from tilewright.ir.graph.builder import GraphBuilder
from tilewright.ir.graph.nodes import MatchCast, TensorInfo, TupleInfo, Value
from tilewright.ir.graph.operators import scaled_dot_product_attention
from tilewright.ir.graph.operators.errors import OperandError
from tilewright.ir.graph.operators.views import resolved_shape
from tilewright.ir.interpreter.graph import GraphCheckError, run_graph
from tilewright.ir.module import Module
from tilewright.ir.symbolic import Discharge, Expr, as_expr, to_text, var

N, M = var("n", lower=0), var("m", lower=0)


def builder(*shapes: tuple[Any, ...]) -> tuple[Any, ...]:
    made = GraphBuilder("main")
    dims = [tuple(as_expr(d) for d in shape) for shape in shapes]
    return made, *(made.param(f"x{k}", TensorInfo(d, f32)) for k, d in enumerate(dims))


def texts(value: Value) -> list[str]:
    assert isinstance(value.info, TensorInfo)
    assert value.info.shape is not None
    return [to_text(d) for d in value.info.shape]


def module(b: GraphBuilder, *results: Value) -> Module:
    return Module().with_functions(b.finish(results))


def checks(b: GraphBuilder) -> list[MatchCast]:
    return [x.right for x in b.finish(()).bindings if isinstance(x.right, MatchCast)]


def test_equal_symbols_need_no_check() -> None:
    b, x, y = builder((N, 4), (N, 1))
    assert texts(b.emit("add", x, y)) == ["n", "4"]
    assert checks(b) == []


def test_different_symbols_are_checked_at_run_time() -> None:
    b, x, y = builder((N,), (M,))
    total = b.emit("add", x, y)
    b.emit("multiply", x, y)
    assert len(checks(b)) == 1
    (fact,) = b.facts
    assert fact.discharge is Discharge.MATCH_CAST
    run = module(b, total)
    ones = np.ones(3, np.float32)
    np.testing.assert_array_equal(run_graph(run, [ones, ones])[0], [2, 2, 2])
    with pytest.raises(GraphCheckError):
        run_graph(run, [ones, np.ones(1, np.float32)])


def test_a_symbol_and_a_number_are_checked() -> None:
    b, x, y = builder((N,), (4,))
    assert texts(b.emit("add", x, y)) == ["4"]
    assert len(checks(b)) == 1


def test_a_stated_fact_needs_no_check() -> None:
    from tilewright.ir.symbolic import eq

    b, x, y = builder((N,), (M,))
    b.assume(eq(N, M), "the caller pads")
    b.emit("add", x, y)
    assert checks(b) == []


def test_ranges_of_slices_are_checked_unless_proved() -> None:
    b, x = builder((N,))
    part = b.emit("strided_slice", x, (0,), (M,), axes=(0,))
    assert texts(part) == ["m"]
    assert len(checks(b)) == 1
    b.emit("strided_slice", x, (0,), (M,), axes=(0,))
    assert len(checks(b)) == 1


@pytest.mark.parametrize(
    ("source", "dims", "expected"),
    [
        ((N, 6), (N, -1, 2), ["n", "3", "2"]),
        ((N, M, 4), (-1, 4), ["n * m", "4"]),
        ((N, M), (N, M, -1), ["n", "m", "1"]),
        ((N * 4, M), (N, 4, -1), ["n", "4", "m"]),
    ],
)
def test_a_dimension_of_minus_one_is_resolved(source: Any, dims: Any, expected: list[str]) -> None:
    found = resolved_shape([as_expr(d) for d in source], [as_expr(d) for d in dims])
    assert [to_text(d) for d in found] == expected


def test_products_are_compared_group_by_group() -> None:
    b, x = builder((N * M, 8))
    assert texts(b.emit("reshape", x, (N, M, 2, 4))) == ["n", "m", "2", "4"]
    assert checks(b) == []
    b, x = builder((N, 8))
    b.emit("reshape", x, (M, 2, 8))
    (check,) = checks(b)
    assert "8" not in str(check.info).replace("rank", "")


def test_shapes_computed_from_shapes_are_known() -> None:
    """ONNX expresses a reshape to (n, m, 2) as Shape, Gather, Concat, Reshape."""
    b, x = builder((N, M, 2))
    shape = b.emit("shape_to_tensor", (N, M, 2))
    first = b.emit("take", shape, b.emit("full", (1,), 0, dtype="i64"), axis=0)
    middle = b.emit("strided_slice", shape, (1,), (2,), axes=(0,))
    doubled = b.emit("multiply", middle, 2)
    halved = b.emit("floor_divide", doubled, 2)
    joined = b.emit("concat", first, halved, axis=0)
    assert isinstance(joined.info, TensorInfo)
    assert joined.info.elements is not None
    assert [to_text(e) for e in joined.info.elements] == ["n", "m"]
    assert texts(b.emit("reshape", x, (*joined.info.elements, 2))) == ["n", "m", "2"]


def test_conditions_on_shapes_are_decided() -> None:
    """Dimensions are non-negative, so Where(Equal(shape, -1), 1, shape) equals shape."""
    b, _ = builder((N,))
    shape = b.emit("shape_to_tensor", (N, 3))
    chosen = b.emit("where", b.emit("equal", shape, -1), 1, shape)
    assert isinstance(chosen.info, TensorInfo)
    assert chosen.info.elements == (N, as_expr(3))


def test_names_are_unique_and_operands_are_converted() -> None:
    b, x = builder((N,))
    names = [b.emit("add", x, 1.0).name for _ in range(3)]
    assert names == ["add", "add_1", "add_2"]


def test_a_field_that_does_not_exist_is_rejected() -> None:
    b, x = builder((4,))
    with pytest.raises(OperandError, match="expected a tuple of values, got Tensor") as caught:
        b.item(x, 0)
    assert caught.value.hint
    pair = b.param("pair", TupleInfo((x.info, x.info)))
    for index in (2, -1):
        with pytest.raises(OperandError, match="the tuple has 2 fields") as caught:
            b.item(pair, index)
    assert caught.value.hint == "indices are 0 to 1"


def test_fields_of_tuples() -> None:
    b, x = builder((5,))
    parts = b.emit("split", x, (2, 3))
    assert texts(b.item(parts, 1)) == ["3"]


@pytest.mark.parametrize("masked", [None, "bool", "float"])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_equals_pytorch(masked: str | None, *, causal: bool) -> None:
    import torch

    if masked and causal:
        masked = None
    rng = np.random.default_rng(0)
    b, q, k, v = builder((N, 2, M, 4), (N, 2, M + 3, 4), (N, 2, M + 3, 5))
    mask, given = None, []
    if masked:
        shape: tuple[Expr, ...] = (N, as_expr(1), M, M + 3)
        mask = b.param("mask", TensorInfo(shape, bool_ if masked == "bool" else f32))
        drawn = rng.random((2, 1, 6, 9))
        drawn[0, 0, 1] = 0.0
        given = [drawn < 0.5 if masked == "bool" else drawn]
        given[0][0, 0, 1] = masked != "bool"
    out = scaled_dot_product_attention(b, q, k, v, mask, causal=causal)
    inputs = [rng.standard_normal(s) for s in ((2, 2, 6, 4), (2, 2, 9, 4), (2, 2, 9, 5))]
    (found,) = run_graph(module(b, out), [*inputs, *given], precise=True)
    tensors = [torch.from_numpy(x) for x in (*inputs, *given)]
    expected = torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=causal)
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-12)


def test_an_index_is_loaded_once_per_block() -> None:
    """An embedding loads the index by ``let``, and its read region is the whole table."""
    from tilewright.ir.graph.nodes import Call
    from tilewright.ir.graph.operators import lower_call
    from tilewright.ir.loop.nodes import Block, Let
    from tilewright.ir.loop.visit import walk

    b, table = builder((10, 4))
    ids = b.param("ids", TensorInfo((N,), i64))
    value = b.emit("take", table, ids, axis=0)
    call = b.finish([value]).bindings[-1].right
    assert isinstance(call, Call)
    function = lower_call(call, value.info, "f").function
    (block,) = (s for s in walk(function.body) if isinstance(s, Block))
    (let,) = (s for s in walk(function.body) if isinstance(s, Let))
    assert let.mode == "checked"
    read = {r.buffer.name: r for r in block.reads}
    assert to_text(read["x"].ranges[0].extent) == "10"
