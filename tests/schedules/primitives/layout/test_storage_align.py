"""Tests of storage_align."""

from tilewright.schedules.primitives.layout.storage_align import StorageAlign

from tests.schedules.helpers import MATMUL, accepted, rejected, schedule


def cached():
    sch = schedule(MATMUL)
    copy = sch.cache_read(sch.get_block("mm"), sch.get_buffer("B"), "shared")
    return sch, copy, sch.get_buffer("B_shared")


def test_rows_are_padded(golden):
    sch, _, buffer = cached()
    sch.storage_align(buffer, axis=0, factor=32, offset=8)
    golden("storage_align.txt", str(sch))
    assert sch.verify().required()


def test_requirements():
    sch, _, buffer = cached()
    rejected(
        sch,
        StorageAlign(sch.get_buffer("A"), 0, 32, 8),
        StorageAlign.Requires.TEMPORARY,
        "parameter",
    )
    rejected(
        sch, StorageAlign(buffer, 1, 32, 8), StorageAlign.Requires.INNER_AXIS, "must be in [0, 1)"
    )
    rejected(sch, StorageAlign(buffer, -1, 32, 8), StorageAlign.Requires.INNER_AXIS, "axis -1")
    rejected(
        sch, StorageAlign(buffer, 0, 0, 0), StorageAlign.Requires.VALID_ALIGNMENT, "[0, factor=0)"
    )
    rejected(
        sch,
        StorageAlign(buffer, 0, 32, 32),
        StorageAlign.Requires.VALID_ALIGNMENT,
        "offset 32 must be in [0, factor=32)",
    )
    accepted(sch, StorageAlign(buffer, 0, 32, 8))
    sch.storage_align(buffer, axis=0, factor=32, offset=8)
    rejected(
        sch,
        StorageAlign(buffer, 0, 32, 8),
        StorageAlign.Requires.ALIGNABLE_WRITERS,
        "already has a storage_align annotation",
    )


def test_rows_of_packed_elements_begin_at_whole_bytes():
    sch = schedule("""
@prim_func
def f(x: Buffer[(4, 32), i4], y: Out[(4, 32), i4]):
    for i in range(4):
        for j in range(32):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj]
""")
    sch.cache_read("y", "x", "shared")
    buffer = sch.get_buffer("x_shared")
    rejected(
        sch,
        StorageAlign(buffer, 0, 4, 3),
        StorageAlign.Requires.VALID_ALIGNMENT,
        "must be multiples of 2: a byte contains 2 elements of 'x_shared'",
    )
    accepted(sch, StorageAlign(buffer, 0, 4, 2))
