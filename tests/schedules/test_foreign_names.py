"""Hints for names of other compilers must name methods and parameters that exist."""

from __future__ import annotations

import re

import pytest

import tilewright
from tilewright.schedules import Schedule
from tilewright.schedules.foreign_names import (
    METHODS,
    PARAMETERS,
    UNIT_LOOPS,
    method_hint,
    parameter_hint,
)
from tilewright.schedules.registry import STEPS

PARAMETERS_HERE = {p.name for step in STEPS.values() for p in step.parameters()}


@pytest.mark.parametrize("name", METHODS)
def test_a_hint_names_only_existing_attributes(name):
    assert not hasattr(Schedule, name)
    for quoted in re.findall(r"`([^`]+)`", method_hint(name)):
        if name in quoted and "TVM's" in method_hint(name) and quoted == name:
            continue
        for attribute in re.findall(r"\bsch\.(\w+)", quoted):
            assert hasattr(Schedule, attribute), quoted
        for attribute in re.findall(r"\btilewright\.(\w+)", quoted):
            assert attribute in tilewright.__all__, quoted
        if re.fullmatch(r"\w+", quoted) and quoted not in METHODS and quoted != "in":
            assert hasattr(Schedule, quoted) or quoted in PARAMETERS_HERE, quoted


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_parameter_here_replaces_one_elsewhere(name):
    here = PARAMETERS[name]
    assert here in PARAMETERS_HERE
    assert parameter_hint(name, (here,)) == f"TVM's or Halide's {name!r} is {here!r} here"
    assert parameter_hint(name, ("other",)) == ""


def test_unknown_names_have_no_hint():
    assert method_hint("splitt") == ""
    assert parameter_hint("splitt", ("loop",)) == ""
    assert all("omit it" in parameter_hint(name, ("loop",)) for name in UNIT_LOOPS)
