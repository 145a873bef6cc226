"""Inputs of requests: copies of arrays, or recipes that are drawn where they are received."""

from __future__ import annotations

import os
import resource

import numpy as np
import pytest

from tilewright.codegen.errors import OutOfMemoryError
from tilewright.codegen.sandbox.memory_limit import allocated_bytes, shared_memory_counted
from tilewright.codegen.sandbox.random_inputs import ArrayRecipe, RandomInputs
from tilewright.codegen.sandbox.sent_inputs import Inputs, received_inputs, sent_inputs
from tilewright.ir.dtype import bf16, f32

RECIPE = RandomInputs((ArrayRecipe("x", (300, 2), f32), 5, ArrayRecipe("y", (0,), bf16)), seed=3)


def transferred(inputs: Inputs) -> list[np.ndarray | int]:
    fields, shared = sent_inputs(inputs, 1 << 20)
    with received_inputs(fields, os.dup(shared.descriptor)) as received:
        shared.close()
        return [np.array(x) if isinstance(x, np.ndarray) else x for x in received]


@pytest.mark.parametrize("inputs", [RECIPE, RECIPE.drawn(1 << 20)], ids=["recipe", "arrays"])
def test_inputs_are_received(inputs: Inputs) -> None:
    for got, expected in zip(transferred(inputs), RECIPE.drawn(1 << 20), strict=True):
        assert np.array_equal(got, expected)
        assert np.asarray(got).dtype == np.asarray(expected).dtype


def test_random_arrays_are_aligned_like_given_ones() -> None:
    fields, shared = sent_inputs(RECIPE, 0)
    with received_inputs(fields, os.dup(shared.descriptor)) as received:
        assert all(x.ctypes.data % 64 == 0 for x in received if isinstance(x, np.ndarray))
    shared.close()


def test_a_recipe_beyond_the_limit_is_not_sent() -> None:
    with pytest.raises(OutOfMemoryError, match="at most 1,000 bytes"):
        sent_inputs(RECIPE, 2_000)


def test_shared_memory_counts_as_allocated() -> None:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            limit = allocated_bytes() + (256 << 20)
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
            code = _counted()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _counted() -> int:
    """Return 0 if allocations fail only while other memory is counted.

    The C library may keep up to 32 MiB of freed memory for smaller arrays than these.
    """
    with shared_memory_counted(192 << 20), pytest.raises(MemoryError):
        np.ones(16 << 20)
    with pytest.raises(MemoryError, match="335,544,320 bytes of shared memory"):
        shared_memory_counted(320 << 20).__enter__()
    return 0 if np.ones(16 << 20).size else 2
