"""The default provider of memory: large memory is requested in huge pages."""

from __future__ import annotations

import ctypes

import pytest

from tilewright.codegen.build.rtlib_object import rtlib_address
from tilewright.codegen.rtlib import layout, providers
from tilewright.codegen.rtlib.language import Ptr
from tilewright.ir.thread import runtime_table

PROVIDE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, *([ctypes.c_int64] * 4))
ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
ADVISE = ctypes.CFUNCTYPE(ctypes.c_int32, *([ctypes.c_int64] * 3))
LARGE = 4 << 20


class Memory:
    """A system record whose allocator returns one address and whose calls are recorded."""

    def __init__(self, address: int, *, advises: bool = True) -> None:
        self.calls: list[tuple[int, ...]] = []
        self.kept = [ALLOCATE(lambda *_: address), ADVISE(self._advise)]
        allocate, advise = (ctypes.cast(f, ctypes.c_void_p).value or 0 for f in self.kept)
        self.record = (ctypes.c_int64 * (layout.SYSTEM_SIZE // 8))()
        self.record[layout.SYSTEM_ALLOCATE // 8] = allocate
        self.record[layout.SYSTEM_ADVISE // 8] = advise if advises else 0
        self.table = (ctypes.c_int64 * (runtime_table.SYSTEM // 8 + 1))()
        self.table[runtime_table.SYSTEM // 8] = ctypes.addressof(self.record)
        self.call = (ctypes.c_int64 * 1)(ctypes.addressof(self.table))

    def _advise(self, *arguments: int) -> int:
        self.calls.append(arguments)
        return 0

    def allocated(self, size: int, *, native: bool) -> int:
        context = ctypes.addressof(self.call)
        if native:
            return PROVIDE(rtlib_address(providers.provide_memory))(context, size, 64, 0, 0)
        return int(providers.provide_memory(Ptr(context), size, 64, 0, 0))


@pytest.mark.parametrize("native", [True, False], ids=["compiled", "Python"])
@pytest.mark.parametrize(
    ("address", "size", "expected"),
    [
        (1 << 30, LARGE, (1 << 30, LARGE)),
        ((1 << 30) + 64, LARGE, ((1 << 30) + 4096, LARGE - 4096)),
        ((1 << 30) + 4032, LARGE + 5, ((1 << 30) + 4096, LARGE)),
        (1 << 30, LARGE - 1, (1 << 30, LARGE)),
        (1 << 30, LARGE - 64, None),
        (0, LARGE, None),
    ],
)
def test_whole_pages_of_large_memory_are_advised(address, size, expected, native) -> None:
    memory = Memory(address)
    assert memory.allocated(size, native=native) == address
    assert memory.calls == ([] if expected is None else [(*expected, providers.HUGE_PAGES)])


def test_systems_without_advice() -> None:
    memory = Memory(1 << 30, advises=False)
    assert memory.allocated(LARGE, native=True) == 1 << 30
    assert memory.calls == []
