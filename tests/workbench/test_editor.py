"""Editing by requests: the default rule of kernels, and undo after a jump."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tilewright.workbench.protocol import Update
    from tilewright.workbench.protocol_runs import KernelRule

    from tests.workbench.conftest import Client

MODEL = """
n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(n, 64), f32], w: Tensor[(64, 96), f32], v: Tensor[(96, 32), f32]):
    hint("n", 24)
    up: Tensor[(n, 96), f32] = matmul(x, w)
    act: Tensor[(n, 96), f32] = gelu(up, approximate="none")
    down: Tensor[(n, 32), f32] = matmul(act, v)
    return down
"""

KERNEL = "fused_matmul_gelu"


def head(client: Client) -> str:
    return client.session.schedule.head.id


def use_rule(client: Client, action: str, function: str = KERNEL) -> Update:
    update = client.send("use_rule", action=action, function=function, head=head(client))
    client.session.jobs.wait()
    return update


def rule(client: Client) -> KernelRule:
    return client.session.rule()


def predicted(client: Client) -> float:
    """Return the predicted ratio, which a background thread computes."""
    wait_until(lambda: rule(client).predicted is not None)
    ratio = rule(client).predicted
    assert ratio is not None
    return ratio


def test_measured_kernel_opens_before_the_graph_is_lowered(connect: Callable[..., Client]) -> None:
    client = connect(MODEL)
    client.send("run", action="measure", function="")
    client.session.jobs.wait()
    assert list(client.session.state.module.functions) == ["main"]
    update = client.send("open", function=KERNEL)
    assert update.open == KERNEL
    assert update.problems is None
    assert "vectorized(" in client.latest(KERNEL)
    assert update.rule is not None
    assert update.rule.status == "compiled"
    assert KERNEL in [f.name for f in (update.functions.items if update.functions else [])]

    use_rule(client, "lower")
    assert client.session.view.open == KERNEL
    assert [g.op for g in client.session.schedule.trace.groups] == ["lower_graph"]
    assert "vectorized(" not in client.latest(KERNEL)
    assert rule(client).status == "follows"
    assert rule(client).rule_us is not None
    assert predicted(client) > 4


def test_take_leave_and_return_to_the_rule(connect: Callable[..., Client]) -> None:
    client = connect(MODEL)
    client.session.schedule.lower_graph("main")
    lowered = head(client)
    client.send("open", function=KERNEL)
    use_rule(client, "take")
    assert rule(client).status == "taken"
    assert rule(client).rule == "schedule_matmul"
    assert client.session.schedule.head.step.op == "schedule_kernel"
    use_rule(client, "return")
    assert head(client) == lowered
    assert rule(client).status == "follows"
    client.send("navigate", action="undo", node="", head=lowered)
    assert rule(client).status == "taken", "an undo returns to the state before"


def test_a_step_leaves_the_rule_and_return_keeps_other_kernels(
    connect: Callable[..., Client],
) -> None:
    client = connect(MODEL)
    schedule = client.session.schedule
    schedule.lower_graph("main")
    i, j = schedule.get_loops("gelu")
    schedule.split(j, factors=(None, 8))
    other = next(f.name for f in schedule.module.prims if f.name != KERNEL)
    schedule.schedule_kernel(other)
    schedule.parallel(i)
    client.send("open", function=KERNEL)
    assert rule(client).status == "left"
    assert predicted(client) > 4
    use_rule(client, "return")
    assert rule(client).status == "follows"
    assert client.session.document.problems == ()
    client.send("open", function=other)
    assert rule(client).status == "taken"
    names = [group.op for group in schedule.trace.groups]
    assert names[0] == "lower_graph"
    assert "schedule_kernel" in names


def test_measured_loss_is_reported_at_equal_sizes(connect: Callable[..., Client]) -> None:
    client = connect(MODEL)
    client.session.schedule.lower_graph("main")
    client.send("open", function=KERNEL)
    client.send("run", action="measure", function=KERNEL)
    client.session.jobs.wait()
    assert (rule(client).rule_us, rule(client).now_us) != (None, None)
    client.session.schedule.parallel(client.session.schedule.get_loops("gelu")[0])
    assert rule(client).status == "left"
    assert rule(client).now_us is None
    client.send("run", action="measure", function=KERNEL)
    client.session.jobs.wait()
    assert rule(client).rule_us is not None
    assert rule(client).now_us is not None


def test_requests_about_rules_are_checked(matmul: Client) -> None:
    stale = matmul.send("use_rule", action="take", function="matmul", head="nothing")
    assert stale.problems is not None
    assert stale.problems[0].title == "Stale edit"
    missing = matmul.send("use_rule", action="take", function="missing", head=head(matmul))
    assert missing.problems is not None
    assert "no function 'missing'" in missing.problems[0].message
    unchanged = matmul.send("use_rule", action="return", function="matmul", head=head(matmul))
    assert unchanged.problems is not None
    assert "was not scheduled by a step" in unchanged.problems[0].message


def test_undo_after_a_jump_returns_to_the_state_before(matmul: Client) -> None:
    matmul.select_loop("j")
    matmul.apply("split", "(None, 8)")
    last = head(matmul)
    start = matmul.session.schedule.history[0].id
    update = matmul.send("navigate", action="jump", node=start, head=last)
    assert update.history is not None
    assert update.history.can_undo
    matmul.send("navigate", action="undo", node="", head=start)
    assert head(matmul) == last


ALIKE = """
n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(n, 64), f32], w: Tensor[(64, 64), f32], v: Tensor[(64, 64), f32]):
    a: Tensor[(n, 64), f32] = matmul(x, w)
    b: Tensor[(n, 64), f32] = exp(a)
    c: Tensor[(n, 64), f32] = matmul(b, v)
    d: Tensor[(n, 64), f32] = tanh(c)
    e: Tensor[(n, 64), f32] = softmax(d, axis=1)
    return e
"""


def test_steps_are_applied_to_similar_kernels_after_a_preview(
    connect: Callable[..., Client],
) -> None:
    client = connect(ALIKE)
    schedule = client.session.schedule
    schedule.lower_graph("main")
    names = [f.name for f in schedule.module.prims]
    first, second = (name for name in names if "matmul" in name)
    client.select_loop("j", first)
    client.apply("split", factors="(None, 16)")
    before = head(client)
    client.send("apply_to_similar", function=first, preview=True, head=before)
    client.session.jobs.wait()
    found = client.session.view.similar
    assert found is not None
    assert head(client) == before
    reasons = {kernel.function: kernel.reason for kernel in found.kernels}
    assert reasons[second] == ""
    assert all(reasons[name] for name in names if "matmul" not in name)
    client.send("apply_to_similar", function=first, preview=False, head=before)
    client.session.jobs.wait()
    client.send("open", function=second)
    assert "in range(16)" in client.latest(second)
    refused = client.send("apply_to_similar", function="main", preview=True, head=head(client))
    assert refused.problems is not None
