"""The interpreter in a sandbox, so that endless programs can be canceled."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

import numpy as np

from ...ir.interpreter.oracle import Exact
from ...ir.module import Module
from ...ir.script import to_text
from ..build.worker_pool import CancelToken
from .one_request import process_of
from .parent import DEFAULT_TIMEOUT
from .process import Process
from .sampling_plan import Array
from .shared_arrays import SharedArrays
from .shared_programs import shared_program


def exact_results(
    module: Module,
    function: str,
    inputs: Sequence[Array | int],
    *,
    rounded: bool = True,
    memory: int = 0,
    cancel: CancelToken | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> Exact:
    """Interpret a function in a sandbox; see :func:`ir.interpreter.interpreted`.

    Parameters
    ----------
    module : Module
        The program. It is passed as text, its constants in shared memory.
    function : str
        The name of the function.
    inputs : sequence
        The arguments: arrays and integers.
    rounded : bool
        Whether to estimate the allowed rounding errors.
    memory : int
        The number of bytes that the process may allocate; 0: no limit.
    cancel : CancelToken, optional
        A token that stops the run from another thread.
    timeout : float
        The time limit in seconds.

    Raises
    ------
    RunError
        If the run is canceled, exceeds the time limit, rejects the program, or crashes, or if the
        program calls a library function that is registered in this process only.

    Examples
    --------
    >>> from ...ir.script import parse
    >>> module = parse('''
    ... @prim_func
    ... def halve(x: Buffer[(2,), f32], y: Out[(2,), f32]):
    ...     for i in range(2):
    ...         y[i] = x[i] * 0.5
    ... ''')
    >>> exact_results(module, "halve", [np.array([2, 4], np.float32)]).values[0]
    array([1., 2.])
    """
    where = f"function {function!r} in the interpreter"
    module = shared_program(module, where)
    with process_of(where, timeout, "use smaller sizes") as process:
        deadline = time.monotonic() + timeout
        process.budget = memory
        process.receive(deadline, cancel)
        _ask(process, module, function, inputs, rounded=rounded)
        return _answer(process, deadline, cancel)


def _ask(
    process: Process,
    module: Module,
    function: str,
    inputs: Sequence[Array | int],
    *,
    rounded: bool,
) -> None:
    names = sorted(module.constants)
    weights = SharedArrays.of([np.asarray(module.constants[n].load()) for n in names])
    shared = SharedArrays.of([a for a in inputs if isinstance(a, np.ndarray)])
    request = {
        "do": "interpret",
        "function": function,
        "names": names,
        "weights": weights.layout,
        "layout": shared.layout,
        "arguments": [None if isinstance(a, np.ndarray) else int(a) for a in inputs],
        "rounded": rounded,
        "memory": process.budget,
    }
    with contextlib.closing(weights), contextlib.closing(shared):
        text = to_text(module).encode()
        process.send(request, text, [weights.descriptor, shared.descriptor])


def _answer(process: Process, deadline: float, cancel: CancelToken | None) -> Exact:
    answer = process.receive(deadline, cancel)
    shared = SharedArrays(process.descriptor(), answer["results"])
    arrays = tuple(shared.arrays())
    shared.close()
    half = len(arrays) // 2
    return Exact(arrays[:half], arrays[half:], answer["text"])
