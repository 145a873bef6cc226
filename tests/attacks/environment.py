"""Compiles, calls, and measures in this process, after a statement that restricts it.

``python -m tests.attacks.environment STATEMENT`` prints ``works`` or the name of the error of each
of the three steps. Errors other than those of Tilewright have their traceback printed.
"""

from __future__ import annotations

import resource
import signal
import sys

PROGRAM = """
@prim_func
def add(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    for i in range(8):
        y[i] = x[i] + 1.0
"""


def limit(name: str, count: int) -> None:
    """Set a limit of this process, and let writes to files that exceed it fail."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (count, count))


def without_user() -> None:
    """Let this process have a user without an entry in the password database, and no home."""
    import os  # only this statement uses it
    import pwd

    def getpwuid(number: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {number}")

    pwd.getpwuid = getpwuid
    for name in ("HOME", "XDG_CACHE_HOME", "TILEWRIGHT_CACHE"):
        os.environ.pop(name, None)


def steps() -> None:
    """Import, compile, call, and measure."""
    import numpy as np  # after the statement

    import tilewright as tw

    x = np.arange(8, dtype=np.float32)
    exe = tw.compile(tw.parse(PROGRAM))
    np.testing.assert_array_equal(exe(x), x + 1)
    sys.stdout.write("works ")
    tw.measure(exe, x, budget=0.05)
    sys.stdout.write("works")


if __name__ == "__main__":
    import numpy as np  # noqa: F401  # its BLAS library ends the process if it cannot start threads

    exec(sys.argv[1])  # a line of `test_environment.py`
    try:
        steps()
    except Exception as error:
        from tilewright.errors import TilewrightError

        if not isinstance(error, TilewrightError):
            raise
        sys.stdout.write(type(error).__name__)
