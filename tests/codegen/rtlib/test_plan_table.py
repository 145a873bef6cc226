from __future__ import annotations

from tilewright.codegen.rtlib import layout
from tilewright.codegen.rtlib.plan_table import PlanLayout, plan_table


def test_the_records_of_a_workspace_follow_each_other() -> None:
    records = PlanLayout(keys=2, storages=3)
    assert records.plans == layout.SLOT_SHAPES + layout.SHAPE_COUNT * (layout.SHAPE_KEYS + 16)
    assert records.sizes == records.plans + layout.PLAN_COUNT * (layout.PLAN_OFFSETS + 48)
    assert records.scratch == records.sizes + 24
    assert records.slot_bytes == records.scratch + 48


def test_many_storages_have_no_temporary_memory_in_workspaces() -> None:
    small, many = PlanLayout(1, layout.SMALL_COUNT), PlanLayout(1, layout.SMALL_COUNT + 1)
    assert small.slot_bytes == small.scratch + 16 * layout.SMALL_COUNT
    assert many.slot_bytes == many.scratch


def test_storages_are_in_the_order_of_their_first_and_last_steps() -> None:
    words = plan_table(1, [(5, 6), (1, 9), (3, 4)])
    assert words[layout.TABLE_STORAGES // 8] == 3
    assert words[layout.TABLE_RANGES // 8 :] == (5, 6, 1, 9, 3, 4, 1, 2, 0, 2, 0, 1)


def test_a_function_without_storages() -> None:
    assert plan_table(0, [])[layout.TABLE_RANGES // 8 :] == ()
