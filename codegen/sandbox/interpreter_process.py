"""The interpreter in a sandbox, so that endless programs can be canceled."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

import numpy as np

from ...errors import Json
from ...ir.interpreter.oracle import Exact
from ...ir.module import Module
from ...ir.script import to_text
from ..build.worker_pool import CancelToken
from .one_request import process_of
from .parent import DEFAULT_TIMEOUT
from .process import Process
from .sampling_plan import Array
from .sent_inputs import Inputs, sent_inputs
from .shared_arrays import SharedArrays
from .shared_exact import SharedExact
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
    shared = shared_results(
        module, function, inputs, rounded=rounded, memory=memory, cancel=cancel, timeout=timeout
    )
    with contextlib.closing(shared):
        return shared.exact()


def shared_results(
    module: Module,
    function: str,
    inputs: Inputs,
    *,
    rounded: bool = True,
    memory: int = 0,
    cancel: CancelToken | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> SharedExact:
    """Return exact results that stay in shared memory until another process reads them.

    Parameters and errors are those of :func:`exact_results`. The process draws random inputs.

    Raises
    ------
    OutOfMemoryError
        If random inputs use more than a share of ``memory``.
    """
    where = f"function {function!r} in the interpreter"
    module = shared_program(module, where)
    fields, shared = sent_inputs(inputs, memory)
    fields |= {"do": "interpret", "function": function, "rounded": rounded, "memory": memory}
    with (
        contextlib.closing(shared),
        process_of(where, timeout, "use smaller sizes") as process,
    ):
        deadline = time.monotonic() + timeout
        process.budget = memory
        process.wait_started(deadline, cancel)
        _ask(process, module, fields, shared)
        answer = process.receive(deadline, cancel)
        return SharedExact(SharedArrays(process.descriptor(), answer["results"]), answer["text"])


def _ask(process: Process, module: Module, fields: dict[str, Json], shared: SharedArrays) -> None:
    names = sorted(module.constants)
    weights = SharedArrays.of([np.asarray(module.constants[n].load()) for n in names])
    with contextlib.closing(weights):
        process.send(
            {**fields, "names": names, "weights": weights.layout},
            to_text(module).encode(),
            [weights.descriptor, shared.descriptor],
        )
