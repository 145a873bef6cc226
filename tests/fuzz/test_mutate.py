"""A disabled check is noticed, only that check is disabled, and every check was disabled once."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.codegen.errors import FactError
from tilewright.codegen.lower import lower_kernel
from tilewright.ir.kernel_errors import UnboundKernelError
from tilewright.ir.script import parse
from tilewright.ir.verify import UnprovedAccessError, check_proved, violations
from tilewright.schedules.handles import LoopRef
from tilewright.schedules.primitives.loops.loop_partition import LoopPartition
from tilewright.schedules.primitives.loops.parallel import Parallel
from tilewright.schedules.requirement import CommonRequirement
from tilewright.schedules.state import StaleHandleError
from tilewright.target.target import Target

from tests.conftest import ROOT
from tests.fuzz import mutants
from tests.fuzz.effects import EFFECTS, effect, rank
from tests.fuzz.mutate import EXPLAINED, Recording, Row, by_walks, survivors, table, text_of
from tests.schedules.helpers import schedule

PROGRAM = """
@prim_func
def random(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    for i in range(8):
        with block("y"):
            vi = spatial(i)
            y[vi] = x[vi] + 1.0
"""
LAST = PROGRAM.replace("Out[(8,)", "Out[(1,)").replace("y[vi]", "y[0]")
"""Each iteration writes the same element."""

REPEAT = "run python -m tests.fuzz.mutate --record, or with --only KEY for some checks"
ROWS = {key: row for rows in table().values() for key, row in rows.items()}


def test_every_check_was_disabled():
    recorded = {kind: list(rows) for kind, rows in table().items()}
    for kind, listed in mutants.keys().items():
        assert recorded.get(kind) == listed, REPEAT


def test_every_check_is_noticed_or_explained():
    assert survivors(table()) == []
    unnoticed = [key for key, row in ROWS.items() if not row.by]
    assert sorted(EXPLAINED) == sorted(unnoticed), REPEAT


def test_the_rejecting_tests_exist():
    for key, row in ROWS.items():
        if row.by == "rejecting test":
            path, _, name = row.test.partition("::")
            text = (ROOT / path).read_text()
            assert f"def {name.rpartition('::')[2]}(" in text, f"{key}: {REPEAT}"


def test_effects_are_known():
    effects = {row.effect.partition(":")[0] for row in ROWS.values()}
    assert effects <= {*EFFECTS, ""}


def test_only_one_requirement_is_disabled():
    sch = schedule(PROGRAM)
    (loop,) = sch.get_loops("y")
    step = LoopPartition(loop, 9)
    required = LoopPartition.Requires.POINT_IN_RANGE
    assert [p.requirement for p in sch.check(step)] == [required]
    with mutants.disabled("loop_partition.serial"):
        assert [p.requirement for p in sch.check(step)] == [required]
    with mutants.disabled("loop_partition.point_in_range"):
        assert not sch.check(step)
    assert sch.check(step)


def test_a_requirement_of_all_steps_is_disabled():
    sch = schedule(PROGRAM)
    step = LoopPartition(LoopRef("random", 999, "j"), 2)
    assert [p.requirement for p in sch.check(step)] == [CommonRequirement.TARGETS_EXIST]
    with mutants.disabled("step.targets_exist"), pytest.raises(StaleHandleError):
        sch.check(step)


def test_a_rule_is_disabled():
    module = parse(PROGRAM.replace("Out", "Buffer"), check=False)
    assert [v.rule.number for v in violations(module)] == ["L14"]
    with mutants.disabled("L13 buffer attributes"):
        assert violations(module)
    with mutants.disabled("L14 access modes"):
        assert not violations(module)


def test_a_part_of_the_query_of_bounds_is_disabled():
    text = PROGRAM.replace("x[vi] + 1.0", "f32(index(4 // (vi - 3), i64))")
    module = parse(text, check=False)
    with pytest.raises(UnprovedAccessError):
        check_proved(module)
    with mutants.disabled("divisor, outside"), pytest.raises(UnprovedAccessError):
        check_proved(module)
    with mutants.disabled("divisor, unknown"):
        check_proved(module)


def test_a_refusal_is_disabled():
    function = parse(PROGRAM).prim("random")
    (key,) = (k for k in mutants.refusals() if k.endswith("Bindings.run UnboundKernelError"))
    with pytest.raises(UnboundKernelError):
        lower_kernel(function, Target("simt"))
    with mutants.disabled(key):
        assert lower_kernel(function, Target("simt"))
    with pytest.raises(UnboundKernelError):
        lower_kernel(function, Target("simt"))


def test_a_check_at_run_time_is_disabled(tmp_path, monkeypatch):
    text = "n = symbols('n')\n" + PROGRAM.replace("(8,)", "(n,)").replace(
        "    for i in range(8)", "    fact(n % 2 == 0)\n    for i in range(n)"
    )
    x = np.ones(3, "f")
    with pytest.raises(FactError):
        compile(parse(text))(x)
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    with mutants.disabled("call: fact"):
        np.testing.assert_array_equal(compile(parse(text))(x), x + 1)


def test_effects_of_steps():
    sch = schedule(LAST)
    (loop,) = sch.get_loops("y")
    with mutants.disabled("parallel.independent_iterations"):
        assert effect(Parallel(loop), sch.state) == "wrong result: native code"
    assert effect(Parallel(loop), sch.state).startswith("implied: ")
    own = schedule(PROGRAM)
    assert effect(Parallel(own.get_loops("y")[0]), own.state) == "none"
    assert rank("wrong result: interpreter") < rank("ill-formed program: L5") < rank("none")


def test_effects_of_races():
    """The rule that notices a race does not hide that native code computes wrong results."""
    sch = schedule(LAST.replace("x[vi] + 1.0", "1.0"))
    (loop,) = sch.get_loops("y")
    with mutants.disabled("parallel.independent_iterations"):
        assert effect(Parallel(loop), sch.state) == "ill-formed program: L23 independent iterations"


def test_a_walk_notices_a_disabled_requirement():
    assert by_walks("loop_partition.point_in_range", 60)


def test_rows_state_the_checks():
    assert str(Row()) == "SURVIVED"
    assert str(Row("walk", walk="native")) == "walk (native)"
    both = Row("rejecting test", "tests/test_a.py::test", "none")
    assert str(both) == "rejecting test (tests/test_a.py::test); none"
    assert survivors({"rules": {"L1": both, "L2": Row()}}) == ["L2"]
    assert '"L1": {"by": "rejecting test"' in text_of({"rules": {"L1": both}})


def test_fast_tests_of_the_primitive_run_first():
    made = Recording({"split.serial": ["a", "b", "primitives/test_split", "failed"]},
                     {"a": 2.0, "b": 0.1, "primitives/test_split": 3.0}, ["failed"])  # fmt: skip
    assert made.tests("split.serial") == ["primitives/test_split", "b", "a"]
    assert made.tests("split.factor_count") == []
