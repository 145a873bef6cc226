"""Only the last users keep their processes."""

from __future__ import annotations

import threading

from tilewright.workbench.recent_users import RecentUsers


class Owner:
    """An owner that records whether it was closed."""

    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def use(recent: RecentUsers, *owners: Owner) -> None:
    for owner in owners:
        with recent.using(owner):
            assert not owner.closed


def test_the_oldest_is_closed_beyond_the_limit():
    recent = RecentUsers(2)
    first, second, third = owners = [Owner() for _ in range(3)]
    use(recent, first, second, first, third)
    assert [o.closed for o in owners] == [0, 1, 0]


def test_an_owner_that_works_is_not_closed():
    recent = RecentUsers(1)
    first, second, third = (Owner() for _ in range(3))
    with recent.using(first):
        use(recent, second)
        assert (first.closed, second.closed) == (0, 1)
    use(recent, third)
    assert (first.closed, third.closed) == (1, 0)


def test_an_owner_may_work_in_several_threads():
    recent, owner, other = RecentUsers(1), Owner(), Owner()
    begun, end = threading.Event(), threading.Event()

    def work() -> None:
        with recent.using(owner):
            begun.set()
            end.wait()

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    use(recent, owner)
    use(recent, other)
    assert owner.closed == 0
    end.set()
    thread.join()
    assert owner.closed + other.closed == 1


def test_owners_are_not_kept_alive():
    recent, owner = RecentUsers(1), Owner()
    use(recent, owner)
    del owner
    assert len(recent._users) == 0
