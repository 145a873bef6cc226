"""Targets of a session: options, the choice of another one, and instructions that it lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tilewright as tw
from tilewright.target.host import with_level
from tilewright.workbench.serialization import ProtocolError
from tilewright.workbench.targets import (
    missing_features,
    missing_here,
    target_key,
    target_named,
    target_options,
)

from tests.workbench.conftest import MATMUL
from tests.workbench.scenarios import PRODUCT

if TYPE_CHECKING:
    from collections.abc import Callable

    from tilewright.workbench.protocol import Update

    from tests.workbench.conftest import Client

AVX2 = tw.Target("cpu", features=("avx2",))
NARROW = "avx2.fma.f32.6x16"
WIDE = "avx512.fma.f32.14x32"


def choose(client: Client, key: str) -> Update:
    update = client.send("set_target", target=key, head=client.session.schedule.head.id)
    client.session.jobs.wait()
    return update


def test_options_contain_this_machine_other_machines_and_the_current_target() -> None:
    current = tw.Target("cpu", arch="aarch64", features=("sve",))
    options = target_options(current)
    assert options[0].key == target_key(current) == "cpu aarch64 sve"
    keys = [option.key for option in options]
    assert {"cpu", "cpu avx2", "cpu riscv64", "simt sm_90a", "cuda sm_80"} <= set(keys)
    missing = {option.key: option.missing for option in options}
    assert missing["cpu"] == missing["simt sm_80"] == missing["webgpu browser"] == ""
    labels = {option.key: option.label for option in options}
    assert labels["webgpu"] == "webgpu: this machine's GPU"
    assert labels["webgpu browser"] == "webgpu: this browser's GPU"
    assert target_named("webgpu browser", current) == tw.Target("webgpu", where="browser")
    assert "another processor" in missing["cpu riscv64"]
    with pytest.raises(ProtocolError, match="no target 'vax'"):
        target_named("vax", current)


def test_a_target_keeps_the_number_of_threads() -> None:
    one = tw.Target("cpu", threads=1)
    assert target_named("cpu avx2", one) == tw.Target("cpu", features=("avx2",), threads=1)
    assert target_named("simt sm_80", one).threads == 0


def test_missing_features_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_HOST_FEATURES", "avx2")
    assert "avx512f" in missing_here(tw.Target("cpu", features=("avx512",)))
    assert missing_features(tw.Target("cpu"), ("avx512f",)) == "this machine lacks avx512f"
    assert missing_features(AVX2, ("avx2", "fma")) == ""
    assert missing_features(AVX2, ("aarch64",)) == "the target lacks aarch64"


def test_webgpu_runs_if_the_package_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    halves = tw.Target("webgpu", features=("f16",))
    assert missing_here(halves) == ""
    monkeypatch.setattr("tilewright.workbench.targets.find_spec", lambda _: None)
    assert "'wgpu' is not installed" in missing_here(halves)


def test_another_target_changes_suggestions_passes_and_threads(matmul: Client) -> None:
    session = matmul.session
    choose(matmul, "simt sm_90a")
    assert session.machine == tw.Target("simt", arch="sm_90a")
    assert session.state.target == session.machine
    setup = [update.setup for update, _ in matmul.received if update.setup is not None][-1]
    assert (setup.target, setup.missing, setup.function) == ("simt sm_90a", "", "matmul")
    assert [row.name for row in setup.sizes] == ["n"]
    matmul.select_loop("i")
    assert "bind" in [s.step for s in matmul.suggestions()]
    choose(matmul, "cpu riscv64")
    setup = [update.setup for update, _ in matmul.received if update.setup is not None][-1]
    assert "another processor" in setup.missing


def test_steps_that_a_target_lacks_become_pending(connect: Callable[..., Client]) -> None:
    schedule = tw.Schedule(tw.parse(PRODUCT), AVX2)
    client = connect(schedule, AVX2)
    client.select_loop("i", "product")
    client.apply_fix("tensorize")
    client.select_loop("i_1", "product")
    client.apply("tensorize")
    head, program = schedule.head.id, schedule.module
    choose(client, "cpu riscv64")
    assert [step.op for step in client.session.document.pending.steps] == ["tensorize"]
    assert schedule.module is not program
    choose(client, "cpu avx2")
    assert schedule.head.id == head, "the pending steps are legal again"
    assert not client.session.document.pending.steps
    assert schedule.state.target == AVX2


def test_a_stale_head_and_a_conflicting_function_are_rejected(
    connect: Callable[..., Client], matmul: Client
) -> None:
    stale = matmul.send("set_target", target="cpu avx2", head="0" * 64)
    assert stale.problems is not None
    assert stale.problems[0].title == "Stale edit"
    text = PRODUCT.replace("@prim_func", "@prim_func(target=Target('cpu', features=('avx2',)))")
    client = connect(text, AVX2)
    update = choose(client, "simt sm_80")
    assert update.problems is not None
    assert update.problems[0].title == "Conflicting targets"
    assert client.session.machine == AVX2


def test_instructions_that_the_target_lacks_are_marked_and_listed_last(
    connect: Callable[..., Client],
) -> None:
    """A schedule without a target is for that of the workbench."""
    client = connect(tw.Schedule(tw.parse(MATMUL)), AVX2)
    client.select_loop("i")
    suggestions = [s for s in client.suggestions() if s.step == "tensorize"]
    assert all("avx512" not in s.label for s in suggestions)
    field = next(f for f in suggestions[0].fields if f.name == "intrinsic")
    assert field.unavailable[repr(WIDE)] == "the target lacks avx512f"
    assert field.choices.index(repr(NARROW)) < field.choices.index(repr(WIDE))
    marked = [choice in field.unavailable for choice in field.choices]
    assert any(marked)
    assert marked == sorted(marked)
    assert not any("cuda" in choice for choice in field.choices)


def test_the_host_is_the_machine_of_a_target_without_features() -> None:
    assert missing_features(tw.Target("cpu"), with_level(tw.Target("cpu")).features[:1]) == ""
