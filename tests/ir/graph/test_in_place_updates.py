"""Updates in place, and the reasons of copies."""

from __future__ import annotations

import pytest

from tilewright.ir.graph.plan import plan_memory
from tilewright.ir.graph.update_report import updates_of
from tilewright.ir.script import parse

from tests.ir.graph.state_programs import PROGRAMS

LAST = "the last value of {!r}".format

EXPECTED: dict[str, list[tuple[str, str, str]]] = {
    "in place": [("a", "update", "")],
    "the old value is used later": [
        ("a2", "update", "'a' is used later, by 'y'"),
        ("a", "", LAST("a")),
    ],
    "the old value is a result": [
        ("a2", "update", "'a' is used later, by the results"),
        ("a", "", LAST("a")),
    ],
    "a view of the old value is used later": [
        ("a2", "update", "'v' is used later, by 'w'"),
        ("a", "", LAST("a")),
    ],
    "the operand is also another operand": [
        ("a2", "update", "operand 1, 'a', has the same memory"),
        ("a", "", LAST("a")),
    ],
    "two updates of one value by one call": [
        ("t_0", "both", "operand 1, 'a', has the same memory"),
        ("t_1", "both", "operand 0, 'a', has the same memory"),
        ("a", "", LAST("a")),
        ("b", "", LAST("b")),
    ],
    "outputs and updates": [("a", "accumulate", "")],
    "the state keeps its value": [
        ("a2", "update", "'a' is used later, by the parameter, which keeps its value")
    ],
    "an input is updated": [
        ("x2", "update", "parameter 'x' has access mode 'in'"),
        ("a", "", LAST("a")),
    ],
    "an intermediate is updated twice": [
        ("t", "update", ""),
        ("t", "accumulate", ""),
        ("a", "", LAST("a")),
    ],
    "states are exchanged": [("b", "", LAST("b")), ("a", "", LAST("a"))],
    "three states are rotated": [
        ("a", "update", ""),
        ("b", "", LAST("b")),
        ("c", "", LAST("c")),
        ("a", "", LAST("a")),
    ],
    "one value is the last value of two states": [("a", "update", ""), ("b", "", LAST("b"))],
    "an update in one branch": [("a", "update", "")],
    "updates in both branches": [
        ("a", "update", ""),
        ("b", "update", ""),
        ("b", "", LAST("b")),
        ("a", "", LAST("a")),
    ],
    "a value in the memory of either branch": [("v", "update", ""), ("a", "", LAST("a"))],
    "nested branches": [
        ("a", "update", ""),
        ("b", "update", ""),
        ("second", "update", ""),
        ("a", "", LAST("a")),
    ],
    "a use after the branches": [
        ("u", "update", "'a' is used later, by 'y'"),
        ("a", "", LAST("a")),
    ],
    "a tuple holds the old value": [
        ("a2", "update", "'pair' is used later, by 'old'"),
        ("a", "", LAST("a")),
    ],
    "a carried value starts in a stacked input": [
        (
            "c_1",
            "update",
            "the initial value of 'c': 'a' is used later, by the next iteration of 'y'",
        ),
        ("a", "", LAST("a")),
    ],
    "a carried value starts where a view is a stacked input": [
        ("c2", "update", "'c' is used later, by 'd2'"),
        ("b", "update", ""),
        ("a", "", LAST("a")),
    ],
    "a called function": [("a", "accumulate", ""), ("a", "accumulate", "")],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_updates_are_in_place_or_copied_for_a_reason(name: str) -> None:
    module = parse(PROGRAMS[name])
    planned = plan_memory(module, module.graph())
    found = updates_of(module, planned)
    assert [(u.value, u.kernel, u.reason) for u in found] == EXPECTED[name], str(planned)
    assert [u.in_place for u in found] == [not reason for _, _, reason in EXPECTED[name]]


def test_only_the_cycle_of_exchanged_states_needs_new_memory() -> None:
    module = parse(PROGRAMS["states are exchanged"])
    assert str(plan_memory(module, module.graph())).splitlines()[2:] == [
        "    b_kept_storage = alloc_storage(32)",
        "    b_kept = view(b_kept_storage, 0, Tensor[(8,), f32])",
        '    copy_b_kept = copy(b, b_kept, "values are exchanged")',
        "    copy_b = copy(a, b, \"the last value of 'b'\")",
        "    copy_a = copy(b_kept, a, \"the last value of 'a'\")",
        "    kill(b_kept_storage)",
        "    return ()",
    ]
