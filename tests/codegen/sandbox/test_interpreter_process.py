"""The interpreter in a sandbox."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.build.worker_pool import CancelToken
from tilewright.codegen.errors import RunCanceledError
from tilewright.codegen.sandbox.interpreter_process import exact_results

ENDLESS = """
n = symbols("n", lower=1)

@prim_func
def main(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        y[i] = x[i]
    for i1 in range(n):
        for k in range(4611686018427387904):
            y[i1] = y[i1] * 0.5 + 1.0
"""

X = np.linspace(0.5, 1.5, 512, dtype=np.float32)


def test_the_interpreter_of_an_endless_program_is_canceled() -> None:
    cancel = CancelToken()
    requested: list[float] = []

    def request() -> None:
        requested.append(time.monotonic())
        cancel.cancel()

    threading.Timer(1.0, request).start()
    with pytest.raises(RunCanceledError):
        exact_results(tw.parse(ENDLESS), "main", [X], cancel=cancel)
    assert time.monotonic() - requested[0] < 2
