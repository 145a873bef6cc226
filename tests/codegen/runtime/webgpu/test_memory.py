"""Addresses of WebGPU buffers."""

from __future__ import annotations

from tilewright.codegen.runtime.webgpu import memory
from tilewright.codegen.runtime.webgpu.memory import BASE, SLOT, BlockTable


def test_addresses_are_found():
    table = BlockTable(lambda size: f"buffer of {size}")
    first, second = table.allocate(5), table.allocate(300)
    assert (first.size, second.size) == (256, 512)
    assert (first.address, second.address) == (BASE, BASE + SLOT)
    assert table.find(second.address + 299) == (second, 299)
    assert table.find(4096) is None
    assert table.find(BASE + 5 * SLOT) is None
    assert table.count == 2


def test_unused_buffers_are_reused_by_size():
    table = BlockTable(lambda size: size)
    block = table.allocate(100)
    assert table.free(block.address) is None
    assert table.count == 0
    assert table.free(block.address) is None
    assert table.allocate(1000) is not block
    assert table.allocate(200) is block


def test_a_full_pool_destroys_buffers(monkeypatch):
    monkeypatch.setattr(memory, "POOLED_BYTES", 256)
    table = BlockTable(lambda size: size)
    small, large = table.allocate(1), table.allocate(300)
    assert table.free(small.address) is None
    assert table.free(large.address) is large
    assert table.find(large.address) is None
    assert table.trim() == [small]
    assert table.find(small.address) is None
