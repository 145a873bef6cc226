"""Locks in forked children, and sections that Ctrl+C does not interrupt."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from tilewright.locks import renew_in_children, uninterrupted


class Owner:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        renew_in_children(self, "lock")


def child_acquires(owner: Owner) -> bool:
    """Return whether a forked child acquires the lock at once."""
    pid = os.fork()
    if not pid:
        os._exit(0 if owner.lock.acquire(blocking=False) else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_has_a_lock_that_another_thread_held() -> None:
    owner, taken, done = Owner(), threading.Event(), threading.Event()

    def hold() -> None:
        with owner.lock:
            taken.set()
            done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    assert taken.wait(30)
    inherited = owner.lock
    try:
        assert child_acquires(owner)
        assert owner.lock is inherited
        assert not owner.lock.acquire(blocking=False)
    finally:
        done.set()
        thread.join()


def test_an_interrupt_is_delayed_to_the_end_of_the_section() -> None:
    reached: list[str] = []
    with pytest.raises(KeyboardInterrupt), uninterrupted(), uninterrupted():
        signal.raise_signal(signal.SIGINT)
        reached.append("end")
    assert reached == ["end"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_of_the_section_is_not_lost() -> None:
    with pytest.raises(ValueError, match="message"), uninterrupted():
        raise ValueError("message")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_handlers_of_the_system_are_kept(handler: signal.Handlers) -> None:
    before = signal.signal(signal.SIGINT, handler)
    try:
        with uninterrupted():
            pass
        assert signal.getsignal(signal.SIGINT) == handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_do_not_change_the_handler() -> None:
    seen: list[object] = []

    def section() -> None:
        with uninterrupted():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=section)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
