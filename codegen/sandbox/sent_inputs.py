"""Inputs of a request: arrays in shared memory, or the recipe of arrays that the process draws."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Any, Final, TypeAlias

import numpy as np

from ...errors import Json
from .memory_limit import shared_memory_counted
from .random_inputs import Array, RandomInputs
from .shared_arrays import SharedArrays

Inputs: TypeAlias = "Sequence[Array | int] | RandomInputs"

SHARE: Final = 0.5
"""The share of the memory limit that random inputs use: a run also makes a copy of them."""


def sent_inputs(inputs: Inputs, memory: int) -> tuple[dict[str, Json], SharedArrays]:
    """Return the fields of a request, and the shared memory to send with it.

    Parameters
    ----------
    inputs : sequence of arrays and integers, or RandomInputs
        Arrays are copied into shared memory; of random inputs only the recipe is sent.
    memory : int
        The memory limit of the process in bytes; 0: none.

    Raises
    ------
    OutOfMemoryError
        If random inputs use more than a share of the limit.
    """
    if isinstance(inputs, RandomInputs):
        if memory:
            inputs.require_memory(int(memory * SHARE))
        shared = SharedArrays.of([])
        return {"random": inputs.to_json(), "arguments": [], "layout": shared.layout}, shared
    shared = SharedArrays.of([a for a in inputs if isinstance(a, np.ndarray)])
    arguments: list[Json] = [None if isinstance(a, np.ndarray) else int(a) for a in inputs]
    return {"random": None, "arguments": arguments, "layout": shared.layout}, shared


@contextmanager
def received_inputs(request: Mapping[str, Any], descriptor: int) -> Generator[list[Array | int]]:
    """Yield the inputs of a request; random ones are drawn, and count as allocated memory."""
    with ExitStack() as opened:
        shared = opened.enter_context(closing(SharedArrays(descriptor, request["layout"])))
        if request["random"] is None:
            arrays = iter(shared.arrays())
            yield [next(arrays) if word is None else int(word) for word in request["arguments"]]
            return
        inputs = RandomInputs.from_json(request["random"])
        opened.enter_context(shared_memory_counted(sum(a.size for a in inputs.arrays)))
        kinds = [(recipe.shape, recipe.dtype) for recipe in inputs.arrays]
        memory = opened.enter_context(closing(SharedArrays.zeros(kinds)))
        yield inputs.fill(memory.arrays())
