"""Tests of assume."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.errors import TilewrightError
from tilewright.ir.interpreter import call_prim
from tilewright.schedules.handles import FunctionRef
from tilewright.schedules.primitives.specialize.assume import Assume

from tests.schedules.helpers import MATMUL, rejected, schedule
from tests.schedules.primitives.graph.test_callers import (
    CHAIN,
    MAIN,
    RELU,
    grouped,
    launched,
    lowered,
    with_version,
)

KERNEL = FunctionRef("matmul")


def test_implied_predicates_are_removed():
    sch = schedule(MATMUL)
    sch.assume(KERNEL, "M", multiple_of=16)
    mm = sch.get_block("mm")
    sch.split(sch.get_loops(mm)[0], (None, 16))
    assert sch.trace[-1].decisions == {"guard": "none"}
    assert sch.verify().required().compared
    assert "M % 16 == 0" in str(sch)


def test_a_call_with_another_size_is_an_error():
    sch = schedule(MATMUL)
    sch.assume(KERNEL, "M", multiple_of=16)
    b = np.ones((16, 24), np.int32)
    kernel = sch.module.prim("matmul")
    call_prim(kernel, [np.ones((32, 16), np.int32), b])
    with pytest.raises(TilewrightError, match="M % 16 == 0 does not hold"):
        call_prim(kernel, [np.ones((33, 16), np.int32), b])
    run = tw.compile(sch.module)["matmul"]
    assert run(np.ones((32, 16), np.int32), b)[0, 0] == 16
    with pytest.raises(TilewrightError, match="M % 16 == 0"):
        run(np.ones((33, 16), np.int32), b)


def test_callers_check_the_fact():
    sch = lowered(CHAIN)
    sch.assume(RELU, "b", lower=2, upper=64)
    facts = [str(f.predicate) for f in sch.module.graph().facts]
    assert {"b >= 2", "b <= 64"} <= set(facts)


def test_requirements_of_assume():
    sch = lowered(CHAIN)
    rejected(sch, Assume(MAIN, "b", 4), Assume.Requires.LOOP_LEVEL, "not a loop-level function")
    rejected(
        sch,
        Assume(RELU, "q", 4),
        Assume.Requires.SYMBOL_EXISTS,
        "no symbol 'q'; symbols of 'relu' are b, s",
    )
    rejected(
        sch, Assume(RELU, "b", 0), Assume.Requires.NEW_FACT, "multiple_of must be at least 1, not 0"
    )
    rejected(sch, Assume(RELU, "b", lower=1), Assume.Requires.NEW_FACT, "b >= 1 already follows")
    rejected(sch, Assume(RELU, "b", upper=0), Assume.Requires.NEW_FACT, "b <= 0 contradicts")
    rejected(sch, Assume(RELU, "b"), Assume.Requires.NEW_FACT, "no fact of 'b' is given")
    grouped_call = grouped()
    name = FunctionRef("add")
    rejected(
        grouped_call,
        Assume(name, "b", 4),
        Assume.Requires.CHECKABLE,
        "which another function calls",
    )
    chosen, version = with_version()
    rejected(chosen, Assume(version, "s", 4), Assume.Requires.CHECKABLE, "with versions")
    rejected(
        launched(),
        Assume(RELU, "b", 4),
        Assume.Requires.CHECKABLE,
        "launches 'relu' in the memory stage",
    )


def test_suggested_for_every_symbol():
    sch = schedule(MATMUL)
    found = [c.step.title() for c in sch.suggest(KERNEL) if c.applicable]
    assert "assume(function=matmul, symbol='M', multiple_of=16)" in found
