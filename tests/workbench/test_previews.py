"""Previews of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tilewright as tw
from tilewright.ir import script
from tilewright.workbench.previews import WHOLE, previewed
from tilewright.workbench.protocol_steps import StepData

from tests.workbench.conftest import data_of

if TYPE_CHECKING:
    from tests.workbench.conftest import Client


def test_a_preview_shows_the_text_after_a_step_and_changes_nothing(matmul: Client) -> None:
    matmul.select_loop("j")
    head = matmul.session.schedule.head.id
    split = matmul.suggestion("split")
    update = matmul.send("preview", key="p1", step=data_of(split, factors="(None, 4)"))
    found = update.previewed
    assert found is not None
    assert (found.key, found.state, found.more, found.problem) == ("p1", head, 0, None)
    (change,) = found.changes
    function = matmul.session.state.module.functions["matmul"]
    assert (change.function, change.first) == ("matmul", 1)
    assert change.before == script.to_text(function, module=matmul.session.state.module).rstrip()
    assert "for j_1 in range(4):" in change.after
    assert matmul.session.schedule.head.id == head
    assert len(matmul.session.schedule.history) == 1
    matmul.apply("split", factors="(None, 4)")
    after = matmul.session.state.module
    assert change.after == script.to_text(after.functions["matmul"], module=after).rstrip()


def test_a_preview_of_an_illegal_step_has_its_problem(matmul: Client) -> None:
    matmul.select_loop("j")
    split = matmul.suggestion("split")
    for text, message in (("(2, 3)", "product"), ("(8,", "is not a valid value")):
        update = matmul.send("preview", key="", step=data_of(split, factors=text))
        assert update.previewed is not None
        assert update.previewed.problem is not None
        assert message in update.previewed.problem.message
        assert update.previewed.changes == []
    assert matmul.session.document.problems == ()


def test_a_composite_step_is_previewed_by_a_job(network: Client) -> None:
    values = {"function": "twice"}
    data = {"op": "schedule_kernel", "function": "twice", "handles": {}, "values": values}
    assert network.send("preview", key="k", step=data).previewed is None
    network.session.jobs.wait()
    found = [u.previewed for u, _ in network.received if u.previewed is not None]
    (preview,) = found
    assert preview.problem is None
    assert preview.changes
    assert len(network.session.schedule.history) == 1


def test_equal_lines_around_the_changes_of_long_texts_are_left_out() -> None:
    count = WHOLE
    blocks = "\n".join(
        f"    for i{k} in range(8):\n        with block('b{k}'):\n"
        f"            v = spatial(i{k})\n            y[v] = x[v] + {k}.0"
        for k in range(count // 4)
    )
    text = f"@prim_func\ndef f(x: Buffer[(8,), f32], y: Out[(8,), f32]):\n{blocks}\n"
    sch = tw.Schedule(tw.parse(text))
    sch.unroll(sch.get_loop("i0"))  # the first step also changes the attributes of the function
    data = StepData("unroll", "f", {}, {"loop": f"i{count // 8}"})
    (change,) = previewed(sch.state, "", "", data).changes
    assert change.first > 1
    assert len(change.before.splitlines()) < 100
    whole = script.to_text(sch.module.functions["f"], module=sch.module).splitlines()
    lines = change.before.splitlines()
    assert whole[change.first - 1 : change.first - 1 + len(lines)] == lines
