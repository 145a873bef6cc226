"""Named sets of sizes, and measurements with all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tilewright as tw
from tilewright.workbench.size_sets import MAX_SETS, SizeSetError, SizeSets
from tilewright.workbench.symbols import SampleError

from tests.workbench.conftest import NETWORK

if TYPE_CHECKING:
    from tests.workbench.conftest import Client


def test_a_set_has_a_name_and_valid_sizes() -> None:
    main = tw.parse(NETWORK).functions["main"]
    sets = SizeSets().added(" small ", {"n": 2}, main).added("large", {"n": 64}, main)
    assert sets.sizes == {"small": {"n": 2}, "large": {"n": 64}}
    assert sets.chosen("large", main) == {("main", "n"): 64}
    assert sets.added("small", {"n": 4}, main).of("small") == {"n": 4}
    assert sets.removed("small").sizes == {"large": {"n": 64}}
    for name in ("", "  ", "x" * 41):
        with pytest.raises(SizeSetError, match="expected 1 to 40"):
            sets.added(name, {"n": 2}, main)
    with pytest.raises(SampleError, match="n = 65 violates the range"):
        sets.added("huge", {"n": 65}, main)
    with pytest.raises(SampleError, match="no symbol 'm'"):
        sets.added("other", {"m": 1}, main)
    with pytest.raises(SizeSetError, match="no sizes"):
        sets.added("empty", {}, main)
    with pytest.raises(SizeSetError, match="no set 'medium'"):
        sets.of("medium")
    full = SizeSets({str(k): {"n": 1} for k in range(MAX_SETS)})
    with pytest.raises(SizeSetError, match="there are 16 sets"):
        full.added("one more", {"n": 1}, main)


def test_all_sets_are_measured(network: Client) -> None:
    session = network.session
    session.add_size_set("small", {"n": 2})
    network.send("edit_size_set", action="add", name="usual")
    update = network.send("edit_size_set", action="use", name="small")
    assert update.setup is not None
    assert [row.sample for row in update.setup.sizes] == [2]
    assert [(s.name, s.sizes, s.current) for s in update.setup.sets] == [
        ("small", "n = 2", True),
        ("usual", "n = 6", False),
    ]
    network.send("run", action="measure_sets", function="")
    session.jobs.wait()
    assert [(r.shapes, r.whole) for r in session.records.view().items] == [
        ("n = 2", True),
        ("n = 6", True),
    ]
    setups = [u.setup for u, _ in network.received if u.setup is not None]
    assert [s.microseconds is not None for s in setups[-1].sets] == [True, True]
    messages = {job.message for u, _ in network.received for job in u.jobs or ()}
    assert any(m.startswith("usual, set 2 of 2: ") for m in messages)

    # The times are those of the head; another state has none.
    network.send("open", function="twice")
    network.select_loop("i", "twice")
    update = network.apply("parallel")
    assert update.setup is not None
    assert [s.microseconds for s in update.setup.sets] == [None, None]
    update = network.send("edit_size_set", action="remove", name="small")
    assert update.setup is not None
    assert [s.name for s in update.setup.sets] == ["usual"]


def test_without_sets_nothing_is_measured(network: Client) -> None:
    network.send("run", action="measure_sets", function="")
    assert "there is no set of sizes" in network.session.document.problems[0].message
    network.send("edit_size_set", action="use", name="small")
    assert "no set 'small'" in network.session.document.problems[0].message
