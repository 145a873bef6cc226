"""Exclusive access to LLVM: forks while another thread uses it, and interrupts."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from tilewright.codegen.llvm import exclusive as module
from tilewright.codegen.llvm.exclusive import binding, exclusive


def child_uses_llvm() -> bool:
    """Return whether a forked child can use LLVM; it is killed if it waits for a lock."""
    pid = os.fork()
    if not pid:
        signal.setitimer(signal.ITIMER_REAL, 10)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        with exclusive():
            binding.parse_assembly("")
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def holding(lock: object, taken: threading.Event, done: threading.Event) -> threading.Thread:
    """Start a thread that holds a lock until an event."""

    def hold() -> None:
        with lock:
            taken.set()
            done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    assert taken.wait(30)
    return thread


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("lock", [exclusive, lambda: binding.ffi.lib._lock], ids=["ours", "LLVM's"])
def test_a_fork_waits_for_the_thread_in_llvm(lock: object) -> None:
    taken, done = threading.Event(), threading.Event()
    thread = holding(lock(), taken, done)
    timer = threading.Timer(0.2, done.set)
    timer.start()
    assert child_uses_llvm()
    assert done.is_set()
    thread.join()
    with exclusive():
        binding.parse_assembly("")


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("lock", [exclusive, lambda: binding.ffi.lib._lock], ids=["ours", "LLVM's"])
def test_a_fork_does_not_wait_forever(lock: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    taken, done = threading.Event(), threading.Event()
    thread = holding(lock(), taken, done)
    assert child_uses_llvm()
    done.set()
    thread.join()


def test_an_interrupt_waits_for_the_end_of_the_section() -> None:
    reached: list[str] = []
    with pytest.raises(KeyboardInterrupt), exclusive():
        signal.raise_signal(signal.SIGINT)
        binding.parse_assembly("")
        reached.append("end")
    assert reached == ["end"]
    thread = threading.Thread(target=lambda: reached.append(binding.parse_assembly("").name))
    thread.start()
    thread.join(30)
    assert len(reached) == 2
