"""The mismatch gallery: ten attempts, their error messages, and success after the fixes."""

import json

import pytest

from tilewright.schedules.apply import apply, check
from tilewright.schedules.forwarding import followed
from tilewright.schedules.gallery import ATTEMPTS, fixed, page
from tilewright.schedules.intrinsics.mismatch import Match


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda a: a.title)
def test_an_attempt_fails_and_is_fixed(attempt):
    outcome = fixed(attempt)
    assert outcome.error.problems
    assert outcome.fixes
    assert outcome.schedule.state.block(outcome.block).annotations
    assert outcome.schedule.verify(runs=2).required().compared


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda a: a.title)
def test_every_fix_is_legal_and_removes_its_mismatch(attempt):
    schedule = attempt.prepared()
    step = attempt.step(schedule)
    for problem in schedule.check(step):
        for fix in problem.fixes:
            assert schedule.check(fix) == ()
            if type(fix) is type(step):
                continue
            after = apply(schedule.state, fix).state
            left = [p.message for p in check(after, followed(step, after))]
            assert problem.message not in left


def test_all_kinds_are_shown():
    kinds = {m.kind for a in ATTEMPTS for m in fixed(a).match.mismatches}
    assert kinds == {
        "access",
        "dtype",
        "extent",
        "layout",
        "predicate",
        "reduction",
        "scope",
        "target",
    }


def test_every_mismatch_marks_a_line():
    for attempt in ATTEMPTS:
        match = fixed(attempt).match
        marked = sorted(m for row in match.rows for m in row.marks)
        assert marked == list(range(len(match.mismatches)))


def test_the_comparison_is_plain_data():
    match = fixed(ATTEMPTS[0]).match
    data = json.loads(json.dumps(match.to_json()))
    assert data["intrinsic"] == match.intrinsic
    assert data["mismatches"][0]["kind"] == "extent"
    assert isinstance(match, Match)
    assert not match.matches


def test_committed_page_is_current(root):
    text = (root / "docs" / "tensorize-mismatches.md").read_text(encoding="utf-8")
    assert text == page(), "run python -m tilewright.schedules.gallery"
