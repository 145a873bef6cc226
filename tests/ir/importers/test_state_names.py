"""Names of paired inputs and outputs: exact names, prefixes, and their errors."""

from __future__ import annotations

from typing import Any

import pytest

from tilewright.ir.importers.state_names import StatePairError, matched_names

INPUTS = ["ids", "past.0.key", "past.0.value", "past.1.key", "past.1.value", "h"]
OUTPUTS = ["logits", "present.0.key", "present.0.value", "present.1.key", "present.1.value", "hn"]


def test_prefixes_pair_all_names_of_one_rest() -> None:
    found = matched_names({"past": "present", "h": "hn"}, INPUTS, OUTPUTS)
    assert found == {**dict(zip(INPUTS[1:5], OUTPUTS[1:5], strict=True)), "h": "hn"}
    assert matched_names({"past.1.": "present.1."}, INPUTS, OUTPUTS) == {
        "past.1.key": "present.1.key",
        "past.1.value": "present.1.value",
    }


def test_a_prefix_ends_where_a_word_ends() -> None:
    assert matched_names({"c": "d"}, ["c_0", "cat"], ["d_0", "dog"]) == {"c_0": "d_0"}
    assert matched_names({"c": "d"}, ["c0", "c1"], ["d0", "d1"]) == {"c0": "d0", "c1": "d1"}


@pytest.mark.parametrize(
    ("state", "outputs", "message"),
    [
        ({"pst": "present"}, OUTPUTS, "no input is named 'pst' or begins with it; inputs are"),
        ({"past": "presnt"}, OUTPUTS, "input 'past.0.key' has no output 'presnt.0.key'; names"),
        ({"past": "present"}, OUTPUTS[:-2], "input 'past.1.value' has no output 'present.1.value'"),
        ({"past": "present"}, [*OUTPUTS, "present.2.key"],
         "output 'present.2.key' has no input 'past.2.key'; names are"),
        ({"h": "hn", "ids": "hn"}, OUTPUTS, "output 'hn' is paired with 2 inputs: 'h', 'ids'"),
        ({"": "hn"}, OUTPUTS, "no input is named ''"),
        ("past", OUTPUTS, "expected a mapping of names of inputs to names of outputs, got 'past'"),
        (["past"], OUTPUTS, "expected a mapping of names of inputs to names of outputs"),
        ({"past": 3}, OUTPUTS, "expected a mapping of names of inputs to names of outputs"),
        ({3: "hn"}, OUTPUTS, "expected a mapping of names of inputs to names of outputs"),
    ],
)  # fmt: skip
def test_names_without_counterpart_are_errors(state: Any, outputs: list[str], message: str) -> None:
    with pytest.raises(StatePairError) as caught:
        matched_names(state, INPUTS, outputs)
    assert message in str(caught.value), str(caught.value)
    assert "state" in caught.value.where
    assert caught.value.hint
