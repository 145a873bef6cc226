"""The memory that calls need, from sizes of symbols."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright.codegen.export.inspection import InspectionError, read_description
from tilewright.codegen.export.needs import needs_of, shape_of

from tests.codegen.export.conftest import build
from tests.codegen.export.test_states import SIZES


def test_shapes_of_terms():
    assert shape_of(["n * 2 + 1", "24", "ceildiv(n, 4)"], {"n": 9, "m": 1}) == (19, 24, 3)


def test_functions_whose_symbols_are_given(exported):
    found = read_description(exported)
    main, accumulate = needs_of(exported, found, {"n": 8})
    assert (main.function, main.results) == ("main", {"c": (8, 40), "d": (8,)})
    assert accumulate.function == "accumulate"
    _, scores, _ = needs_of(exported, found, {"n": 8, "m": 100})
    assert scores.results == {"s": (8, 100)}
    assert scores.exact
    text = f"scores: workspace {scores.workspace_bytes} bytes; results s [8, 100]"
    assert str(scores) == text
    assert needs_of(exported, found, {"n": 8, "m": 10_000})[1].workspace_bytes > 40_000


def test_a_function_with_a_state(tmp_path):
    import numpy as np

    from tilewright.ir.dtype import f32
    from tilewright.ir.module import Constant

    start = Constant((2,), f32, lambda: np.ones(2, np.float32))
    module = tw.parse(SIZES, constants={"start": start})
    made = tw.export(module, tmp_path / "made", name="sized").directory
    main, _ = needs_of(made, read_description(made), {"b": 100, "n": 50})
    assert main.state_bytes >= 4 * 100 * 101
    assert f", state {main.state_bytes} bytes" in str(main)


def test_errors(exported, tmp_path):
    found = read_description(exported)
    with pytest.raises(InspectionError, match="no sizes of n, m"):
        needs_of(exported, found, {})
    with pytest.raises(InspectionError, match="the program assumes n <= 64"):
        needs_of(exported, found, {"n": 65})
    made = tw.export(build(), tmp_path / "made", name="small", kind="object").directory
    with pytest.raises(InspectionError, match="require the directory of a shared library"):
        needs_of(made, read_description(made), {"n": 1})
