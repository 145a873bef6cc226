"""The interpreter in a process of its own, so that a program that never ends can be cancelled."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

import numpy as np

from ....ir.interpreter.oracle import Exact
from ....ir.module import Module
from ....ir.script import to_text
from ..errors import RunCrashedError, RunTimeoutError
from ..protocol import PipeClosedError, PipeTimeoutError
from ..workers import Cancellation
from .parent import DEFAULT_TIMEOUT
from .plan import Array
from .process import GRACE, Process, signal_name
from .shared import SharedArrays


def exact_results(
    module: Module,
    function: str,
    inputs: Sequence[Array | int],
    *,
    rounded: bool = True,
    memory: int = 0,
    cancel: Cancellation | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> Exact:
    """Interpret a function away from this process; see :func:`ir.interpreter.interpreted`.

    Parameters
    ----------
    module : Module
        The program; it goes over as text, its constants as shared memory.
    function : str
        Which function.
    inputs : sequence
        Arrays and integers.
    rounded : bool
        Whether to find out what rounding may do.
    memory : int
        Bytes that it may allocate; 0: no limit.
    cancel : Cancellation, optional
        Stops it from another thread.
    timeout : float
        Seconds.

    Raises
    ------
    RunError
        If it is cancelled, takes too long, refuses the program or dies.

    Examples
    --------
    >>> from ....ir.script import parse
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
    process = Process()
    process.budget = memory
    deadline = time.monotonic() + timeout
    try:
        process.receive(deadline, cancel)
        _ask(process, module, function, inputs, rounded=rounded)
        return _answer(process, deadline, cancel)
    except PipeClosedError:
        words = process.stop(GRACE)
        code = process.exit_code or 0
        ended = f"signal {signal_name(-code)}" if code < 0 else f"code {code}"
        raise RunCrashedError(
            f"the process that ran it ended by {ended}", where=where, hint=words
        ) from None
    except PipeTimeoutError:
        raise RunTimeoutError(
            f"it took longer than {timeout:g} s", where=where, hint="smaller sizes take less"
        ) from None
    finally:
        process.stop()


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
    given = SharedArrays.of([a for a in inputs if isinstance(a, np.ndarray)])
    request = {
        "do": "interpret",
        "function": function,
        "names": names,
        "weights": weights.layout,
        "layout": given.layout,
        "arguments": [None if isinstance(a, np.ndarray) else int(a) for a in inputs],
        "rounded": rounded,
        "memory": process.budget,
    }
    with contextlib.closing(weights), contextlib.closing(given):
        text = to_text(module).encode()
        process.send(request, text, [weights.descriptor, given.descriptor])


def _answer(process: Process, deadline: float, cancel: Cancellation | None) -> Exact:
    answer = process.receive(deadline, cancel)
    made = SharedArrays(process.descriptor(), answer["results"])
    arrays = tuple(made.arrays())
    made.close()
    half = len(arrays) // 2
    return Exact(arrays[:half], arrays[half:], answer["text"])
